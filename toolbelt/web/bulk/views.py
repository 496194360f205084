"""Bulk actions: a confirmation shows what changes for everything that a filter shows, then exactly that is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import replace_url, reswap

from toolbelt.control.access import access_index, bulk
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.access import forms as access
from toolbelt.web.access import view_model as access_view_model
from toolbelt.web.agents import forms as agents
from toolbelt.web.agents import view_model as agents_view_model
from toolbelt.web.bulk import forms, view_model
from toolbelt.web.calls import view_model as calls
from toolbelt.web.kit import filters, http, model_panel, notices, responses
from toolbelt.web.switches import parts as switches
from toolbelt.web.tools import forms as tools
from toolbelt.web.tools import view_model as tools_view_model

# In the form, this stands for all agents: no agent is called so.
ALL = "*"


@require_safe
def of_agent(request: http.Request, agent: str) -> HttpResponse:
    """Ask whether the tools, or the toolkits, that the Access page shows (or of them, the selected ones) shall be set
    alike.
    """
    responses.declare(request, _home(agent))
    form = forms.SetAll(request.GET)
    what, on = form.setting()
    narrowed, picked = filters.read(access.Access(request.GET)), form.cleaned_data["pick"]
    tools_shown, toolkits_shown = access_view_model.matching(queries.access(agent), narrowed, picked)
    keys = toolkits_shown if what == "toolkits" else tools_shown
    responses.declare(request, f"{_home(agent)}?{filters.query_string(narrowed)}".rstrip("?"))
    return _asked(request, [agent], keys, on)


@require_safe
def of_tools(request: http.Request) -> HttpResponse:
    """Ask whether the selected tools, or all that the list shows, shall be set alike for some agents or all."""
    narrowed = filters.read(tools.Tools(request.GET))
    responses.declare(request, f"{reverse('web:tools')}?{filters.query_string(narrowed)}")
    form = forms.SetTools(request.GET)
    on = form.setting()[1]
    selected = form.cleaned_data["tool"]
    if not any(map(rights.flip_check(request.user), queries.agent_keys())):
        raise PermissionDenied
    if form.cleaned_data["every"]:
        may_see_calls = rights.may_read(request.user, "call_record")
        since = calls.usual_first_day(timezone.localdate()) if may_see_calls else None
        selected = [
            tool.key for tool in tools_view_model.matching(access_index.catalog_view(), narrowed, since)
        ]
    elif not selected:
        raise errors.Refused("Select tools first, or choose all matching tools.")
    if not form.cleaned_data["for"]:
        raise errors.Refused("Choose agents first, or All agents.")
    return _asked(
        request,
        _named(request, form),
        selected,
        on,
        only_having=on is False and not form.cleaned_data["also_off"],
    )


@require_safe
def of_agents(request: http.Request) -> HttpResponse:
    """Ask whether a toolkit shall be switched alike for the agents that the list shows."""
    narrowed = filters.read(agents.Agents(request.GET))
    responses.declare(request, f"{reverse('web:agents')}?{filters.query_string(narrowed)}")
    form = forms.SetAll(request.GET)
    on, toolkit = form.setting()[1], form.cleaned_data["key"]
    if not toolkit:
        raise errors.Refused("Choose a toolkit first.")
    names = [summary.agent.key for summary in agents_view_model.matching(queries.summaries(), narrowed)]
    return _asked(request, names, [toolkit], on)


@require_safe
def of_toolkit(request: http.Request, toolkit: str) -> HttpResponse:
    """Ask whether a toolkit shall be switched alike for the agents that were ticked, or for all."""
    responses.declare(request, reverse("web:toolkit", args=[toolkit]))
    form = forms.SetAll(request.GET)
    on = form.setting()[1]
    return _asked(request, _named(request, form), [toolkit], on)


@require_POST
def apply(request: http.Request) -> HttpResponse:
    """Do what was shown: all of it, or nothing."""
    home = responses.back(request, reverse("web:audit_log"))
    form, may_flip = forms.Bulk(request.POST), rights.flip_check(request.user)
    if not any(map(may_flip, queries.agent_keys())):
        raise PermissionDenied
    responses.declare(request, home)
    given = form.checked()
    seen, on = given["seen"], given["on"]
    names = list(seen)
    _refuse_others(names, may_flip)
    if len(names) == 1 and home.partition("?")[0].partition("#")[0] == _home(names[0]):
        switches.declare(request, names[0])
    change = bulk.apply(responses.write(request, given), seen=seen, on=on)
    notice = notices.Notice(
        text=view_model.summary(seen, on),
        detail=model_panel.in_short(change.effect),
        undo=change.entry,
        whole=True,
    )
    return responses.respond(request, notice, change.effect)


def _named(request: http.Request, form: forms.SetAll) -> list[str]:
    """Return the selected agents, or all; refuse a selection that the operator may not change."""
    ticked: list[str] = form.cleaned_data["for"]
    if ALL in ticked:
        return queries.agent_keys()
    if ticked:
        _refuse_others(ticked, rights.flip_check(request.user))
    return ticked or queries.agent_keys()


def _refuse_others(names: Sequence[str], may_flip: Callable[[str], bool]) -> None:
    others = [name for name in names if not may_flip(name)]
    if others:
        raise PermissionDenied(f"You do not have permission to flip switches of {', '.join(others[:10])}.")


def _asked(
    request: http.Request,
    names: Sequence[str],
    keys: Sequence[str],
    on: bool | None,
    *,
    only_having: bool = False,
) -> HttpResponse:
    may_flip = rights.flip_check(request.user)
    names = [name for name in names if may_flip(name)]
    if not names:
        raise PermissionDenied
    plan = bulk.plan(names, keys, on, only_having=only_having)
    if not plan.changes:
        return responses.respond(
            request, notices.Notice(text=view_model.no_changes(plan, names, keys), tone="refused")
        )
    question = view_model.question(
        plan,
        names,
        keys,
        queries.toolkit_keys(),
        action=reverse("web:apply_bulk"),
        back=request.answers.home,
    )
    # A dialog over the page: the list and the address stay as they are.
    return replace_url(reswap(responses.ask_confirmation(request, question), "none"), False)


def _home(agent: str) -> str:
    return reverse("web:agent_access", args=[agent])
