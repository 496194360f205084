"""The preview: what an agent's model receives for a request, and why a tool is on or off."""

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

# The most live sessions to choose from; any other can be typed.
MAX_SESSIONS = 20
# The most changes to choose a past version of the agent from; the history has the others.
MAX_MOMENTS = 20
# The most tools on a page of the list.
TOOLS_AT_ONCE = 200
_VIEWS = {"tools": "Tools", "policy": "Policy", "json": "Provider JSON", "why": "Why?"}
_SUBAGENTS: dict[str, str] = {"": "The agent", **{kind: f"Subagent: {kind}" for kind in values.KINDS}}
_FORMATS = {
    "openai_chat": "OpenAI Chat",
    "openai_responses": "OpenAI Responses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "vercel": "Vercel",
    "mcp": "MCP",
}


class Question(forms.Form):
    """The request to preview, and the part of the result to show."""

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
    """Show the page; htmx gets only the result."""
    criteria = filters.read(Question(request.GET))
    view = criteria["view"] or "tools"
    form = criteria["format"] if criteria["format"] in rendering.FORMATS else next(iter(_FORMATS))
    current, version, past, problem = _surfaces(agent, criteria)
    summary = queries.summary(agent)
    if summary.agent.archived:
        raise errors.Archived(agent)
    query = {
        key: criteria[key] for key in ("message", "session", "request", "subagent", "at") if criteria[key]
    }
    shared = {
        "agent": agents.present(summary),
        "view": view,
        "why_url": f"{request.path}?{urlencode({**query, 'view': 'why'})}",
    }

    def preview(
        result: surface.Surface, reference: surface.Surface | None, mark: str, element_id: str
    ) -> dict[str, Any]:
        """Return a surface in this view, with the ``mark`` on tools that the ``reference`` does not have."""
        return {
            **shared,
            "model": model_panel.view(result, criteria["message"]),
            "tools": _tools(result, criteria["offset"], reference or result, mark) if view == "tools" else (),
            "sent": _sent(result, form, element_id) if view == "json" else None,
            "why": _why(result, criteria["tool"]) if view == "why" else None,
        }

    now = pieces.View(
        **preview(current, past, "added since", "provider-json"),
        criteria=criteria,
        problem=problem,
        subagents=pieces.choices(_SUBAGENTS, criteria["subagent"]),
        views=pieces.choices(_VIEWS, view),
        # The best known formats come first, then all others.
        formats=pieces.choices(
            {name: _FORMATS.get(name, name) for name in (*_FORMATS, *rendering.FORMATS)}, form
        ),
        sessions=sessions.page(agent, limit=MAX_SESSIONS).sessions,
        moments=tuple(_moment_choices(agent, criteria["at"])),
        saved=context_saved.for_agent(agent, context_use.count(current)),
        revision=current.revision,
        fingerprint=current.fingerprint.removeprefix("sha256:")[:12],
        known=sorted(current.resolution.context.catalog.tools) if view == "why" else (),
        may_change=rights.may_flip(request.user, agent),
        cut=connect.cut_instructions(current.policy)
        if view == "policy" or (view == "json" and form == "mcp")
        else (),
    )
    if view == "tools":
        longest = current if past is None or len(current.tools) >= len(past.tools) else past
        now.pages = _sent_part(longest, criteria["offset"]).pages(criteria, request.path)
    if version is not None and past is not None:
        now.past = pieces.View(
            **preview(past, current, "removed since", "provider-json-then"),
            words=compare.version(version),
            moment=version.last.at if version.last else None,
            notes=tuple(compare.past_warnings(version)),
            compare_url=compare.url(comparing.format_version(agent, version.moment), agent),
        )
    template = "preview/_previewed.html" if request.htmx else "preview/preview.html"
    return render(request, template, {"page": now})


def _surfaces(
    agent: str, criteria: Mapping[str, Any]
) -> tuple[surface.Surface, agent_versions.Version | None, surface.Surface | None, str]:
    """Return the current surface, the chosen past version of the agent and its surface, and the problems."""
    # A past version has no session, so the current one beside it is shown without a session too.
    in_session = not criteria["at"]
    options = {
        "session": (in_session and criteria["session"]) or None,
        "request_id": (in_session and criteria["request"]) or None,
        "subagent": criteria["subagent"] or None,
    }
    problem = ""
    try:
        current = surfaces.ask(agent, message=criteria["message"], **options)
    except errors.Invalid as invalid:
        problem = f"The preview ignores the session and the request: {invalid}"
        current = surfaces.ask(agent, message=criteria["message"])
    version, past = None, None
    if criteria["at"]:
        try:
            version = agent_versions.rebuild(agent, comparing.parse_moment(criteria["at"], "at"))
            past = agent_versions.surface_of(
                current.resolution.context.catalog,
                version.agent,
                criteria["message"],
                criteria["subagent"] or None,
            )
        except (errors.NotFound, errors.Invalid) as error:
            problem = f"{problem} Cannot show the earlier version: {error}".strip()
    return current, version, past, problem


def _moment_choices(agent: str, chosen: str) -> Iterator[pieces.Choice]:
    yield pieces.Choice(value="", label="Now", chosen=not chosen)
    changes = queries.changes(agent=agent, size=MAX_MOMENTS).entries
    if chosen and chosen not in {str(entry.id) for entry in changes}:
        label = f"after change {chosen}" if chosen.isdigit() else chosen
        yield pieces.Choice(value=chosen, label=label, chosen=True)
    for entry in changes:
        label = f"after {audit_words.sentence(entry)}, {words.since(entry.at)}"
        yield pieces.Choice(value=str(entry.id), label=label, chosen=str(entry.id) == chosen)


def _tools(
    result: surface.Surface, offset: int | str, reference: surface.Surface, mark: str
) -> tuple[pieces.View, ...]:
    """Return a page of the tools in the order of the request, marked if the ``reference`` does not have them."""
    maximum = max((definition.tokens for definition in result.tools), default=0)
    return tuple(
        pieces.View(
            key=tool.name,
            tokens=tool.tokens,
            decision=result.because.get(tool.name),
            percent=round(100 * tool.tokens / maximum) if maximum else 0,
            mark=mark if tool.name in result.because and tool.name not in reference.resolution.active else "",
        )
        for tool in _sent_part(result, offset).items
    )


def _sent_part(result: surface.Surface, offset: int | str) -> paging.Part[definitions.Definition]:
    """Return a page of the definitions that the model receives, in the order in which it receives them."""
    sent = sorted((*result.tools, *result.meta_tools), key=lambda definition: definition.name)
    return paging.part(sent, offset, TOOLS_AT_ONCE)


def _sent(result: surface.Surface, form: str, element_id: str) -> pieces.View:
    """Return the tools as JSON in the format of a provider, or the ``problems`` that prevent it."""
    view = pieces.View(id=element_id, label=_FORMATS.get(form, form), text="")
    try:
        view.text = json.dumps(rendering.render(result, form), indent=2, ensure_ascii=False)
    except errors.Invalid as invalid:
        view.problems = tuple(problem.message for problem in invalid.problems)
    view.size = len(view.text.encode())
    return view


def _why(result: surface.Surface, tool: str) -> pieces.View:
    """Return why a tool is on or off, with the steps of the decision; the agent's budget is applied last.

    If there is no such tool, there is only a ``problem``; without a tool, there is neither.
    """
    context, view = result.resolution.context, pieces.View(tool=tool)
    if tool in context.catalog.tools:
        decision = result.resolution.decision(tool)
        view.decision = resolution.as_shown(context.catalog, decision)
        view.decisive, view.steps = decision.rule_number, resolution.trace(context, tool)
        if decision.code == "budget":
            question = "Do the tools that are on fit the agent's budget?"
            view.decisive = 0
            view.steps += (
                resolution.Step(0, question, rules.Answer(decision.state, decision.code, decision.origin)),
            )
    elif tool:
        view.problem = str(errors.NotFound("tool", tool, context.catalog.tools))
    return view
