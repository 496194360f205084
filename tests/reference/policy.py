"""The policy and the directive: docs/concepts.md, and "Texts of toolkits that are off" in docs/semantics.md."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.reference import belts
from tests.reference.belts import Entry
from tests.reference.rules import Decision, View, chains_deny, covers_by_name, included, named

# Scripts that are written without spaces, in which a word has no edges.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "BOPOMOFO")


class Section(NamedTuple):
    """One section: of a toolkit or of a tool, on or off, with the text that the model reads."""

    kind: str
    name: str
    state: str
    text: str


def sections(view: View, decisions: Mapping[str, Decision]) -> list[Section]:
    """Return the sections in order: toolkits in their order, then active tools that are in no toolkit, by key."""
    return [*_of_toolkits(view, decisions), *_of_tools(view, decisions)]


def has(view: View, decisions: Mapping[str, Decision], key: str) -> bool:
    """Return whether the model has a tool."""
    return key in decisions and decisions[key].state == "active" and belts.is_tool(view.belt.tools[key])


def _of_toolkits(view: View, decisions: Mapping[str, Decision]) -> Iterator[Section]:
    for name, toolkit in view.belt.toolkits.items():
        mine = [key for key in belts.members(toolkit) if has(view, decisions, key)]
        if mine:
            text = (toolkit.get("policy") or "").replace("{active_tools}", ", ".join(mine))
            notes = toolkit.get("tool_notes") or {}
            lines = [f"- {key}: {notes[key]}" for key in mine if notes.get(key)]
            state, body = "on", "\n".join([text, *lines] if text else lines)
        else:
            state, body = "off", toolkit.get("policy_when_off") or ""
            if not concerns(view, name):
                continue
        if body:
            yield Section("toolkit", name, state, f'<toolkit name="{name}">\n{body}\n</toolkit>')


def _of_tools(view: View, decisions: Mapping[str, Decision]) -> Iterator[Section]:
    for key, tool in sorted(view.belt.tools.items()):
        if has(view, decisions, key) and tool.get("policy") and not belts.toolkits_of(view.belt, key):
            yield Section("tool", key, "on", f'<tool name="{key}">\n{tool["policy"]}\n</tool>')


def concerns(view: View, name: str) -> bool:
    """Return whether a toolkit without an active member concerns the agent."""
    keys = [key for key in belts.members(view.belt.toolkits[name]) if key in view.belt.tools]
    if name in view.config or any(key in view.config for key in keys) or name in view.allowed():
        return True
    return any(_is_included(view, key) or _is_named(view, key) for key in keys)


def _is_included(view: View, key: str) -> bool:
    """Return whether the loadout in force includes a tool, and does not deny it; or the tool is on by default."""
    tool = view.belt.tools[key]
    chain = belts.chain_of(view.belt, view.loadout())
    return included(view, tool) is not None and chains_deny([chain], tool) is None


def _is_named(view: View, key: str) -> bool:
    """Return whether a tool is always on, bound by a sub-app, or was loaded by name. A subagent has none of these."""
    return view.subagent is None and bool(covers_by_name(view, key) or named(view, view.belt.tools[key]))


def text(view: View, sections: Sequence[Section], loadable: Sequence[str]) -> str:
    """Return the whole policy, which ends with the toolkits that can be loaded or are."""
    parts = [section.text for section in sections]
    if loadable:
        lines = [
            f"- {name}: {view.belt.toolkits[name].get('description') or ''}".rstrip(": ") for name in loadable
        ]
        parts.append("\n".join(["<loadable_toolkits>", *lines, "</loadable_toolkits>"]))
    return "\n\n".join(parts)


def directive(
    view: View, decisions: Mapping[str, Decision], message: str | None
) -> tuple[tuple[str, ...], str] | None:
    """Return the active tools to focus on and the tool choice; None if nothing is left of them."""
    if not (message or "").strip():
        return None
    focus: list[str] = []
    choices = set()
    for toolkit in view.belt.toolkits.values():
        mine = [key for key in belts.members(toolkit) if has(view, decisions, key)]
        trigger = next((it for it in toolkit.get("triggers") or () if _fires(it, message or "")), None)
        if not mine or trigger is None:
            continue
        wanted = trigger.get("focus") or belts.members(toolkit)
        left = [key for key in wanted if has(view, decisions, key)]
        focus += [key for key in left if key not in focus]
        if left:
            choices.add(trigger.get("tool_choice") or "auto")
    if not focus:
        return None
    return tuple(focus), "required" if "required" in choices else "auto"


def _fires(trigger: Entry, message: str) -> bool:
    groups: list[Sequence[str]] = list(trigger.get("all") or ())
    if trigger.get("any"):
        groups.append(trigger["any"])
    return (
        bool(groups)
        and all(_finds(group, message) for group in groups)
        and not _finds(trigger.get("none") or (), message)
    )


def _finds(patterns: Sequence[Any], message: str) -> bool:
    """Return whether a pattern is in the message, ignoring case, between edges of words."""
    return any(_matches(pattern, message) for pattern in patterns)


def _matches(pattern: str, message: str) -> bool:
    begins = _is_of_a_word(pattern[:1])
    ends = _is_of_a_word(pattern[-1:])
    try:
        found = re.finditer(f"(?={pattern})", message, re.IGNORECASE)
        starts = [place.start() for place in found]
    except re.error:
        return False
    for start in starts:
        if begins and _is_of_a_word(message[start - 1 : start] if start else ""):
            continue
        for end in range(start, len(message) + 1):
            if ends and _is_of_a_word(message[end : end + 1]):
                continue
            if re.compile(pattern, re.IGNORECASE).fullmatch(message, start, end):
                return True
    return False


def _is_of_a_word(character: str) -> bool:
    """Return whether a character belongs to a word: a letter of a script with word edges, a digit, a mark or ``_``."""
    if not character or unicodedata.name(character, "").startswith(UNSPACED):
        return False
    return character == "_" or unicodedata.category(character)[0] in "LNM"
