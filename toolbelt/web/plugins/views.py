"""The plugins and upstream servers: their list, adding one, asking them anew, and their switches."""

from __future__ import annotations

import functools
from collections.abc import Iterable

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
from toolbelt.web.access import blocking as access_blocking
from toolbelt.web.kit import http, notices, pieces, responses
from toolbelt.web.plugins import detail, forms, view_model

ADD = rights.permission("add", "plugin")
CHANGE = rights.permission("change", "plugin")
# The address of the form, which no server can have for its own page.
_TAKEN = "add"


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list; to htmx only its lines, or how far a refresh has come."""
    in_place = request.htmx
    page = _filled(request, None if in_place else responses.pop_notice(request)[0])
    target = request.htmx.target or ""
    part = "plugins/_asked.html" if target == "asking" else "plugins/_lines.html"
    return render(request, part if in_place else "plugins/list.html", {"page": page, "in_place": in_place})


@require_safe
@permission_required(ADD, raise_exception=True)
def add(request: http.Request) -> HttpResponse:
    """Show the form for a server."""
    return _form(request, detail.ServerForm())


@require_POST
@permission_required(ADD, raise_exception=True)
def save(request: http.Request) -> HttpResponse:
    """Add the server, and have it asked for its tools at once."""

    def again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        problems = error.problems if isinstance(error, errors.Invalid) else [_problem("", str(error))]
        return _form(request, detail.form(request.POST, problems), status=422)

    responses.declare(request, reverse("web:plugins"), form=again)
    form = forms.Server(request.POST)
    given = form.checked()
    name = given["name"]
    if name == _TAKEN:
        raise errors.Invalid([_problem("name", "This name is reserved: choose another name.")])
    upstream_servers.add(
        responses.actor(request),
        name,
        form.connection(),
        namespace=given["namespace"] or None,
        title=given["title"],
        reason=given["reason"],
    )
    responses.keep(
        request, notices.Notice(text=f"{name} added. Its tools are unavailable until you approve them.")
    )
    return responses.see_other(request, f"{reverse('web:plugin', args=[name])}?{_asked(request, [name])}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def refresh(request: http.Request) -> HttpResponse:
    """Ask every upstream server that is on for its tools, behind the page's back."""
    names = [server.plugin.name for server in upstream_servers.servers() if server.plugin.active]
    return responses.see_other(request, f"{reverse('web:plugins')}?{_asked(request, names)}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def refresh_one(request: http.Request, plugin: str) -> HttpResponse:
    """Ask one server for its tools, behind the page's back; a plugin in code that has failed gets another chance."""
    home = reverse("web:plugin", args=[plugin])
    try:
        upstream_servers.find(plugin)
    except errors.NotFound:
        return _another_chance(request, plugin, home)
    asked = _asked(request, [plugin])
    way = responses.back(request, home)
    if way.partition("?")[0] == reverse("web:plugins"):
        home, asked = reverse("web:plugins"), f"{asked}&{urlencode({'of': plugin})}"
    return responses.see_other(request, f"{home}?{asked}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def switch(request: http.Request, plugin: str) -> HttpResponse:
    """Switch a plugin on or off, stop it for everyone, or trust it."""
    form = forms.Switch(request.POST)
    responses.declare(
        request, reverse("web:plugin", args=[plugin]), parts=functools.partial(_parts, request, plugin)
    )
    wanted = form.wanted()
    change, whom = _switched(request, plugin, **wanted)
    done = _done(plugin, wanted["control"], wanted["on"])
    if change.is_nothing:
        return responses.respond(request, notices.Notice(text=f"No changes: {done} already."))
    return responses.respond(request, notices.Notice(text=f"{done}.", detail=whom, undo=change.entry))


def _switched(
    request: http.Request, plugin: str, control: plugin_overview.Control, on: bool, was: bool, reason: str
) -> tuple[writing.Change, str]:
    """Do what the form wants; of an emergency stop, say whom it reaches."""
    write = responses.write(request, {"reason": reason})
    if control != "blocked":
        return plugin_overview.set_control(write, plugin, control, on, was=was), ""
    change = blocking.set_blocked(write, "plugin", plugin, on, was=was)
    return change, access_blocking.whom(change, on)


def _filled(request: http.Request, notice: notices.Notice | None) -> pieces.View:
    user = request.user
    home = reverse("web:plugins")
    return view_model.page(
        plugin_overview.load_all(),
        running.loaded(),
        forms.Filter(request.GET).said(),
        path=home,
        here=responses.here(request, home),
        notice=notice,
        may_change=user.has_perm(CHANGE),
        may_add=user.has_perm(ADD),
        may_see=rights.may_read(user, "plugin"),
    )


def _parts(
    request: http.Request, plugin: str, notice: notices.Notice, change: effects.Effect | None, status: int
) -> HttpResponse:
    """Return the parts of a page that follow a switch of a plugin."""
    found = plugin_overview.find(plugin, most=0)
    if notice.undo is not None and not notice.detail:
        reach = view_model.reach(found.provider)
        notice = notices.Notice(text=notice.text, detail=f"{reach[:1].upper()}{reach[1:]}.", undo=notice.undo)
    page = detail.page(
        found,
        running.live(),
        path=reverse("web:plugin", args=[plugin]),
        here=responses.back(request, reverse("web:plugin", args=[plugin])),
        notice=notice,
        may_change=True,
        may_approve=False,
        may_carry=False,
        may_see=False,
    )
    shown = {"page": page, "plugin": page.plugin, "whole": request.POST.get("place") == "one"}
    return render(request, "plugins/_switched.html", shown, status=status)


def _another_chance(request: http.Request, plugin: str, home: str) -> HttpResponse:
    configured.enable(responses.write(request), plugin)
    notice = notices.Notice(text=f"{plugin} is enabled again. The next call retries it.")
    responses.declare(request, home)
    return responses.respond(request, notice)


def _asked(request: http.Request, names: Iterable[str]) -> str:
    """Have servers asked, and give what a page says of it in its address. Raises errors.NotFound."""
    since = timezone.now()
    upstream_listing.refresh_soon(names, functools.partial(upstream_servers.record, responses.actor(request)))
    return urlencode({"asked": view_model.stamp(since)})


def _done(plugin: str, control: str, on: bool) -> str:
    match control:
        case "active":
            return f"{plugin} is {'on' if on else 'off for everyone'}"
        case "blocked":
            return f"{plugin} is {'blocked for everyone' if on else 'unblocked'}"
    return f"{plugin} is {'trusted' if on else 'no longer trusted'}"


def _problem(path: str, message: str) -> errors.Problem:
    return errors.Problem(path=path, message=message)


def _form(request: http.Request, form: detail.ServerForm, status: int = 200) -> HttpResponse:
    page = detail.AddPage(form=form, command=detail.add_command(), may_see=True)
    return render(request, "plugins/add.html", {"page": page}, status=status)
