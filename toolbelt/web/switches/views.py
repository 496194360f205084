"""Flipping a switch, overriding a tool, resetting the overrides of a section."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_POST

from toolbelt.control import writing
from toolbelt.control.access import access_index, switches, tools_config
from toolbelt.control.reports import queries
from toolbelt.core import agents, grants, reasons
from toolbelt.web.kit import http, model_panel, notices, responses, words
from toolbelt.web.switches import forms, parts

_WRITES = {"switch": switches.flip, "override": switches.override}
# What of a first try goes with the question that is asked before the second.
_KEPT = ("on", "was", "given", "at", "next")


@require_POST
@responses.flipping
def switch(request: http.Request, agent: str, toolkit: str) -> HttpResponse:
    """Set a toolkit's switch, or clear it."""
    return _flipped(request, "switch", agent, toolkit)


@require_POST
@responses.flipping
def override(request: http.Request, agent: str, tool: str) -> HttpResponse:
    """Set a tool's override, or clear it."""
    return _flipped(request, "override", agent, tool)


@require_POST
@responses.flipping
def reset(request: http.Request, agent: str) -> HttpResponse:
    """Clear several overrides, as the page showed them: those of a section."""
    parts.declare(request, agent)
    form = forms.Reset(request.POST)
    was = form.shown()
    what = f"{words.counted(len(was), 'override')} of {agent}"
    parts.declare(request, agent, title=f"Reset {what} to default?", verb="Reset to default", fields=_KEPT)
    write = responses.write(request, form.cleaned_data)
    change = tools_config.change(write, agent, dict.fromkeys(was), was=was)
    return _answered(request, change, f"{what} reset to default", whole=True)


def _flipped(request: http.Request, family: str, agent: str, key: str) -> HttpResponse:
    parts.declare(request, agent)
    form = forms.Flip(request.POST)
    arguments = form.arguments()
    ends = arguments["ends"]
    state = grants.with_end(arguments["on"], agents.End(at=ends) if ends is not None else None)
    title, verb = words.switch_question(key, state, agent), words.switch_verb(arguments["on"])
    parts.declare(request, agent, title=title, verb=verb, fields=_KEPT)
    change = _WRITES[family](responses.write(request, form.cleaned_data), agent, key, **arguments)
    has_effect = change.effect is not None and not change.effect.is_nothing
    if arguments["on"] and not has_effect and (reason := _why_off(agent, key)):
        done = "No changes:" if change.is_nothing else "Saved, but"
        text = f"{done} {key} is not on for {agent}: {reason}."
        return responses.respond(request, notices.Notice(text=text, undo=change.entry), change.effect)
    return _answered(request, change, words.switch_result(key, state, agent))


def _why_off(agent: str, key: str) -> str:
    """Return why a tool, or every tool of a toolkit, is not on for the agent; empty if any is."""
    access = queries.access(agent)
    toolkit = access.catalog.toolkits.get(key)
    tools = access_index.members(access.catalog, toolkit) if toolkit is not None else (key,)
    decisions = [access.decision(tool) for tool in tools]
    if any(decision.state == "active" for decision in decisions):
        return ""
    return ", ".join(dict.fromkeys(map(reasons.explain, decisions[:20])))


def _answered(request: http.Request, change: writing.Change, done: str, whole: bool = False) -> HttpResponse:
    if change.is_nothing:
        return responses.respond(request, notices.Notice(text=f"No changes: {done} already."))
    detail = model_panel.in_short(change.effect)
    notice = notices.Notice(text=f"{done}.", detail=detail, undo=change.entry, whole=whole)
    return responses.respond(request, notice, change.effect)
