"""Rendering of conversations: the prefix that stays, what is appended to it, and what concerns one request.

Pure, as toolbelt.formats. The prefix is what ``render`` returns without the choice among the tools, which no provider
counts to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolbelt import formats
from toolbelt.core import conversations, definitions, errors, meta_tools, surface
from toolbelt.formats import surface as documents
from toolbelt.formats.appending import lines, words

Messages = list[dict[str, Any]]

# What a provider does not count to the prefix, and a request may change.
_REQUEST = frozenset({"activeTools", "first_step", "toolChoice", "tool_choice", "tool_config"})
# Ends the results of tools, for a model that would read what follows into them.
_SEAL = "The results of the tools end here."


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What holds for one request: ``parameters`` of the provider's SDK, and ``messages`` that follow all others."""

    parameters: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]] = ()


def dispatching(line: lines.Line) -> Mapping[str, definitions.Definition]:
    """Return the tools that every prefix of the line has, in the place of what a surface has by their names."""
    return meta_tools.DISPATCHING if line.dispatches else {}


def prefix(
    line: lines.Line, shown: surface.Surface, deferred: Iterable[definitions.Definition] = ()
) -> dict[str, Any]:
    """Return the parameters that a conversation begins with. Raise errors.ProviderLimit.

    ``deferred`` are definitions in reserve, for a line that refers to them later.
    """
    reserve = {definition.name: definition for definition in deferred}
    active = {tool.name: tool for tool in (*shown.tools, *shown.meta_tools)}
    tools = reserve | active | {**dispatching(line)}
    content = {
        **shown.content(),
        "tools": [tool.document() for _, tool in sorted(tools.items())],
        "directive": None,
    }
    rendered = _rendered(line, content)
    for tool in rendered.get("tools", ()) if reserve else ():
        if tool["name"] in reserve and tool["name"] not in active:
            tool["defer_loading"] = True
    return {name: value for name, value in rendered.items() if name not in _REQUEST}


def unsupported(line: lines.Line, tools: Iterable[definitions.Definition]) -> dict[str, str]:
    """Return why the provider does not accept a tool, by the names of those that it does not."""
    problems = {}
    for tool in tools:
        try:
            _definitions(line, [tool])
        except errors.ProviderLimit as error:
            problems[tool.name] = str(error)
    return problems


def messages(
    line: lines.Line, changes: conversations.Changes, after: conversations.View, shown: surface.Surface
) -> Messages:
    """Return what to append for the changes: nothing, if there are none. ``after`` is the view with them."""
    if not changes:
        return []
    sections = {conversations.section_key(section): section for section in shown.policy.sections}
    text = words.of(changes, sections, dict(shown.policy.loadable_lines))
    new = {*changes.added, *changes.replaced} if line.means.add == "define" else set()
    tools = [tool for tool in (*shown.tools, *shown.meta_tools) if tool.name in new]
    match line.role:
        case "system" if line.form == "anthropic":
            withdrawn = after.of_kind("withdrawn").intersection(changes.removed)
            return _of_claude(line, tools, sorted(withdrawn), changes.offered, text)
        case "developer":
            added = _definitions(line, tools)
            items: Messages = (
                [{"type": "additional_tools", "role": "developer", "tools": added}] if added else []
            )
            return [*items, {"role": "developer", "content": text}]
        case "system":
            return [{"role": "system", "content": text}]
    return [_user(line.form, words.notice(text))]


def request(line: lines.Line, view: conversations.View, shown: surface.Surface) -> Request:
    """Return what holds for one request: the focus of a first step, and a restriction to what may be called.

    ``view`` is what the model was told, including what is appended to this request.
    """
    focus = _focus(shown)
    if focus is None and line.means.remove != "restrict":
        return Request(parameters={})
    own, offered = dispatching(line), view.of_kind("offered")
    callable_ = tuple(sorted({*_names(shown)} & offered | {*own}))
    profile, step = line.profile, focus
    if line.means.remove == "restrict":
        hidden = view.of_kind("offered", "withdrawn") - {*callable_}
        if not callable_:
            return Request(parameters=_nothing_callable(line.form) if hidden else {})
        if step is None and (hidden or line.form == "gemini"):
            step = documents.FirstStep(names=callable_, narrows=True, required=False)
        elif step is not None and {*step.names} <= {*callable_}:
            step = replace(step, names=tuple(sorted({*step.names, *own})), narrows=True)
        named = {*step.names} - {*own} if step else set()
        choosable = offered if profile.may_choose_added else offered & view.declared
        if not named <= choosable:
            # A focus on what may not be named is said in words. So is what was withdrawn, if it must be.
            said = [_user(line.form, focus.text(is_forced=False))] if focus else []
            if not {*callable_} <= choosable | {*own} or not (hidden or line.form == "gemini"):
                return Request(parameters={}, messages=said)
            step = documents.FirstStep(names=callable_, narrows=True, required=False)
            return Request(parameters=formats.MODULES[line.form].first_step(step, profile), messages=said)
    if step is None:
        return Request(parameters={})
    parameters = formats.MODULES[line.form].first_step(step, profile)
    said = parameters.pop("messages", ())
    return Request(parameters=parameters, messages=[_of_one_step(line, message) for message in said])


def _names(shown: surface.Surface) -> list[str]:
    return sorted(tool.name for tool in (*shown.tools, *shown.meta_tools))


def _focus(shown: surface.Surface) -> documents.FirstStep | None:
    if shown.directive is None or shown.tool_choice == "none":
        return None
    return documents.first_step(shown.directive.document(), _names(shown))


def _nothing_callable(form: str) -> dict[str, Any]:
    """Return the choice of no tool at all."""
    if form == "gemini":
        return {"tool_config": {"function_calling_config": {"mode": "NONE"}}}
    return {"tool_choice": "none"}


def _of_claude(
    line: lines.Line,
    tools: Sequence[definitions.Definition],
    withdrawn: Sequence[str],
    offered: Sequence[str],
    text: str,
) -> Messages:
    """Return the changes as one system message, whose blocks change the tools. (changes)"""

    def reference(kind: str, name: str) -> dict[str, Any]:
        return {"type": kind, "tool": {"type": "tool_reference", "name": name}}

    content = [reference("tool_removal", name) for name in withdrawn]
    content += [
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
        for definition in _definitions(line, tools)
    ]
    content += [reference("tool_addition", name) for name in offered]
    content.append({"type": "text", "text": text})
    said: Messages = [{"role": "system", "content": content}]
    return [_user(line.form, _SEAL), *said] if line.profile.reads_into_results else said


def _of_one_step(line: lines.Line, message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message about one step. Where the provider can clear it afterwards, it does."""
    clears = line.clears and message["role"] == "system"
    return {**message, "clear_at": "next_user_message"} if clears else dict(message)


def _definitions(line: lines.Line, tools: Sequence[definitions.Definition]) -> list[dict[str, Any]]:
    """Return definitions as the provider takes them. Raise errors.ProviderLimit."""
    if not tools:
        return []
    content = {
        "tools": [tool.document() for tool in tools],
        "tool_choice": "auto",
        "directive": None,
        "policy": {"text": ""},
    }
    rendered: list[dict[str, Any]] = _rendered(line, content).get("tools", [])
    return rendered


def _rendered(line: lines.Line, content: Mapping[str, Any]) -> dict[str, Any]:
    return formats.render(line.form, content, profile=line.profile)


def _user(form: str, text: str) -> dict[str, Any]:
    """Return a message in the user's turn, as the form has it."""
    match form:
        case "anthropic":
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        case "bedrock":
            return {"role": "user", "content": [{"text": text}]}
        case "gemini":
            return {"role": "user", "parts": [{"text": text}]}
        case "mcp":
            return {"role": "user", "content": {"type": "text", "text": text}}
    return {"role": "user", "content": text}
