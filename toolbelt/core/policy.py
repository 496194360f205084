"""What must the model be told? (semantics: Policy; seed: Tools & Toolkits, buildPolicySection)

Only what operators and installed code wrote goes in: toolkits' texts, notes and tools' own policy, and what toolkits
in code say. A tool's description never does, whoever wrote it. The bytes are the same as long as nothing changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolbelt.core import catalog

PLACEHOLDER = "{active_tools}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One toolkit's (or tool's own) part of the policy. ``state``: on with an active member, else off."""

    toolkit: str
    tool: str
    state: Literal["on", "off"]
    text: str

    @property
    def tagged(self) -> str:
        """Give the section as it stands in the prompt."""
        if self.tool:
            return f'<tool name="{self.tool}">\n{self.text}\n</tool>'
        return f'<toolkit name="{self.toolkit}">\n{self.text}\n</toolkit>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The whole text for the end of the system prompt, and its sections in order."""

    text: str
    sections: tuple[Section, ...]


EMPTY = Policy(text="", sections=())
MOST_KEPT = 10_000


def build(stored: catalog.Catalog, active: Collection[str], members: Mapping[str, Sequence[str]]) -> Policy:
    """Write the policy for the ``active`` tools (by key), in the order of the toolkits, then tools' own.

    ``members`` is what :func:`active_members` gives for them.
    """
    placed = [(stored.position[key], section(stored, key, tuple(tools))) for key, tools in members.items()]
    placed += [
        (stored.position[key], section) for key, section in _sections_off(stored) if key not in members
    ]
    placed.sort(key=lambda one: one[0])
    found = [section for _, section in placed if section.text]
    found += [
        Section(toolkit="", tool=key, state="on", text=stored.tools[key].policy.strip())
        for key in sorted(stored.with_own_policy.intersection(active))
    ]
    if not found:
        return EMPTY
    return Policy(text="\n\n".join([section.tagged for section in found]), sections=tuple(found))


def most_important_first(policy: Policy) -> str:
    """Return the same sections for a reader that may cut the text: toolkits that are on, tools, then off texts."""
    in_order = sorted(policy.sections, key=lambda one: (one.state != "on", bool(one.tool)))
    return "\n\n".join([section.tagged for section in in_order])


def active_members(stored: catalog.Catalog, active: Iterable[str]) -> dict[str, list[str]]:
    """Give the active members of each toolkit that has one: toolkits in order, members as ``active`` has them."""
    found: dict[str, list[str]] = {}
    for tool in active:
        for toolkit in stored.toolkits_of.get(tool, ()):
            found.setdefault(toolkit.key, []).append(tool)
    return {key: found[key] for key in sorted(found, key=stored.position.__getitem__)}


def section_text(toolkit: catalog.Toolkit, tools: Iterable[str]) -> str:
    """Write the toolkit's section for these active members: its policy, then their notes, in the members' order."""
    in_order = toolkit.in_order(tools)
    parts = [toolkit.policy.replace(PLACEHOLDER, ", ".join(in_order)).strip()]
    notes = [f"- {tool}: {note}" for tool in in_order if (note := toolkit.tool_notes.get(tool, "").strip())]
    parts.append("\n".join(notes))
    return "\n".join(part for part in parts if part)


def off_text(toolkit: catalog.Toolkit) -> str:
    """Write what the toolkit says while none of its members is active."""
    return toolkit.policy_when_off.replace(PLACEHOLDER, "").strip()


def section(stored: catalog.Catalog, key: str, tools: tuple[str, ...]) -> Section:
    """Give the toolkit's section for these active members; written once, then kept with the catalog."""
    kept: dict[tuple[str, tuple[str, ...]], Section] = stored.derived.setdefault("sections on", {})
    known = kept.get((key, tools))
    if known is None:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        toolkit = stored.toolkits[key]
        voice = stored.voice(toolkit)
        said = section_text(toolkit, tools) if voice is None else voice.policy(toolkit.in_order(tools))
        text = (said or "").strip()
        known = kept[key, tools] = Section(toolkit=key, tool="", state="on", text=text)
    return known


def _sections_off(stored: catalog.Catalog) -> tuple[tuple[str, Section], ...]:
    """Give what each toolkit with an off text says while none of its members is active."""
    known: tuple[tuple[str, Section], ...] | None = stored.derived.get("sections off")
    if known is None:
        texts = ((kit.key, off_text(kit)) for kit in stored.with_off_text)
        known = tuple((key, Section(toolkit=key, tool="", state="off", text=text)) for key, text in texts)
        stored.derived["sections off"] = known
    return known
