"""How is the preview of one agent filled: what its model gets for a question, and why it gets a tool or not?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from django.utils.http import urlencode

from toolbelt.control import comparing, past, queries, sessions
from toolbelt.core import agents as values
from toolbelt.core import definitions, errors, reasons, resolution, surface
from toolbelt.runtime import explain, rendering, surfaces
from toolbelt.web import words
from toolbelt.web.pages import agents, clients, compare, entries, model, paging
from toolbelt.web.presenters import pieces, preview

# How many of the live sessions are offered to choose from; any other can be typed.
MOST_SESSIONS = 20
# How many of the newest changes are offered to look at the agent after them; any other one is found in its history.
MOST_MOMENTS = 20
# How many of the tools that are sent are listed at once.
TOOLS_AT_ONCE = 200
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
    # A past version is outside any session, and what stands beside it, too.
    in_session = not said["at"]
    asked = {
        "session": (in_session and said["session"]) or None,
        "request_id": (in_session and said["request"]) or None,
        "subagent": said["subagent"] or None,
    }
    trouble = ""
    try:
        answer = surfaces.ask(agent, message=said["message"], **asked)
    except errors.Invalid as invalid:
        trouble, asked = f"Not asked so: {invalid}", {}
        answer = surfaces.ask(agent, message=said["message"])
    about = {name: said[name] for name in ("message", "session", "request", "subagent", "at") if said[name]}
    why_url = f"{path}?{urlencode({**about, 'view': 'why'})}"
    version, then = None, None
    if said["at"]:
        try:
            version = past.version(agent, comparing.moment(said["at"], "at"))
            then = past.surface_of(
                answer.resolution.standing.catalog, version.agent, said["message"], said["subagent"] or None
            )
        except (errors.NotFound, errors.Invalid) as error:
            trouble = f"{trouble} Not looked at as it was: {error}".strip()
    longest = answer if then is None or len(answer.tools) >= len(then.tools) else then
    one = queries.summary(agent)
    if one.agent.archived:
        raise errors.Archived(agent)
    header = agents.header(one)
    return preview.PreviewPage(
        agent=header,
        question=_question(agent, said, view, form),
        trouble=trouble,
        view=view,
        model=model.view(answer, said["message"]),
        facts=_facts(answer),
        tools=_tools(answer, why_url, said["offset"], then, "came since") if view == "tools" else (),
        pages=_sent_part(longest, said["offset"]).pages(said, path) if view == "tools" else None,
        sent=_sent(answer, form) if view == "json" else None,
        why=_why(agent, said["tool"], asked, answer) if view == "why" else None,
        past=_past(header, version, answer, then, said, view, form, why_url)
        if version is not None and then is not None
        else None,
        may_change=may_change,
        cut=clients.cut_instructions(answer.policy) if _shows_policy(view, form) else (),
    )


def _past(
    header: Any,
    version: past.Version,
    answer: surface.Surface,
    then: surface.Surface,
    said: Mapping[str, Any],
    view: preview.View,
    form: str,
    why_url: str,
) -> preview.Past:
    key = version.agent.key
    return preview.Past(
        words=compare.version(version),
        moment=words.moment(version.last.at) if version.last else None,
        notes=tuple(compare.doubts(version)),
        compare_url=compare.url(comparing.spell(key, version.moment), key),
        agent=header,
        view=view,
        model=model.view(then, said["message"]),
        tools=_tools(then, why_url, said["offset"], answer, "gone since") if view == "tools" else (),
        sent=_sent(then, form, "provider-json-then") if view == "json" else None,
        why=_why_then(said["tool"], then) if view == "why" else None,
    )


def _shows_policy(view: preview.View, form: str) -> bool:
    return view == "policy" or (view == "json" and form == "mcp")


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
        moments=tuple(_moments(agent, said["at"])),
    )


def _moments(agent: str, chosen: str) -> Iterator[pieces.Choice]:
    yield pieces.Choice(value="", label="Now", chosen=not chosen)
    found = queries.changes(agent=agent, size=MOST_MOMENTS).entries
    if chosen and chosen not in {str(entry.id) for entry in found}:
        number = chosen.isdigit()
        yield pieces.Choice(value=chosen, label=f"after change {chosen}" if number else chosen, chosen=True)
    for entry in found:
        label = f"after {entries.told(entry)}, {words.moment(entry.at).words}"
        yield pieces.Choice(value=str(entry.id), label=label, chosen=str(entry.id) == chosen)


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


def _tools(
    answer: surface.Surface,
    why: str,
    offset: int | str,
    other: surface.Surface | None = None,
    mark: str = "",
) -> tuple[preview.ToolLine, ...]:
    """List what is sent, in the order in which it is sent; marked, what ``other`` does not have."""
    there = other.resolution.active if other is not None else answer.resolution.active
    most = max((definition.tokens for definition in answer.tools), default=0)
    return tuple(
        _tool(answer, definition, most, why, "" if definition.name in there else mark)
        for definition in _sent_part(answer, offset).items
    )


def _sent_part(answer: surface.Surface, offset: int | str) -> paging.Part[definitions.Definition]:
    """Return the part of what is sent that is shown, in the order in which it is sent."""
    sent = sorted((*answer.tools, *answer.meta_tools), key=lambda definition: definition.name)
    return paging.part(sent, offset, TOOLS_AT_ONCE)


def _tool(
    answer: surface.Surface, definition: definitions.Definition, most: int, why: str, mark: str
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
        mark=mark if decision else "",
    )


def _sent(answer: surface.Surface, form: str, place: str = "provider-json") -> preview.Sent:
    label = _FORMATS.get(form, form)
    try:
        provider = rendering.render(answer, form)
    except errors.Invalid as invalid:
        troubles = tuple(problem.message for problem in invalid.problems)
        return preview.Sent(id=place, label=label, text="", size="", troubles=troubles)
    text = json.dumps(provider, indent=2, ensure_ascii=False)
    return preview.Sent(id=place, label=label, text=text, size=words.size(len(text.encode())), troubles=())


def _why(agent: str, tool: str, asked: Mapping[str, Any], answer: surface.Surface) -> preview.Why:
    known = tuple(sorted(answer.resolution.standing.catalog.tools))
    if not tool:
        return preview.Why(known=known)
    try:
        told = explain.why(agent, tool, **asked)
    except errors.NotFound as unknown:
        return preview.Why(tool=tool, trouble=str(unknown), known=known)
    return _decided(tool, told.decision, told.trace, known)


def _why_then(tool: str, then: surface.Surface) -> preview.Why:
    standing = then.resolution.standing
    if tool not in standing.catalog.tools:
        return preview.Why()
    return _decided(tool, then.resolution.decision(tool), resolution.trace(standing, tool), ())


def _decided(
    tool: str, decision: resolution.Decision, trace: Iterable[resolution.Step], known: tuple[str, ...]
) -> preview.Why:
    deferred = decision.code == "budget"
    steps = [_step(step, decides=not deferred and step.question == decision.question) for step in trace]
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
