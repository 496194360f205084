"""The plugins and upstream servers: their list and the page of one, adding one, refreshing them, and their switches."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import writing
from toolbelt.control.catalog import blocking
from toolbelt.control.people import rights
from toolbelt.control.servers import plugin_overview, upstream_servers
from toolbelt.control.servers import plugins as configured
from toolbelt.core import effects, errors
from toolbelt.runtime import plugins as running
from toolbelt.runtime import upstream_listing
from toolbelt.web.access import views as access
from toolbelt.web.kit import http, notices, pieces, responses
from toolbelt.web.plugins import detail, forms, view_model

_OTHERWISE = "Another operator changed the connection: the form shows the new values."
ADD = rights.permission("add", "plugin")
CHANGE = rights.permission("change", "plugin")
# What a plugin is after one of its switches was turned off, and on.
_DONE = {
    "active": ("off for everyone", "on"),
    "blocked": ("unblocked", "blocked for everyone"),
    "trusted": ("no longer trusted", "trusted"),
}


@require_safe
def page(request: http.Request, plugin: str) -> HttpResponse:
    """Show the page; htmx gets the progress of a refresh, and finally its result."""
    return _page(request, plugin, "plugins/_refreshed.html" if request.htmx else "plugins/plugin.html")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def reconnect(request: http.Request, plugin: str) -> HttpResponse:
    """Return where a server is, in place of what the page showed."""

    form = forms.Connection(request.POST, plugin=plugin)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        if isinstance(error, errors.Stale):
            form.add_error("url", _OTHERWISE)
        else:
            form.refuse(error, otherwise="url")
        return _page(request, plugin, "plugins/plugin.html", status=status, form=form)

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
    done = f"Connection of {plugin} saved. The next request uses it"
    return responses.respond_changed(request, change, done, unchanged="the connection is already up to date")


def _page(
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
        may_change=user.has_perm(CHANGE),
        may_see=rights.may_read(user, "plugin"),
        origin=request.build_absolute_uri("/").removesuffix("/"),
        **shown,
    )
    return render(request, template, {"page": page, "plugin": page.plugin}, status=status)


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list; to htmx only its lines, or how far a refresh has come."""
    narrowed = forms.Filter(request.GET).values()
    page = view_model.page(
        plugin_overview.load_all(),
        running.loaded(),
        narrowed,
        path=reverse("web:plugins"),
        may_see=rights.may_read(request.user, "plugin"),
    )
    page.views = forms.VIEWS.present(request, narrowed)
    part = "plugins/_refreshing.html" if request.htmx.target == "refresh-progress" else "plugins/_lines.html"
    return responses.show(request, page, "plugins/list.html", part)


@require_safe
@permission_required(ADD, raise_exception=True)
def add(request: http.Request) -> HttpResponse:
    """Show the form for a server."""
    return _form(request, forms.Server())


@require_POST
@permission_required(ADD, raise_exception=True)
def save(request: http.Request) -> HttpResponse:
    """Add the server, and have it asked for its tools at once."""

    form = forms.Server(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, otherwise=None)
        return _form(request, form, status=422)

    responses.declare(request, reverse("web:plugins"), form=show_again)
    given = form.checked()
    name = given["name"]
    upstream_servers.add(
        responses.actor(request),
        name,
        form.connection(),
        namespace=given["namespace"] or None,
        title=given["title"],
        reason=given["reason"],
    )
    responses.keep_notice(
        request, notices.Notice(text=f"{name} added. Its tools are unavailable until you approve them.")
    )
    return responses.see_other(request, f"{reverse('web:plugin', args=[name])}?{ask(request, [name])}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def refresh(request: http.Request) -> HttpResponse:
    """Ask every upstream server that is on for its tools, behind the page's back."""
    names = [server.plugin.name for server in upstream_servers.servers() if server.plugin.active]
    return responses.see_other(request, f"{reverse('web:plugins')}?{ask(request, names)}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def refresh_one(request: http.Request, plugin: str) -> HttpResponse:
    """Ask one server for its tools, behind the page's back; a plugin in code that has failed gets another chance."""
    home = reverse("web:plugin", args=[plugin])
    try:
        upstream_servers.find(plugin)
    except errors.NotFound:
        configured.enable(responses.write(request), plugin)
        responses.declare(request, home)
        text = f"{plugin} is enabled again. The next call retries it."
        return responses.respond(request, notices.Notice(text=text))
    asked = ask(request, [plugin])
    way = responses.back(request, home)
    if way.partition("?")[0] == reverse("web:plugins"):
        home, asked = reverse("web:plugins"), f"{asked}&{urlencode({'of': plugin})}"
    return responses.see_other(request, f"{home}?{asked}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def switch(request: http.Request, plugin: str) -> HttpResponse:
    """Switch a plugin on or off, block it for everyone, or trust it."""
    responses.declare(
        request, reverse("web:plugin", args=[plugin]), parts=functools.partial(_parts, request, plugin)
    )
    given = forms.Switch(request.POST).checked()
    control, on, was = given["control"], given["on"], given["was"]
    write, detail = responses.write(request, given), ""
    change: writing.Change
    if control == "blocked":
        change = blocked = blocking.set_blocked(write, "plugin", plugin, on, was=was)
        detail = access.describe_reach(blocked, on)
    else:
        change = plugin_overview.set_control(write, plugin, control, on, was=was)
    done = f"{plugin} is {_DONE[control][on]}"
    return responses.respond_changed(request, change, done, detail=detail)


def _parts(
    request: http.Request, plugin: str, notice: notices.Notice, change: effects.Effect | None, status: int
) -> HttpResponse:
    """Return the parts of a page that follow a switch of a plugin."""
    overview = plugin_overview.find(plugin, maximum=0)
    if notice.undo is not None and not notice.detail:
        reach = view_model.reach(overview.provider)
        notice = notices.Notice(text=notice.text, detail=f"{reach[:1].upper()}{reach[1:]}.", undo=notice.undo)
    page = detail.page(
        overview,
        running.live(),
        path=reverse("web:plugin", args=[plugin]),
        notice=notice,
        may_change=True,
        may_see=False,
    )
    shown = {"page": page, "plugin": page.plugin, "whole": request.POST.get("place") == "one"}
    return render(request, "plugins/_switched.html", shown, status=status)


def ask(request: http.Request, names: Iterable[str]) -> str:
    """Have servers asked, and give what a page says of it in its address. Raises errors.NotFound."""
    since = timezone.now()
    upstream_listing.refresh_soon(names, functools.partial(upstream_servers.record, responses.actor(request)))
    return urlencode({"asked": view_model.stamp(since)})


def _form(request: http.Request, form: forms.Server, status: int = 200) -> HttpResponse:
    page = pieces.View(form=form, command=detail.add_command())
    return render(request, "plugins/add.html", {"page": page}, status=status)
