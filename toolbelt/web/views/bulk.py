"""Setting many at once: what a filter shows is put as a question first, then done as it was shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import bulk, holdings, queries, rights
from toolbelt.core import errors
from toolbelt.web.forms import filters, flips
from toolbelt.web.pages import access, agents, model, tools
from toolbelt.web.pages import bulk as pages
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering


@require_safe
def of_agent(request: HttpRequest, agent: str) -> HttpResponse:
    """Ask whether the tools, or the toolkits, that the filter of the Access page shows shall be set alike."""
    try:
        found = queries.access(agent)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    said = filters.said(filters.Access(request.GET))
    form = flips.SetAll(request.GET)
    if not form.is_valid():
        return _refused(request, f"Not changed: {form.problems()}", _home(agent))
    what, on = form.wanted()
    tools_shown, toolkits_shown = access.matching(found, said)
    keys = toolkits_shown if what == "toolkits" else tools_shown
    return _asked(request, [agent], keys, on, _home(agent, request.GET))


@require_safe
def of_tools(request: HttpRequest) -> HttpResponse:
    """Ask whether the tools that the list shows shall be set alike, for some agents or all."""
    said = filters.said(filters.Tools(request.GET))
    form = flips.SetAll(request.GET)
    if not form.is_valid():
        return _refused(request, f"Not changed: {form.problems()}", reverse("web:tools"))
    keys = [tool.key for tool in tools.matching(holdings.shelf(), said)]
    names = _named(request, form)
    return _asked(request, names, keys, form.wanted()[1], f"{reverse('web:tools')}?{filters.kept(said)}")


@require_safe
def of_agents(request: HttpRequest) -> HttpResponse:
    """Ask whether a toolkit shall be switched alike for the agents that the list shows."""
    said = filters.said(filters.Agents(request.GET))
    form = flips.SetAll(request.GET)
    home = f"{reverse('web:agents')}?{filters.kept(said)}"
    if not form.is_valid() or not form.cleaned_data["key"]:
        return _refused(request, f"Not changed: {form.problems() or 'choose a toolkit first.'}", home)
    names = [one.agent.key for one in agents.matching(queries.summaries(), said)]
    return _asked(request, names, [form.cleaned_data["key"]], form.wanted()[1], home)


@require_safe
def of_toolkit(request: HttpRequest, toolkit: str) -> HttpResponse:
    """Ask whether a toolkit shall be switched alike for the agents that were ticked, or for all."""
    form = flips.SetAll(request.GET)
    home = reverse("web:toolkit", args=[toolkit])
    if not form.is_valid():
        return _refused(request, f"Not changed: {form.problems()}", home)
    names = _named(request, form)
    return _asked(request, names, [toolkit], form.wanted()[1], home)


@require_POST
def apply(request: HttpRequest) -> HttpResponse:
    """Do what was shown: all of it, or nothing."""
    home = answering.back(request, reverse("web:changes"))
    form, may_flip = flips.Bulk(request.POST), rights.flippable(request.user)
    if not any(map(may_flip, queries.agent_keys())):
        raise PermissionDenied
    if not form.is_valid():
        return _refused(request, f"Not changed: {form.problems()}", home)
    wanted = form.wanted()
    names = list(wanted["seen"])
    _refuse_others(names, may_flip)
    try:
        change = bulk.apply(answering.actor(request), **wanted)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.ToolbeltError as error:
        return _refused(request, f"Not changed. {error}", home)
    notice = answers.Notice(
        text=pages.done(wanted["seen"], wanted["on"]),
        detail=model.in_short(change.effect),
        undo=change.entry,
        whole=True,
    )
    on_access = len(names) == 1 and home.partition("?")[0].partition("#")[0] == _home(names[0])
    if answering.is_in_place(request) and on_access:
        return answering.in_place(request, names[0], notice, change.effect)
    return _led_back(request, notice, home)


def _named(request: HttpRequest, form: flips.SetAll) -> list[str]:
    """Name the agents that were ticked, or all; whoever ticks one that is not theirs is refused."""
    ticked: list[str] = form.cleaned_data["for"]
    if ticked:
        _refuse_others(ticked, rights.flippable(request.user))
    return ticked or queries.agent_keys()


def _refuse_others(names: Sequence[str], may_flip: Callable[[str], bool]) -> None:
    others = [name for name in names if not may_flip(name)]
    if others:
        raise PermissionDenied(f"You may not flip the switches of {', '.join(others[:10])}.")


def _asked(
    request: HttpRequest, names: Sequence[str], keys: Sequence[str], on: bool | None, home: str
) -> HttpResponse:
    may_flip = rights.flippable(request.user)
    names = [name for name in names if may_flip(name)]
    if not names:
        raise PermissionDenied
    try:
        plan = bulk.plan(names, keys, on)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.Refused as refused:
        return _refused(request, str(refused), home)
    if not plan.changes:
        return _refused(request, pages.nothing(plan, names, keys), home)
    question = pages.question(
        plan, names, keys, queries.toolkit_keys(), action=reverse("web:apply_bulk"), back=home
    )
    return _in_a_dialog(answering.asked(request, question))


def _refused(request: HttpRequest, text: str, home: str) -> HttpResponse:
    return _led_back(request, answers.Notice(text=text, tone="refused"), home)


def _led_back(request: HttpRequest, notice: answers.Notice, home: str) -> HttpResponse:
    answering.keep(request, notice)
    if answering.is_in_place(request):
        return HttpResponse(status=204, headers={"HX-Redirect": home})
    response = redirect(home)
    response.status_code = 303
    return response


def _in_a_dialog(response: HttpResponse) -> HttpResponse:
    """Let htmx show the question over the page, and leave list and address as they are."""
    response.headers["HX-Reswap"] = "none"
    response.headers["HX-Replace-Url"] = "false"
    return response


def _home(agent: str, said: Mapping[str, Any] | None = None) -> str:
    home = reverse("web:agent_access", args=[agent])
    query = filters.kept(filters.said(filters.Access(said))) if said is not None else ""
    return f"{home}?{query}" if query else home
