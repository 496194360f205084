"""What should this message focus on? (semantics: Directives; seed: Tools & Toolkits, activeTools and toolChoice)

Triggers are tried in order; the first that matches gives the toolkit's directive. Patterns run on RE2, in
linear time whatever they say, ignoring case and at word edges. RE2 knows word edges of ASCII only, so the edges
are spelled out here by Unicode class; scripts that are written without spaces have none.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import re2

from toolbelt.core import catalog, code

_NO_EDGES = ("Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Yi")
# The mark that lengthens a vowel in Japanese belongs to no script.
_NO_EDGES_CLASS = "".join(rf"\p{{{script}}}" for script in _NO_EDGES) + "ーｰ"
_EDGE = rf"[^\p{{L}}\p{{N}}\p{{M}}_]|[{_NO_EDGES_CLASS}]"
_BEFORE, _AFTER = rf"(?:^|{_EDGE})", rf"(?:$|{_EDGE})"
LONGEST_MESSAGE = 100_000
# Room for a pattern with its edges: what compiles alone in RE2's usual 8 MiB does so with them.
_ROOM = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """What to focus on in the first step of the request: active tools in key order, and the tool choice.

    ``because`` names, for each toolkit that spoke, the trigger that matched, or what its code gives as the reason.
    """

    active_tools: tuple[str, ...]
    tool_choice: catalog.ToolChoice
    because: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one toolkit makes of a message: which of its triggers match, in their order, and what it then focuses on.

    ``decides`` is the place of the trigger that the focus comes from; None where none matches, or Python decided.
    """

    fired: tuple[bool, ...]
    decides: int | None
    focus: code.Focus | None


@functools.lru_cache(maxsize=2)
def _options(max_mem: int = 8 << 20) -> Any:
    options = re2.Options()
    options.max_mem = max_mem
    options.case_sensitive = False
    options.log_errors = False
    # Nobody asks what a group caught, and looking for it costs.
    options.never_capture = True
    return options


@functools.lru_cache(maxsize=1)
def _edgeless() -> Any:
    return re2.compile(f"[{_NO_EDGES_CLASS}]")


def _has_edge(character: str) -> bool:
    is_word = character == "_" or unicodedata.category(character)[0] in "LNM"
    return is_word and not _edgeless().search(character)


def pattern_problem(pattern: str) -> str | None:
    """Say why ``pattern`` cannot be a trigger's pattern, or None."""
    if not pattern.strip():
        return "a blank pattern matches everything: write what the message must hold."
    try:
        re2.compile(pattern, options=_options())
        # Compiled alone first: "a)(b" is sound only by the brackets that are put around it, and \Q eats them.
        re2.compile(f"(?:{pattern})", options=_options())
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        return f"{pattern!r} is not a pattern that runs in linear time (RE2): {reason}."
    except UnicodeEncodeError:
        return f"{pattern!r} holds half a character, which no message can hold."
    return None


def fires(trigger: catalog.Trigger, message: bytes) -> bool:
    """Say whether the trigger matches: any of ``any``, one of each group of ``all``, and nothing of ``none``.

    A trigger that names nothing to look for never does. ``message`` is in UTF-8, as RE2 reads it.
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
    """Compile a group of which one must match, as one pattern for each kind of edges, without those that are none."""
    by_edges: dict[tuple[str, str], list[str]] = {}
    for pattern in patterns:
        if pattern_problem(pattern) is None:
            edges = _BEFORE if _has_edge(pattern[0]) else "", _AFTER if _has_edge(pattern[-1]) else ""
            by_edges.setdefault(edges, []).append(f"(?:{pattern})")
    found: list[Any] = []
    for (before, after), alike in by_edges.items():
        try:
            found.append(re2.compile(f"{before}(?:{'|'.join(alike)}){after}", options=_options(_ROOM)))
        except re2.error:
            # Each is sound, so together they are too large for one pattern.
            found += [re2.compile(f"{before}{one}{after}", options=_options(_ROOM)) for one in alike]
    return tuple(found)


def build(
    stored: catalog.Catalog, toolkits: Collection[str], active: Mapping[str, Any], message: str | None
) -> Directive | None:
    """Merge what the ``toolkits`` (those with an active member, in order) say about the message.

    ``active`` holds the active tools' keys. The union is cut to active tools; ``required`` if any toolkit that
    has something to focus on says so; None if the union is empty. Only the first 100,000 characters are read.
    """
    if message is None or not message.strip():
        return None
    # JSON can hold halves of surrogate pairs, which UTF-8 cannot: they count as question marks.
    said = message[:LONGEST_MESSAGE].encode(errors="replace")
    focus: set[str] = set()
    choice: catalog.ToolChoice = "auto"
    because = []
    for key in toolkits:
        asked = _asked(stored, stored.toolkits[key], active, message[:LONGEST_MESSAGE], said)
        found = {tool for tool in asked.tools if tool in active} if asked is not None else set()
        if asked is None or not found:
            continue
        focus |= found
        because.append((key, asked.because))
        if asked.tool_choice == "required":
            choice = "required"
    if not focus:
        return None
    return Directive(active_tools=tuple(sorted(focus)), tool_choice=choice, because=tuple(because))


def tried(stored: catalog.Catalog, toolkit: catalog.Toolkit, active: Collection[str], message: str) -> Trial:
    """Try a message on one toolkit and on each of its triggers; ``active`` are the tools that can be focused on."""
    text = message[:LONGEST_MESSAGE]
    said = text.encode(errors="replace")
    if not text.strip():
        return Trial(fired=(False,) * len(toolkit.triggers), decides=None, focus=None)
    fired = tuple(fires(trigger, said) for trigger in toolkit.triggers)
    asked = _asked(stored, toolkit, dict.fromkeys(active), text, said)
    focus = asked._replace(tools=tuple(tool for tool in asked.tools if tool in active)) if asked else None
    in_python = stored.voice(toolkit) is not None
    return Trial(
        fired=fired, decides=None if in_python or True not in fired else fired.index(True), focus=focus
    )


def _asked(
    stored: catalog.Catalog, toolkit: catalog.Toolkit, active: Mapping[str, Any], message: str, said: bytes
) -> code.Focus | None:
    """Ask the toolkit's code, else its triggers, what to focus on; ``said`` is the message in UTF-8."""
    voice = stored.voice(toolkit)
    if voice is not None:
        return voice.focus(toolkit.in_order(active), message)
    trigger = next((one for one in toolkit.triggers if fires(one, said)), None)
    if trigger is None:
        return None
    tools = trigger.focus if trigger.focus is not None else tuple(m.tool for m in toolkit.members)
    return code.Focus(tools, trigger.tool_choice, trigger.name)
