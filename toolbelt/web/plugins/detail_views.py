"""The page of one plugin: what is known of it, its tools, and how its server is reached."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights
from toolbelt.control.servers import plugin_overview
from toolbelt.core import errors
from toolbelt.runtime import plugins as running
from toolbelt.web.kit import http, notices, responses
from toolbelt.web.plugins import detail, forms, views

_OTHERWISE = "Another operator changed the connection: the form shows the new values."


@require_safe
def page(request: http.Request, plugin: str) -> HttpResponse:
    """Show the page; htmx gets the progress of a refresh, and finally its result."""
    return _shown(request, plugin, "plugins/_refreshed.html" if request.htmx else "plugins/plugin.html")


@require_POST
@permission_required(views.CHANGE, raise_exception=True)
def reconnect(request: http.Request, plugin: str) -> HttpResponse:
    """Return where a server is, in place of what the page showed."""

    form = forms.Connection(request.POST, plugin=plugin)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        if isinstance(error, errors.Stale):
            form.add_error("url", _OTHERWISE)
        else:
            form.refuse(error, otherwise="url")
        return _shown(request, plugin, "plugins/plugin.html", status=status, form=form)

    responses.declare(request, reverse("web:plugin", args=[plugin]), form=show_again)
    given = form.checked()
    change = plugin_overview.reconnect(
        responses.write(request, given),
        plugin,
        url=given["url"],
        headers=given["headers"],
        was=given["was"],
        connections_by=form.connections_by(),
    )
    text = (
        f"Connection of {plugin} saved. The next request uses it."
        if not change.is_nothing
        else "No changes: the connection is already up to date."
    )
    return responses.respond(request, notices.Notice(text=text, undo=change.entry))


def _shown(
    request: http.Request,
    plugin: str,
    template: str,
    *,
    status: int = 200,
    notice: notices.Notice | None = None,
    **shown: Any,
) -> HttpResponse:
    user = request.user
    filters = forms.Filter(request.GET).values()
    whole = request.method in ("GET", "HEAD") and not request.htmx
    page = detail.page(
        plugin_overview.find(plugin, maximum=detail.MAX_GONE),
        running.live(),
        path=reverse("web:plugin", args=[plugin]),
        since=filters["asked"],
        every_tool=bool(filters["all"]),
        notice=responses.pop_notice(request)[0] if whole else notice,
        may_change=user.has_perm(views.CHANGE),
        may_see=rights.may_read(user, "plugin"),
        origin=request.build_absolute_uri("/").removesuffix("/"),
        **shown,
    )
    return render(request, template, {"page": page, "plugin": page.plugin}, status=status)
