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

from toolbelt.control import past as history
from toolbelt.control import trials
from toolbelt.control.agents import agent_versions, comparing, session_changes
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.core import definitions, errors, rules, surface
from toolbelt.core import sessions as conversations
from toolbelt.core.rules import resolution
from toolbelt.runtime import surfaces
from toolbelt.runtime.records import context_use
from toolbelt.runtime.surfaces import rendering
from toolbelt.web import agents, connect, conversation_preview
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
_VIEWS = {
    "tools": "Tools",
    "policy": "Policy",
    "json": "Provider JSON",
    "conversation": "Conversation",
    "why": "Why?",
}
_SUBAGENTS: dict[str, str] = {"": "The agent", **{kind: f"Subagent: {kind}" for kind in values.KINDS}}
_FORMATS = {
    "openai_chat": "OpenAI Chat",
    "openai_responses": "OpenAI Responses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "bedrock": "Amazon Bedrock",
    "mistral": "Mistral",
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
    model = forms.ChoiceField(
        required=False, choices=[(name, model.label) for name, model in conversation_preview.MODELS.items()]
    )
    tool = forms.CharField(required=False, max_length=64)
    at = forms.CharField(required=False, max_length=40)
    offset = fields.Offset()


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the page; htmx gets only the result."""
    template = "preview/_previewed.html" if request.htmx else "preview/preview.html"
    return render(request, template, {"page": _Page(request, agent)})


class _Page(pieces.Page):
    """The question, and its result now and, if it is asked for, at an earlier time."""

    def __init__(self, request: http.Request, agent: str) -> None:
        self.criteria = criteria = filters.read(Question(request.GET))
        self.view = criteria["view"] or "tools"
        form = criteria["format"] if criteria["format"] in rendering.FORMATS else next(iter(_FORMATS))
        current, version, past, self.problem = _surfaces(agent, criteria)
        summary = queries.summary(agent)
        if summary.agent.archived:
            raise errors.Archived(agent)
        query = {
            key: criteria[key] for key in ("message", "session", "request", "subagent", "at") if criteria[key]
        }
        self.agent = agents.PageHeader(summary)
        self.why_url = f"{request.path}?{urlencode({**query, 'view': 'why'})}"
        self.subagents = pieces.choices(_SUBAGENTS, criteria["subagent"])
        self.views = pieces.choices(_VIEWS, self.view)
        # The best known formats come first, then all others.
        self.formats = pieces.choices(
            {name: _FORMATS.get(name, name) for name in (*_FORMATS, *rendering.FORMATS)}, form
        )
        model = criteria["model"] or next(iter(conversation_preview.MODELS))
        labels = {name: known.label for name, known in conversation_preview.MODELS.items()}
        self.models = pieces.choices(labels, model)
        self.conversation = (
            conversation_preview.Conversation(current, model, version, criteria["subagent"] or None)
            if self.view == "conversation"
            else None
        )
        self.sessions = session_changes.page(agent, limit=MAX_SESSIONS).sessions
        self.moments = tuple(_moment_choices(agent, criteria["at"]))
        self.saved = context_saved.OfAgent(agent, context_use.count(current))
        self.revision = current.revision
        self.fingerprint = current.fingerprint.removeprefix("sha256:")[:12]
        self.known = sorted(current.resolution.context.catalog.tools) if self.view == "why" else ()
        self.may_change = rights.may_flip(request.user, agent)
        arm = current.resolution.context.agent.arm
        # The roll-out in whose new arm the session is.
        self.trial = None if arm is None else trials.numbered(arm.trial)
        self.now = _Shown(current, self.view, form, criteria, past or current, "added since")
        if self.view == "policy" or (self.view == "json" and form == "mcp"):
            self.now.cut = connect.cut_instructions(current.policy)
        longest = current if past is None or len(current.tools) >= len(past.tools) else past
        part = _sent_part(longest, criteria["offset"])
        self.pages = part.pages(criteria, request.path) if self.view == "tools" else None
        self.past = (
            _Past(past, self.view, form, criteria, current, version)
            if past is not None and version is not None and self.conversation is None
            else None
        )


class _Shown(pieces.View):
    """A surface in the chosen view, with the ``mark`` on tools that the ``reference`` does not have."""

    words = ""
    cut: tuple[str, ...] = ()

    def __init__(
        self,
        result: surface.Surface,
        view: str,
        form: str,
        criteria: Mapping[str, Any],
        reference: surface.Surface,
        mark: str,
        element_id: str = "provider-json",
    ) -> None:
        self.model = model_panel.Panel(result, criteria["message"])
        self.tools = _tools(result, criteria["offset"], reference, mark) if view == "tools" else []
        self.sent = _Sent(result, form, element_id) if view == "json" else None
        self.why = _Why(result, criteria["tool"]) if view == "why" else None


class _Past(_Shown):
    """The surface of an earlier version of the agent."""

    def __init__(
        self,
        result: surface.Surface,
        view: str,
        form: str,
        criteria: Mapping[str, Any],
        current: surface.Surface,
        version: agent_versions.Version,
    ) -> None:
        super().__init__(result, view, form, criteria, current, "removed since", "provider-json-then")
        agent = result.resolution.context.agent.key
        self.words = compare.version(version)
        self.moment = version.last.at if version.last else None
        self.notes = tuple(compare.past_warnings(version))
        self.compare_url = compare.url(comparing.format_version(agent, version.moment), agent)


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
            version = agent_versions.rebuild(agent, history.parse(criteria["at"], "at"))
            past = agent_versions.surface_of(version, criteria["message"], criteria["subagent"] or None)
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


class _Tool(pieces.View):
    """A tool as it is sent; without a ``decision``, it is Toolbelt's own."""

    def __init__(
        self, tool: definitions.Definition, decision: resolution.Decision | None, maximum: int, mark: str
    ) -> None:
        self.key, self.tokens, self.decision, self.mark = tool.name, tool.tokens, decision, mark
        self.percent = round(100 * tool.tokens / maximum) if maximum else 0


def _tools(result: surface.Surface, offset: int | str, reference: surface.Surface, mark: str) -> list[_Tool]:
    """Return a page of the tools in the order of the request, marked if the ``reference`` does not have them."""
    maximum = max((definition.tokens for definition in result.tools), default=0)
    tools = []
    for tool in _sent_part(result, offset).items:
        decision = result.because.get(tool.name)
        is_new = decision is not None and tool.name not in reference.resolution.active
        tools.append(_Tool(tool, decision, maximum, mark if is_new else ""))
    return tools


def _sent_part(result: surface.Surface, offset: int | str) -> paging.Part[definitions.Definition]:
    """Return a page of the definitions that the model receives, in the order in which it receives them."""
    sent = sorted((*result.tools, *result.meta_tools), key=lambda definition: definition.name)
    return paging.part(sent, offset, TOOLS_AT_ONCE)


class _Sent(pieces.View):
    """The tools as JSON in the format of a provider, or the ``problems`` that prevent it."""

    def __init__(self, result: surface.Surface, form: str, element_id: str) -> None:
        self.id, self.label, self.text = element_id, _FORMATS.get(form, form), ""
        self.problems: tuple[str, ...] = ()
        try:
            self.text = json.dumps(rendering.render(result, form), indent=2, ensure_ascii=False)
        except errors.Invalid as invalid:
            self.problems = tuple(problem.message for problem in invalid.problems)
        self.size = len(self.text.encode())


class _Why(pieces.View):
    """Why a tool is on or off, with the steps of the decision; the agent's budget is applied last.

    If there is no such tool, there is only a ``problem``; without a tool, there is neither.
    """

    decision: resolution.Decision | None = None
    steps: tuple[resolution.Step, ...] = ()
    decisive = 0
    problem = ""

    def __init__(self, result: surface.Surface, tool: str) -> None:
        context, self.tool = result.resolution.context, tool
        if tool in context.catalog.tools:
            decision = result.resolution.decision(tool)
            self.decision = resolution.as_shown(context.catalog, decision)
            self.decisive, self.steps = decision.rule_number, resolution.trace(context, tool)
            if decision.code == "budget":
                question = "Do the tools that are on fit the agent's budget?"
                answer = rules.Answer(decision.state, decision.code, decision.origin)
                self.decisive, self.steps = 0, (*self.steps, resolution.Step(0, question, answer))
        elif tool:
            self.problem = str(errors.NotFound("tool", tool, context.catalog.tools))
