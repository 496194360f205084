"""Bulk actions: a confirmation shows the changes for all matching entries, then exactly these are applied."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import replace_url, reswap

from toolbelt.control.access import access_index, bulk
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import errors, grants
from toolbelt.web import agents, switches
from toolbelt.web.access import views as access
from toolbelt.web.kit import fields, filters, http, model_panel, notices, pieces, responses, titles, words
from toolbelt.web.kit import forms as kit
from toolbelt.web.tools import listing as tools

# The most agents or tools that a confirmation lists.
MAX_LINES = 100
# In the form, this means all agents: no agent can have this key.
ALL_AGENTS = "*"


class SetAll(kit.Change):
    """The state to set (``set``: ``tools-true``, ``toolkits-unset``), the agents, and the toolkit;
    ``pick`` names the selected sections of the Access page.
    """

    set = forms.ChoiceField(
        choices=[(f"{kind}-{word}",) * 2 for kind in ("tools", "toolkits") for word in words.STORED.values()]
    )
    key = forms.CharField(required=False, max_length=200)
    pick = fields.Names(required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # A keyword, so it cannot be an attribute of the class.
        self.fields["for"] = fields.Names(required=False)

    def setting(self) -> tuple[str, bool | None]:
        """Return the target (``tools`` or ``toolkits``), and its new state."""
        target, _, state = self.checked()["set"].partition("-")
        return target, words.from_form_value(state)


class SetTools(SetAll):
    """The tools to set (``tool``, or ``every`` matching one), and the agents.

    Turning off stores nothing for agents without the tool, unless ``also_off`` is set.
    """

    tool = fields.Names(required=False)
    every = forms.BooleanField(required=False)
    also_off = forms.BooleanField(required=False)


class Bulk(kit.Change):
    """The state to set, and the states that the confirmation showed (``seen``, by agent and key)."""

    on = fields.State()
    seen = fields.Document()

    def clean_seen(self) -> dict[str, dict[str, grants.SwitchState]]:
        """Accept only states, by agent and by the key of the toolkit or tool."""
        seen = self.cleaned_data["seen"]
        is_valid = isinstance(seen, dict) and all(
            isinstance(keys, dict)
            # On, off, unset, or a state with its end.
            and all(state is None or isinstance(state, bool | dict) for state in keys.values())
            for keys in seen.values()
        )
        if not is_valid or not seen:
            raise forms.ValidationError("The request does not match the page: reload it and try again.")
        return dict(seen)


@require_safe
def of_agent(request: http.Request, agent: str) -> HttpResponse:
    """Ask for confirmation to set the tools or toolkits that the Access page shows, or those of selected sections."""
    criteria = filters.read(access.Access(request.GET))
    responses.declare(request, filters.address(_home(agent), criteria))
    form = SetAll(request.GET)
    target, on = form.setting()
    matches = access.matching(queries.access(agent), criteria, form.cleaned_data["pick"])
    return _ask(request, [agent], matches[target], on)


@require_safe
def of_tools(request: http.Request) -> HttpResponse:
    """Ask for confirmation to set the selected or all matching tools, for the selected or all agents."""
    criteria = filters.read(tools.Tools(request.GET))
    responses.declare(request, filters.address(reverse("web:tools"), criteria))
    form = SetTools(request.GET)
    on = form.setting()[1]
    selected = form.cleaned_data["tool"]
    if not any(map(rights.flip_check(request.user), queries.agent_keys())):
        raise PermissionDenied
    if form.cleaned_data["every"]:
        matching = tools.matching(access_index.catalog_view(), criteria, tools.first_day(request))
        selected = [tool.key for tool in matching]
    elif not selected:
        raise errors.Refused("Select tools first, or choose all matching tools.")
    if not form.cleaned_data["for"]:
        raise errors.Refused("Choose agents first, or All agents.")
    return _ask(
        request,
        _agents(request, form),
        selected,
        on,
        only_having=on is False and not form.cleaned_data["also_off"],
    )


@require_safe
def of_agents(request: http.Request) -> HttpResponse:
    """Ask for confirmation to switch a toolkit for all matching agents."""
    criteria = filters.read(agents.Agents(request.GET))
    responses.declare(request, filters.address(reverse("web:agents"), criteria))
    form = SetAll(request.GET)
    on, toolkit = form.setting()[1], form.cleaned_data["key"]
    if not toolkit:
        raise errors.Refused("Choose a toolkit first.")
    matches = [summary.agent.key for summary in agents.matching(queries.summaries(), criteria)]
    return _ask(request, matches, [toolkit], on)


@require_safe
def of_toolkit(request: http.Request, toolkit: str) -> HttpResponse:
    """Ask for confirmation to switch a toolkit for the selected agents, or for all."""
    responses.declare(request, reverse("web:toolkit", args=[toolkit]))
    form = SetAll(request.GET)
    on = form.setting()[1]
    return _ask(request, _agents(request, form), [toolkit], on)


@require_POST
def apply(request: http.Request) -> HttpResponse:
    """Apply the confirmed changes, all of them or none."""
    home = responses.back_url(request, reverse("web:audit_log"))
    form, may_flip = Bulk(request.POST), rights.flip_check(request.user)
    if not any(map(may_flip, queries.agent_keys())):
        raise PermissionDenied
    responses.declare(request, home)
    data = form.checked()
    seen, on = data["seen"], data["on"]
    names = list(seen)
    _check_agents(names, may_flip)
    if len(names) == 1 and home.partition("?")[0].partition("#")[0] == _home(names[0]):
        switches.declare(request, names[0])
    change = bulk.apply(responses.write(request, data), seen=seen, on=on)
    count = words.counted(sum(len(keys) for keys in seen.values()), "change")
    text = f"{count} for {_agents_label(names)}: {words.state(on)}."
    detail = model_panel.summarize(change.effect)
    notice = notices.Notice(text=text, detail=detail, undo=change.entry, whole=True)
    return responses.respond(request, notice, change.effect)


def _agents(request: http.Request, form: SetAll) -> list[str]:
    """Return the selected agents, or all. Raise PermissionDenied if the user may not change a selected one."""
    selected: list[str] = form.cleaned_data["for"]
    if ALL_AGENTS in selected:
        return queries.agent_keys()
    if selected:
        _check_agents(selected, rights.flip_check(request.user))
    return selected or queries.agent_keys()


def _check_agents(names: Sequence[str], may_flip: Callable[[str], bool]) -> None:
    forbidden = [name for name in names if not may_flip(name)]
    if forbidden:
        raise PermissionDenied(f"You do not have permission to flip switches of {', '.join(forbidden[:10])}.")


def _ask(
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
        return responses.respond(request, notices.Notice(text=_no_changes(plan, names, keys), tone="refused"))
    response = responses.ask(
        request,
        f"{_title(on, keys)} for {_agents_label(names)}?",
        f"{words.switch_verb(on)}: {words.counted(plan.changes, 'change')}",
        _reasons(plan),
        [("on", words.form_value(on)), ("seen", json.dumps(plan.seen))],
        home=request.answers.home,
        action=reverse("web:apply_bulk"),
        facts=tuple(_facts(plan, len(names) * len(keys))),
        effect=_effect(plan),
        differences=tuple(itertools.islice(_differences(plan), MAX_LINES)),
        dangerous=any(part.effect.added and part.reasons for part in plan.possible),
    )
    # A dialog over the page: the list and the address stay as they are.
    return replace_url(reswap(response, "none"), False)


def _home(agent: str) -> str:
    return reverse("web:agent_access", args=[agent])


def _agents_label(names: Sequence[str]) -> str:
    return titles.label("agent", names[0]) if len(names) == 1 else f"{len(names)} agents"


def _no_changes(plan: bulk.Plan, names: Sequence[str], keys: Sequence[str]) -> str:
    """Return the reason why there is nothing to change."""
    if plan.refused:
        return " ".join(["Nothing was changed.", *(part.refused for part in plan.refused[:3])])
    if not keys:
        return "No changes: the list is empty."
    if plan.skipped:
        return "No changes: nothing grants the selected agents any of these tools."
    subject = "it is" if plan.unchanged == 1 else f"all {words.number(plan.unchanged)} are"
    return f"No changes: {subject} already {words.state(plan.on)}."


def _title(on: bool | None, keys: Sequence[str]) -> str:
    if len(keys) == 1:
        target = titles.label("toolkit", keys[0])
    else:
        toolkit_count = len(set(keys).intersection(queries.toolkit_keys()))
        parts = [words.counted(toolkit_count, "toolkit")] if toolkit_count else []
        parts += [words.counted(len(keys) - toolkit_count, "tool")] if len(keys) > toolkit_count else []
        target = " and ".join(parts)
    return f"Reset {target} to default" if on is None else f"{words.switch_verb(on)} {target}"


def _facts(plan: bulk.Plan, total: int) -> Iterator[str]:
    if plan.skipped:
        yield (
            f"{words.number(plan.skipped)} of {words.number(total)} {'is' if plan.skipped == 1 else 'are'} left out:"
            " nothing grants the agent the tool."
        )
    if plan.unchanged:
        yield f"{plan.unchanged} of {total} {'is' if plan.unchanged == 1 else 'are'} already {words.state(plan.on)}."
    if len(plan.parts) > 1 and (unaffected := sum(part.effect.is_nothing for part in plan.possible)):
        yield f"For {words.counted(unaffected, 'agent')}, nothing changes for the model."


def _reasons(plan: bulk.Plan) -> list[str]:
    reasons = [f"Skipped: {part.refused}" for part in plan.refused]
    several = len(plan.parts) > 1
    for part in plan.possible:
        for reason in part.reasons:
            text = words.with_few_names(reason)
            reasons.append(f"{part.agent}: {text}" if several and not reason.startswith(part.agent) else text)
    return reasons


def _effect(plan: bulk.Plan) -> pieces.Effect:
    summed = [part.effect for part in plan.possible]
    breaks = [part for part in ("tools", "system text") if any(part in effect.breaks for effect in summed)]
    policy = model_panel.notes(summed[0].policy) if len(summed) == 1 else ()
    on_request = tuple(
        model_panel.on_request(
            sorted({key for effect in summed for key in effect.on_request_added}),
            sorted({key for effect in summed for key in effect.on_request_removed}),
        )
    )
    no_change = () if breaks or on_request else ("no change for the model",)
    sees = model_panel.consequences(breaks, plan.conversations)
    return pieces.Effect.of(summed, (*policy, *on_request, *sees, *no_change))


def _differences(plan: bulk.Plan) -> Iterator[pieces.Difference]:
    if len(plan.parts) == 1 and plan.possible:
        for key, was in plan.possible[0].before.items():
            yield pieces.Difference(
                label=key, is_tool=True, before=words.state(was), after=words.state(plan.on)
            )
        return
    affected = (part for part in plan.possible if not part.effect.is_nothing)
    yield from (model_panel.difference(part.agent, part.effect) for part in affected)
