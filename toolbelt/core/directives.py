"""Directives: what a message should focus on (docs/concepts.md: Directives; seed: Tools & Toolkits, activeTools and
toolChoice).

Triggers are tried in order; the first that matches decides the toolkit's directive. Patterns run on RE2, in linear
time, ignoring case and at word boundaries. RE2's word boundaries are ASCII only, so they are spelled out here by
Unicode class; scripts that are written without spaces have none.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import re2

from toolbelt.core import catalog, toolkit_hooks

_NO_EDGES = ("Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Yi")
# The prolonged sound mark of Japanese belongs to no script.
_NO_EDGES_CLASS = "".join(rf"\p{{{script}}}" for script in _NO_EDGES) + "ーｰ"
_EDGE = rf"[^\p{{L}}\p{{N}}\p{{M}}_]|[{_NO_EDGES_CLASS}]"
_BEFORE, _AFTER = rf"(?:^|{_EDGE})", rf"(?:$|{_EDGE})"
MAX_MESSAGE_LENGTH = 100_000
# Memory for a pattern with its boundaries: whatever compiles alone in RE2's default of 8 MiB fits with them.
_ROOM = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """The focus of the first step of the request: active tools in key order, and the tool choice.

    ``because`` names the reason for each toolkit: the trigger that matched, or what its code returned.
    """

    active_tools: tuple[str, ...]
    tool_choice: catalog.ToolChoice
    because: tuple[tuple[str, str], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the directive as JSON."""
        return {
            "active_tools": list(self.active_tools),
            "tool_choice": self.tool_choice,
            "first_step_only": True,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The result of trying a message on a toolkit: which triggers match, in order, and the resulting focus.

    ``decides`` is the index of the trigger that decides the focus; None if none matches or Python code decided.
    """

    fired: tuple[bool, ...]
    decides: int | None
    focus: toolkit_hooks.Focus | None


@functools.lru_cache(maxsize=2)
def _options(max_mem: int = 8 << 20) -> Any:
    options = re2.Options()
    options.max_mem = max_mem
    options.case_sensitive = False
    options.log_errors = False
    # Groups are not used, and capturing them is slow.
    options.never_capture = True
    return options


@functools.lru_cache(maxsize=1)
def _edgeless() -> Any:
    return re2.compile(f"[{_NO_EDGES_CLASS}]")


def _has_edge(character: str) -> bool:
    is_word = character == "_" or unicodedata.category(character)[0] in "LNM"
    return is_word and not _edgeless().search(character)


def pattern_problem(pattern: str) -> str | None:
    """Return why ``pattern`` cannot be a trigger's pattern, or None."""
    if not pattern.strip():
        return "a blank pattern matches everything: write what the message must contain."
    try:
        re2.compile(pattern, options=_options())
        # Compiled alone first: "a)(b" is only valid inside the brackets that are added around it, and \Q swallows them.
        re2.compile(f"(?:{pattern})", options=_options())
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        return f"{pattern!r} is not a pattern that runs in linear time (RE2): {reason}."
    except UnicodeEncodeError:
        return f"{pattern!r} contains a lone surrogate, which no message can contain: remove it."
    return None


def matches(trigger: catalog.Trigger, message: bytes) -> bool:
    """Return whether the trigger matches: any of ``any``, one of each group of ``all``, and nothing of ``none``.

    A trigger without patterns to look for never matches. ``message`` is UTF-8, which RE2 reads.
    """
    if trigger.any is None and trigger.all is None:
        return False
    if trigger.any is not None and not _one_matches(trigger.any, message):
        return False
    if trigger.all is not None and not all(_one_matches(group, message) for group in trigger.all):
        return False
    return not _one_matches(trigger.none, message)


def _one_matches(patterns: tuple[str, ...], message: bytes) -> bool:
    return any(compiled.search(message) is not None for compiled in _compiled(patterns))


@functools.lru_cache(maxsize=8192)
def _compiled(patterns: tuple[str, ...]) -> tuple[Any, ...]:
    """Compile a group of alternatives, one pattern for each kind of boundary, without invalid patterns."""
    by_edges: dict[tuple[str, str], list[str]] = {}
    for pattern in patterns:
        if pattern_problem(pattern) is None:
            edges = _BEFORE if _has_edge(pattern[0]) else "", _AFTER if _has_edge(pattern[-1]) else ""
            by_edges.setdefault(edges, []).append(f"(?:{pattern})")
    compiled: list[Any] = []
    for (before, after), alike in by_edges.items():
        try:
            compiled.append(re2.compile(f"{before}(?:{'|'.join(alike)}){after}", options=_options(_ROOM)))
        except re2.error:
            # Each pattern is valid, so together they are too large for one.
            compiled += [
                re2.compile(f"{before}{pattern_}{after}", options=_options(_ROOM)) for pattern_ in alike
            ]
    return tuple(compiled)


def build(
    stored: catalog.Catalog, toolkits: Collection[str], active: Mapping[str, Any], message: str | None
) -> Directive | None:
    """Return the merged focus of the ``toolkits`` (those with an active member, in order) for the message.

    ``active`` holds the active tools' keys. The union is cut to active tools; the choice is ``required`` if any toolkit
    with a focus requires it; None if the union is empty. Only the first 100,000 characters are read.
    """
    if message is None or not message.strip():
        return None
    # JSON can contain lone surrogates, which UTF-8 cannot: they are replaced by question marks.
    encoded = message[:MAX_MESSAGE_LENGTH].encode(errors="replace")
    focus: set[str] = set()
    choice: catalog.ToolChoice = "auto"
    because = []
    for key in toolkits:
        request = _request_focus(stored, stored.toolkits[key], active, message[:MAX_MESSAGE_LENGTH], encoded)
        tools = {tool for tool in request.tools if tool in active} if request is not None else set()
        if request is None or not tools:
            continue
        focus |= tools
        because.append((key, request.because))
        if request.tool_choice == "required":
            choice = "required"
    if not focus:
        return None
    return Directive(active_tools=tuple(sorted(focus)), tool_choice=choice, because=tuple(because))


def try_message(
    stored: catalog.Catalog, toolkit: catalog.Toolkit, active: Collection[str], message: str
) -> Trial:
    """Return the result of trying a message on one toolkit; ``active`` are the tools that can be focused on."""
    text = message[:MAX_MESSAGE_LENGTH]
    encoded = text.encode(errors="replace")
    if not text.strip():
        return Trial(fired=(False,) * len(toolkit.triggers), decides=None, focus=None)
    fired = tuple(matches(trigger, encoded) for trigger in toolkit.triggers)
    request = _request_focus(stored, toolkit, dict.fromkeys(active), text, encoded)
    focus = (
        request._replace(tools=tuple(tool for tool in request.tools if tool in active)) if request else None
    )
    in_python = stored.hooks(toolkit) is not None
    return Trial(
        fired=fired, decides=None if in_python or True not in fired else fired.index(True), focus=focus
    )


def _request_focus(
    stored: catalog.Catalog, toolkit: catalog.Toolkit, active: Mapping[str, Any], message: str, encoded: bytes
) -> toolkit_hooks.Focus | None:
    """Return the focus that the toolkit's code, else its triggers, ask for; ``encoded`` is the message in UTF-8."""
    hooks = stored.hooks(toolkit)
    if hooks is not None:
        return hooks.focus(toolkit.in_order(active), message)
    trigger = next((candidate for candidate in toolkit.triggers if matches(candidate, encoded)), None)
    if trigger is None:
        return None
    tools = trigger.focus if trigger.focus is not None else tuple(m.tool for m in toolkit.members)
    return toolkit_hooks.Focus(tools, trigger.tool_choice, trigger.name)
