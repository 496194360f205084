"""The plugins and upstream servers: their list, adding one, asking them anew, and their switches."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import plugins as configured
from toolbelt.control import providers, rights, stops, upstreams, writing
from toolbelt.core import errors
from toolbelt.runtime import plugins as running
from toolbelt.runtime import upstreams as servers
from toolbelt.web import plugin_forms
from toolbelt.web.pages import plugin as one
from toolbelt.web.pages import plugins as pages
from toolbelt.web.presenters import answers
from toolbelt.web.presenters import plugins as presenters
from toolbelt.web.views import answering, stopping

ADD = rights.to("add", "plugin")
CHANGE = rights.to("change", "plugin")
# The address of the form, which no server can have for its own page.
_TAKEN = "add"


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the list; to htmx only its lines, or how far a refresh has come."""
    in_place = answering.is_in_place(request)
    page = _filled(request, None if in_place else answering.kept(request)[0])
    target = request.headers.get("HX-Target", "")
    part = "plugins/_asked.html" if target == "asking" else "plugins/_lines.html"
    return render(request, part if in_place else "plugins/list.html", {"page": page, "in_place": in_place})


@require_safe
@permission_required(ADD, raise_exception=True)
def add(request: HttpRequest) -> HttpResponse:
    """Show the form for a server."""
    return _form(request, presenters.ServerForm())


@require_POST
@permission_required(ADD, raise_exception=True)
def save(request: HttpRequest) -> HttpResponse:
    """Add the server, and have it asked for its tools at once."""
    form = plugin_forms.Server(request.POST)
    if not form.is_valid():
        return _not_added(request, _problems(form.wrong()))
    given = form.cleaned_data
    if given["name"] == _TAKEN:
        return _not_added(
            request, _problems({"name": "This is the address of this very form: choose another name."})
        )
    try:
        upstreams.add(
            answering.actor(request),
            given["name"],
            form.connection(),
            namespace=given["namespace"] or None,
            title=given["title"],
            reason=given["reason"],
        )
    except errors.Invalid as invalid:
        return _not_added(request, invalid.problems)
    except errors.Refused as refused:
        return _not_added(request, _problems({"": str(refused)}))
    answering.keep(
        request, answers.Notice(text=f"{given['name']} is added. Its tools are off until approved.")
    )
    return _see_other(f"{reverse('web:plugin', args=[given['name']])}?{_asked(request, [given['name']])}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def refresh(request: HttpRequest) -> HttpResponse:
    """Ask every upstream server that is on for its tools, behind the page's back."""
    names = [server.plugin.name for server in upstreams.servers() if server.plugin.active]
    asked = _asked(request, names)
    return _see_other(f"{reverse('web:plugins')}?{asked}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def refresh_one(request: HttpRequest, plugin: str) -> HttpResponse:
    """Ask one server for its tools, behind the page's back; a plugin in code that has failed gets another chance."""
    home = reverse("web:plugin", args=[plugin])
    try:
        upstreams.find(plugin)
    except errors.NotFound:
        return _another_chance(request, plugin, home)
    asked = _asked(request, [plugin])
    way = answering.back(request, home)
    is_list = way.partition("?")[0] == reverse("web:plugins")
    return _see_other(
        f"{reverse('web:plugins')}?{asked}&{urlencode({'of': plugin})}" if is_list else f"{home}?{asked}"
    )


@require_POST
@permission_required(CHANGE, raise_exception=True)
def switch(request: HttpRequest, plugin: str) -> HttpResponse:
    """Switch a plugin on or off, stop it for everyone, or trust it."""
    form = plugin_forms.Switch(request.POST)
    if not form.is_valid():
        return _told(
            request, plugin, answers.Notice(text=f"Not changed: {form.problems()}", tone="refused"), 422
        )
    wanted = form.wanted()
    try:
        change, whom = _switched(request, plugin, **wanted)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.Stale as stale:
        return _told(request, plugin, answers.Notice(text=str(stale), tone="refused"), 409)
    except (errors.Invalid, errors.Refused) as refused:
        return _told(request, plugin, answers.Notice(text=str(refused), tone="refused"), 422)
    done = _done(plugin, wanted["control"], wanted["on"])
    if change.is_nothing:
        return _told(request, plugin, answers.Notice(text=f"Nothing to change: {done} already."))
    return _told(request, plugin, answers.Notice(text=f"{done}.", detail=whom, undo=change.entry))


def _switched(
    request: HttpRequest, plugin: str, control: providers.Control, on: bool, was: bool, reason: str
) -> tuple[writing.Change, str]:
    """Do what the form wants; of an emergency stop, say whom it reaches."""
    actor = answering.actor(request)
    if control != "blocked":
        return providers.switch(actor, plugin, control, on, was=was, reason=reason), ""
    change = stops.stop(actor, "plugin", plugin, on, was=was, reason=reason)
    return change, stopping.whom(change, on)


def _filled(request: HttpRequest, notice: answers.Notice | None) -> presenters.PluginsPage:
    user = request.user
    home = reverse("web:plugins")
    return pages.page(
        providers.every(),
        running.loaded(),
        plugin_forms.Filter(request.GET).said(),
        path=home,
        here=request.get_full_path() if request.method == "GET" else answering.back(request, home),
        notice=notice,
        may_change=user.has_perm(CHANGE),
        may_add=user.has_perm(ADD),
        may_see=rights.may_read(user, "plugin"),
    )


def _told(request: HttpRequest, plugin: str, notice: answers.Notice, status: int = 200) -> HttpResponse:
    """Answer a switch: with the parts that follow it, wherever it stands, or by leading back."""
    if not answering.is_in_place(request):
        return answering.led_back(request, reverse("web:plugin", args=[plugin]), notice, None)
    try:
        found = providers.find(plugin, most=0)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    if notice.undo is not None and not notice.detail:
        reach = pages.reach(found.provider)
        notice = answers.Notice(text=notice.text, detail=f"Of its tools, {reach}.", undo=notice.undo)
    page = one.page(
        found,
        running.live(),
        path=reverse("web:plugin", args=[plugin]),
        here=answering.back(request, reverse("web:plugin", args=[plugin])),
        notice=notice,
        may_change=True,
        may_approve=False,
        may_carry=False,
        may_see=False,
    )
    shown = {"page": page, "plugin": page.plugin, "whole": request.POST.get("place") == "one"}
    return render(request, "plugins/_switched.html", shown, status=status)


def _another_chance(request: HttpRequest, plugin: str, home: str) -> HttpResponse:
    try:
        configured.enable(answering.actor(request), plugin)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    notice = answers.Notice(text=f"{plugin} gets another chance at the next call.")
    return answering.led_back(request, home, notice, None)


def _asked(request: HttpRequest, names: Iterable[str]) -> str:
    """Have servers asked, and give what a page says of it in its address. Raises errors.NotFound."""
    since = timezone.now()
    servers.refresh_soon(names, functools.partial(upstreams.record, answering.actor(request)))
    return urlencode({"asked": pages.stamp(since)})


def _done(plugin: str, control: str, on: bool) -> str:
    match control:
        case "active":
            return f"{plugin} is {'on' if on else 'off for everyone'}"
        case "blocked":
            return f"{plugin} is {'stopped for everyone' if on else 'no longer stopped'}"
    return f"{plugin} is {'trusted' if on else 'no longer trusted'}"


def _problems(wrong: dict[str, str]) -> list[errors.Problem]:
    return [errors.Problem(path=name, message=message) for name, message in wrong.items()]


def _not_added(request: HttpRequest, problems: Iterable[errors.Problem]) -> HttpResponse:
    return _form(request, one.form(request.POST, problems), status=422)


def _form(request: HttpRequest, form: presenters.ServerForm, status: int = 200) -> HttpResponse:
    page = presenters.AddPage(form=form, command=one.add_command(), may_see=True)
    return render(request, "plugins/add.html", {"page": page}, status=status)


def _see_other(address: str) -> HttpResponse:
    response = redirect(address)
    response.status_code = 303
    return response
