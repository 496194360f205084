"""How is the preview of one agent filled: what its model gets for a question, and why it gets a tool or not?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from django.utils.http import urlencode

from toolbelt.control import queries, sessions
from toolbelt.core import agents as values
from toolbelt.core import definitions, errors, reasons, resolution, surface
from toolbelt.runtime import explain, rendering, surfaces
from toolbelt.web import words
from toolbelt.web.pages import agents, model
from toolbelt.web.presenters import pieces, preview

# How many of the live sessions are offered to choose from; any other can be typed.
MOST_SESSIONS = 20
_VIEWS = {"tools": "Tools", "policy": "Policy", "json": "Provider JSON", "why": "Why?"}
_FORMATS = {
    "openai_chat": "OpenAI Chat",
    "openai_responses": "OpenAI Responses",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "vercel": "Vercel",
    "mcp": "MCP",
}


def page(agent: str, said: Mapping[str, Any], *, path: str, may_change: bool) -> preview.PreviewPage:
    """Fill the page for the question that ``said`` puts together. Raises errors.NotFound for an unknown agent."""
    view = cast(preview.View, said["view"] or "tools")
    form = said["format"] if said["format"] in rendering.FORMATS else next(iter(_FORMATS))
    asked = {
        "session": said["session"] or None,
        "request_id": said["request"] or None,
        "subagent": said["subagent"] or None,
    }
    trouble = ""
    try:
        answer = surfaces.ask(agent, message=said["message"], **asked)
    except errors.Invalid as invalid:
        trouble, asked = f"Not asked so: {invalid}", {}
        answer = surfaces.ask(agent, message=said["message"])
    about = {name: said[name] for name in ("message", "session", "request", "subagent") if said[name]}
    return preview.PreviewPage(
        agent=agents.header(queries.summary(agent)),
        question=_question(agent, said, view, form),
        trouble=trouble,
        view=view,
        model=model.view(answer, said["message"]),
        facts=_facts(answer),
        tools=_tools(answer, f"{path}?{urlencode({**about, 'view': 'why'})}") if view == "tools" else (),
        sent=_sent(answer, form) if view == "json" else None,
        why=_why(agent, said["tool"], asked, answer) if view == "why" else None,
        may_change=may_change,
    )


def _question(agent: str, said: Mapping[str, Any], view: str, form: str) -> preview.Question:
    live = sessions.listed(agent, limit=MOST_SESSIONS).sessions
    kinds = [("", "The agent itself"), *((kind, f"Its subagent: {kind}") for kind in values.KINDS)]
    return preview.Question(
        message=said["message"],
        session=said["session"],
        request=said["request"],
        tool=said["tool"],
        subagents=_choices(kinds, said["subagent"]),
        views=_choices(_VIEWS.items(), view),
        formats=_choices(((name, _FORMATS.get(name, name)) for name in _in_order()), form),
        sessions=tuple(
            pieces.Choice(value=kept.session.key, label=f"changed {words.moment(kept.changed).words}")
            for kept in live
        ),
    )


def _in_order() -> list[str]:
    """List the formats as they are offered: the best known first, then whatever else there is."""
    return [*_FORMATS, *(name for name in rendering.FORMATS if name not in _FORMATS)]


def _choices(labels: Any, chosen: str) -> tuple[pieces.Choice, ...]:
    return tuple(pieces.Choice(value=value, label=label, chosen=value == chosen) for value, label in labels)


def _facts(answer: surface.Surface) -> tuple[str, ...]:
    return (
        f"revision {words.number(answer.revision)}",
        f"fingerprint {answer.fingerprint.removeprefix('sha256:')[:12]}",
    )


def _tools(answer: surface.Surface, why: str) -> tuple[preview.ToolLine, ...]:
    """List what is sent, in the order in which it is sent."""
    sent = sorted((*answer.tools, *answer.meta_tools), key=lambda definition: definition.name)
    most = max((definition.tokens for definition in answer.tools), default=0)
    return tuple(_tool(answer, definition, most, why) for definition in sent)


def _tool(
    answer: surface.Surface, definition: definitions.Definition, most: int, why: str
) -> preview.ToolLine:
    key = definition.name
    prefix, name = model.split(key)
    decision = answer.because.get(key)
    return preview.ToolLine(
        key=key,
        prefix=prefix,
        name=name,
        reason=reasons.in_words(decision) if decision else "Toolbelt's own, to load and find others",
        tokens=words.number(definition.tokens) if decision else "",
        percent=round(100 * definition.tokens / most) if most else 0,
        own=decision is None,
        why_url=f"{why}&{urlencode({'tool': key})}" if decision else "",
    )


def _sent(answer: surface.Surface, form: str) -> preview.Sent:
    label = _FORMATS.get(form, form)
    try:
        provider = rendering.render(answer, form)
    except errors.Invalid as invalid:
        troubles = tuple(problem.message for problem in invalid.problems)
        return preview.Sent(label=label, text="", size="", troubles=troubles)
    text = json.dumps(provider, indent=2, ensure_ascii=False)
    return preview.Sent(label=label, text=text, size=words.size(len(text.encode())), troubles=())


def _why(agent: str, tool: str, asked: Mapping[str, Any], answer: surface.Surface) -> preview.Why:
    known = tuple(sorted(answer.resolution.standing.catalog.tools))
    if not tool:
        return preview.Why(known=known)
    try:
        told = explain.why(agent, tool, **asked)
    except errors.NotFound as unknown:
        return preview.Why(tool=tool, trouble=str(unknown), known=known)
    decision = told.decision
    deferred = decision.code == "budget"
    steps = [_step(step, decides=not deferred and step.question == decision.question) for step in told.trace]
    if deferred:
        steps.append(
            preview.Step(
                number="",
                asks="Does what is active fit the agent's budget?",
                state=decision.state,
                reason=reasons.in_words(decision),
                decides=True,
            )
        )
    return preview.Why(
        tool=tool,
        state=decision.state,
        reason=reasons.in_words(decision),
        steps=tuple(steps),
        known=known,
    )


def _step(step: resolution.Step, *, decides: bool) -> preview.Step:
    answer = step.answer
    return preview.Step(
        number=str(step.question),
        asks=step.asks,
        state=answer.state if answer else "",
        reason=reasons.in_words(answer) if answer else "",
        decides=decides,
    )
