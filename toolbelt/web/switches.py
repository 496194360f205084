"""Flipping a switch, overriding a tool, and resetting the overrides of a section."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from toolbelt.control.access import access_index, switches, tools_config
from toolbelt.control.reports import queries
from toolbelt.core import agents, effects, grants
from toolbelt.core.rules import reasons
from toolbelt.web.access import views as access
from toolbelt.web.kit import fields, http, model_panel, notices, periods, pieces, responses, titles, words
from toolbelt.web.kit import forms as kit
from toolbelt.web.toolkits import listing as toolkits

_WRITES = {"switch": switches.flip, "override": switches.override}
# The fields that a confirmation repeats.
_REPEATED = ("on", "was", "given", "at", "next")


class Flip(kit.Change):
    """A flip: the new state (``on``), and the state that the page showed (``was``).

    A button that sets a state for a limited time sends it in one word (``given``: ``true-2h``), which replaces ``on``;
    ``true-at`` ends at the moment ``at``, in the reader's time zone.
    """

    on = forms.ChoiceField(choices=[(word, word) for word in words.STORED.values()], required=False)
    was = fields.State()
    given = forms.ChoiceField(
        required=False,
        choices=[(f"{on}-{span}",) * 2 for on in ("true", "false") for span in (*periods.SPANS, "at")],
    )
    at = forms.DateTimeField(required=False, input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])

    def clean(self) -> dict[str, Any]:
        """Require a new state, and an end time if the state ends at one."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        timed = cleaned.get("given")
        if not timed and not cleaned.get("on") and "on" not in self.errors:
            self.add_error("on", "This field is required.")
        if timed and timed.endswith("-at") and cleaned.get("at") is None and "at" not in self.errors:
            self.add_error("at", "Enter an end time.")
        return cleaned

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of control.switches.flip and override."""
        data = self.checked()
        on, _, span = (data["given"] or data["on"]).partition("-")
        ends = data["at"] if span == "at" else periods.end(span) if span else None
        return {"on": words.from_form_value(on), "ends": ends, "was": data["was"]}


class Reset(kit.Change):
    """The overrides to reset, as the page showed them."""

    # Such as github__issue_read=true, whether the tool exists or not.
    was = fields.Names(".+=(true|false)")

    def overrides(self) -> dict[str, bool | None]:
        """Return the overrides that the page showed, by their tools."""
        pairs = (pair.rpartition("=") for pair in self.checked()["was"])
        return {tool: words.from_form_value(value) for tool, _, value in pairs}


def declare(request: http.Request, agent: str, home: str = "", **answers: Any) -> None:
    """Declare that htmx gets the changed parts of the agent's page, and a browser goes there, or to ``home``."""
    swap = functools.partial(render_partial, request, agent)
    responses.declare(request, home or reverse("web:agent_access", args=[agent]), parts=swap, **answers)


def render_partial(
    request: http.Request,
    agent: str,
    notice: notices.Notice,
    change: effects.Effect | None,
    status: int = 200,
    confirmation: notices.Confirmation | None = None,
) -> HttpResponse:
    """Return the parts of the Access page that the change affects, and a confirmation if there is one.

    A page that shows the agent's switches as ``cells`` of a table sends their toolkits, and gets these cells.
    """
    cells = request.POST.get("cells", "").split()
    if not cells:
        return access.render_partial(request, agent, notice, change, status, confirmation)
    # Read before the data, so that the data is never older than the revision.
    request.counts = counts = queries.count()
    index = access_index.load()
    kits = [index.catalog.toolkits[key] for key in cells if key in index.catalog.toolkits]
    accesses = [access for access in index.agents if access.agent.key == agent]
    page = _Cells(notice)
    page.cells = [toolkits.Cell(access, kit, may_change=True) for access in accesses for kit in kits]
    page.toolkits = [toolkits.Line(toolkits.use_of(index, kit)) for kit in kits]
    context = {"page": page, "confirmation": confirmation}
    response = render(request, "toolkits/_answer.html", context, status=status)
    # Other parts of the page that depend on the agent reload themselves.
    return access.as_of(trigger_client_event(response, "flipped"), agent, counts.revision)


class _Cells(pieces.Page):
    """The cells of a table of switches that a change affects."""

    may_change = True
    cells: Sequence[toolkits.Cell] = ()
    toolkits: Sequence[toolkits.Line] = ()

    def __init__(self, notice: notices.Notice) -> None:
        self.notice = notice


@require_POST
@responses.require_flip
def switch(request: http.Request, agent: str, toolkit: str) -> HttpResponse:
    """Set a toolkit's switch, or clear it."""
    return _flip(request, "switch", agent, toolkit)


@require_POST
@responses.require_flip
def override(request: http.Request, agent: str, tool: str) -> HttpResponse:
    """Set a tool's override, or clear it."""
    return _flip(request, "override", agent, tool)


@require_POST
@responses.require_flip
def reset(request: http.Request, agent: str) -> HttpResponse:
    """Clear several overrides, as the page showed them: those of a section."""
    declare(request, agent)
    form = Reset(request.POST)
    was = form.overrides()
    target = f"{words.counted(len(was), 'override')} of {titles.label('agent', agent)}"
    declare(request, agent, title=f"Reset {target} to default?", verb="Reset to default", fields=_REPEATED)
    write = responses.write(request, form.cleaned_data)
    change = tools_config.change(write, agent, dict.fromkeys(was), was=was)
    detail = model_panel.summarize(change.effect)
    return responses.respond_changed(request, change, f"{target} reset to default", detail=detail, whole=True)


def _flip(request: http.Request, family: str, agent: str, key: str) -> HttpResponse:
    declare(request, agent)
    label = titles.label("toolkit", key) if family == "switch" else key
    form = Flip(request.POST)
    arguments = form.arguments()
    ends = arguments["ends"]
    state = grants.with_end(arguments["on"], agents.End(at=ends) if ends is not None else None)
    agent_label = titles.label("agent", agent)
    title, verb = words.switch_question(label, state, agent_label), words.switch_verb(arguments["on"])
    declare(request, agent, title=title, verb=verb, fields=_REPEATED)
    change = _WRITES[family](responses.write(request, form.cleaned_data), agent, key, **arguments)
    has_effect = change.effect is not None and not change.effect.is_nothing
    if arguments["on"] and not has_effect and (reason := _why_off(agent, key)):
        result = "No changes:" if change.is_nothing else "Saved, but"
        text = f"{result} {label} is not on for {agent_label}: {reason}."
        return responses.respond(request, notices.Notice(text=text, undo=change.entry), change.effect)
    result, detail = words.switch_result(label, state, agent_label), model_panel.summarize(change.effect)
    return responses.respond_changed(request, change, result, detail=detail)


def _why_off(agent: str, key: str) -> str:
    """Return why a tool, or every tool of a toolkit, is not on for the agent; empty if any is."""
    access = queries.access(agent)
    toolkit = access.catalog.toolkits.get(key)
    tools = access_index.members(access.catalog, toolkit) if toolkit is not None else (key,)
    decisions = [access.decision(tool) for tool in tools]
    if any(decision.state == "active" for decision in decisions):
        return ""
    return ", ".join(dict.fromkeys(map(reasons.explain, decisions[:20])))
