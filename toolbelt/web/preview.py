"""What the model of one agent gets for a question that an operator puts together, and why it gets a tool or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from toolbelt.control.agents import agent_versions, comparing, sessions
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.core import definitions, errors, resolution, rules, surface
from toolbelt.core import sessions as conversations
from toolbelt.runtime import context_use, rendering, surfaces
from toolbelt.web import agents, connect
from toolbelt.web.compare import view_model as compare
from toolbelt.web.kit import (
    audit_words,
    context_saved,
    fields,
    filters,
    http,
    model_panel,
    paging,
    pieces,
    words,
)

# How many of the live sessions are offered to choose from; any other can be typed.
MAX_SESSIONS = 20
# How many of the newest changes are offered to look at the agent after them; any other one is found in its history.
MAX_MOMENTS = 20
# How many of the tools that are sent are listed at once.
TOOLS_AT_ONCE = 200
_VIEWS = {"tools": "Tools", "policy": "Policy", "json": "Provider JSON", "why": "Why?"}
_SUBAGENTS = {"": "The agent", **{kind: f"Subagent: {kind}" for kind in values.KINDS}}
_FORMATS = {
    "openai_chat": "OpenAI Chat",
    "openai_responses": "OpenAI Responses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "vercel": "Vercel",
    "mcp": "MCP",
}


class Question(forms.Form):
    """What is asked of one agent's preview, and which part of the answer is wanted."""

    message = forms.CharField(required=False, max_length=4000)
    session = forms.CharField(required=False, max_length=conversations.MAX_ID_LENGTH)
    request = forms.CharField(required=False, max_length=conversations.MAX_ID_LENGTH)
    subagent = forms.ChoiceField(required=False, choices=[(kind, kind) for kind in values.KINDS])
    view = forms.ChoiceField(required=False, choices=list(_VIEWS.items()))
    format = forms.CharField(required=False, max_length=40)
    tool = forms.CharField(required=False, max_length=64)
    at = forms.CharField(required=False, max_length=40)
    offset = fields.Offset()


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the page; htmx receives only the result."""
    given = filters.read(Question(request.GET))
    view = given["view"] or "tools"
    form = given["format"] if given["format"] in rendering.FORMATS else next(iter(_FORMATS))
    answer, version, then, trouble = _answers(agent, given)
    summary = queries.summary(agent)
    if summary.agent.archived:
        raise errors.Archived(agent)
    about = {name: given[name] for name in ("message", "session", "request", "subagent", "at") if given[name]}
    shared = {
        "agent": agents.present(summary),
        "view": view,
        "why_url": f"{request.path}?{urlencode({**about, 'view': 'why'})}",
    }

    def preview(
        shown: surface.Surface, other: surface.Surface | None, mark: str, place: str
    ) -> dict[str, Any]:
        """Return a surface in this view; the ``mark`` is on the tools that the ``other`` one does not have."""
        return {
            **shared,
            "model": model_panel.view(shown, given["message"]),
            "tools": _tools(shown, given["offset"], other or shown, mark) if view == "tools" else (),
            "sent": _sent(shown, form, place) if view == "json" else None,
            "why": _why(shown, given["tool"]) if view == "why" else None,
        }

    now = pieces.View(
        **preview(answer, then, "added since", "provider-json"),
        given=given,
        trouble=trouble,
        subagents=pieces.choices(_SUBAGENTS, given["subagent"]),
        views=pieces.choices(_VIEWS, view),
        # The best known first, then whatever else there is.
        formats=pieces.choices(
            {name: _FORMATS.get(name, name) for name in (*_FORMATS, *rendering.FORMATS)}, form
        ),
        sessions=sessions.page(agent, limit=MAX_SESSIONS).sessions,
        moments=tuple(_moments(agent, given["at"])),
        saved=context_saved.for_agent(agent, context_use.count(answer)),
        revision=answer.revision,
        fingerprint=answer.fingerprint.removeprefix("sha256:")[:12],
        known=sorted(answer.resolution.context.catalog.tools) if view == "why" else (),
        may_change=rights.may_flip(request.user, agent),
        cut=connect.cut_instructions(answer.policy)
        if view == "policy" or (view == "json" and form == "mcp")
        else (),
    )
    if view == "tools":
        longest = answer if then is None or len(answer.tools) >= len(then.tools) else then
        now.pages = _sent_part(longest, given["offset"]).pages(given, request.path)
    if version is not None and then is not None:
        now.past = pieces.View(
            **preview(then, answer, "removed since", "provider-json-then"),
            words=compare.version(version),
            moment=version.last.at if version.last else None,
            notes=tuple(compare.past_warnings(version)),
            compare_url=compare.url(comparing.format_version(agent, version.moment), agent),
        )
    template = "preview/_previewed.html" if request.htmx else "preview/preview.html"
    return render(request, template, {"page": now})


def _answers(
    agent: str, given: Mapping[str, Any]
) -> tuple[surface.Surface, agent_versions.Version | None, surface.Surface | None, str]:
    """Return the surface now, the past version of the agent and its surface if one is chosen, and the problems."""
    # A past version is outside any session, and so is the current one beside it.
    in_session = not given["at"]
    asked = {
        "session": (in_session and given["session"]) or None,
        "request_id": (in_session and given["request"]) or None,
        "subagent": given["subagent"] or None,
    }
    trouble = ""
    try:
        answer = surfaces.ask(agent, message=given["message"], **asked)
    except errors.Invalid as invalid:
        trouble = f"The preview ignores the session and the request: {invalid}"
        answer = surfaces.ask(agent, message=given["message"])
    version, then = None, None
    if given["at"]:
        try:
            version = agent_versions.rebuild(agent, comparing.parse_moment(given["at"], "at"))
            then = agent_versions.surface_of(
                answer.resolution.context.catalog,
                version.agent,
                given["message"],
                given["subagent"] or None,
            )
        except (errors.NotFound, errors.Invalid) as error:
            trouble = f"{trouble} Cannot show the earlier version: {error}".strip()
    return answer, version, then, trouble


def _moments(agent: str, chosen: str) -> Iterator[pieces.Choice]:
    yield pieces.Choice(value="", label="Now", chosen=not chosen)
    changes = queries.changes(agent=agent, size=MAX_MOMENTS).entries
    if chosen and chosen not in {str(entry.id) for entry in changes}:
        number = chosen.isdigit()
        yield pieces.Choice(value=chosen, label=f"after change {chosen}" if number else chosen, chosen=True)
    for entry in changes:
        label = f"after {audit_words.sentence(entry)}, {words.since(entry.at)}"
        yield pieces.Choice(value=str(entry.id), label=label, chosen=str(entry.id) == chosen)


def _tools(
    answer: surface.Surface, offset: int | str, other: surface.Surface, mark: str
) -> tuple[pieces.View, ...]:
    """List what is sent, in the order in which it is sent; marked, what ``other`` does not have."""
    maximum = max((definition.tokens for definition in answer.tools), default=0)
    return tuple(
        pieces.View(
            key=tool.name,
            tokens=tool.tokens,
            decision=answer.because.get(tool.name),
            percent=round(100 * tool.tokens / maximum) if maximum else 0,
            mark=mark if tool.name in answer.because and tool.name not in other.resolution.active else "",
        )
        for tool in _sent_part(answer, offset).items
    )


def _sent_part(answer: surface.Surface, offset: int | str) -> paging.Part[definitions.Definition]:
    """Return the part of what is sent that is shown, in the order in which it is sent."""
    sent = sorted((*answer.tools, *answer.meta_tools), key=lambda definition: definition.name)
    return paging.part(sent, offset, TOOLS_AT_ONCE)


def _sent(answer: surface.Surface, form: str, place: str) -> pieces.View:
    """Return what a provider is sent, as JSON, or the ``troubles`` for which it would not take it."""
    sent = pieces.View(id=place, label=_FORMATS.get(form, form), text="")
    try:
        sent.text = json.dumps(rendering.render(answer, form), indent=2, ensure_ascii=False)
    except errors.Invalid as invalid:
        sent.troubles = tuple(problem.message for problem in invalid.problems)
    sent.size = len(sent.text.encode())
    return sent


def _why(answer: surface.Surface, tool: str) -> pieces.View:
    """Return why a tool is on or off, with the steps that lead to it; the agent's budget is applied last.

    If there is no such tool, it is a ``trouble``, and there is neither before one is named.
    """
    context, why = answer.resolution.context, pieces.View(tool=tool)
    if tool in context.catalog.tools:
        why.decision = decision = answer.resolution.decision(tool)
        why.decisive, why.steps = decision.rule_number, resolution.trace(context, tool)
        if decision.code == "budget":
            question = "Do the tools that are on fit the agent's budget?"
            why.decisive = 0
            why.steps += (
                resolution.Step(0, question, rules.Answer(decision.state, decision.code, decision.origin)),
            )
    elif tool:
        why.trouble = str(errors.NotFound("tool", tool, context.catalog.tools))
    return why
