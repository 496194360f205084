"""The policy: what the system prompt tells the model about its tools (docs/concepts.md: Policy; seed: Tools & Toolkits,
buildPolicySection).

It contains only what operators and installed code wrote: texts of toolkits, notes, tools' own policy, and the texts of
toolkits in code. It never contains a tool's description. The bytes do not change unless the configuration does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from toolbelt.core import catalog

PLACEHOLDER = "{active_tools}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the policy, for a toolkit or a tool. ``state`` is on if a member is active, else off."""

    toolkit: str
    tool: str
    state: Literal["on", "off"]
    text: str

    @property
    def tagged(self) -> str:
        """Return the section as it appears in the prompt."""
        if self.tool:
            return f'<tool name="{self.tool}">\n{self.text}\n</tool>'
        return f'<toolkit name="{self.toolkit}">\n{self.text}\n</toolkit>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The text for the end of the system prompt, and its sections in order.

    ``loadable`` is the end of the text that lists the toolkits to load, ``loadable_lines`` the line of each by its key.
    It is not a section.
    """

    text: str
    sections: tuple[Section, ...]
    loadable: str = ""
    loadable_lines: tuple[tuple[str, str], ...] = ()


_HOW_TO_LOAD = (
    "Load a toolkit with load_tools when you need it: its tools are available from the next request."
)
EMPTY = Policy(text="", sections=())
MAX_CACHED = 10_000


def build(
    stored: catalog.Catalog,
    active: Collection[str],
    members: Mapping[str, Sequence[str]],
    concerned: Collection[str],
) -> Policy:
    """Return the policy for the ``active`` tools (by key): sections of toolkits in order, then those of tools.

    ``members`` is the result of :func:`active_members` for the same tools, ``concerned`` that of
    :func:`toolbelt.core.rules.resolution.toolkits_that_concern`: only these give their off texts.
    """
    placed = [(stored.position[key], section(stored, key, tuple(tools))) for key, tools in members.items()]
    placed += [(stored.position[key], _section_off(stored, key)) for key in concerned if key not in members]
    placed.sort(key=lambda pair: pair[0])
    sections = [section for _, section in placed if section.text]
    sections += [_section_of_tool(stored, key) for key in sorted(stored.with_own_policy.intersection(active))]
    if not sections:
        return EMPTY
    return Policy(text="\n\n".join([section.tagged for section in sections]), sections=tuple(sections))


def with_loadable(policy: Policy, toolkits: Iterable[catalog.Toolkit]) -> Policy:
    """Return the policy with a list of the toolkits that the agent may load after its sections."""
    lines = tuple(
        (toolkit.key, f"- {toolkit.key}: {' '.join(toolkit.description.split())}".rstrip(": "))
        for toolkit in toolkits
    )
    if not lines:
        return policy
    in_order = [line for _, line in lines]
    loadable = "\n".join(["<loadable_toolkits>", _HOW_TO_LOAD, *in_order, "</loadable_toolkits>"])
    text = f"{policy.text}\n\n{loadable}" if policy.text else loadable
    return Policy(text=text, sections=policy.sections, loadable=loadable, loadable_lines=lines)


def tokens(stored: catalog.Catalog, active: Iterable[str], concerned: Collection[str]) -> int:
    """Return the number of tokens of the policy for the ``active`` tools, off texts included."""
    if stored.count_tokens is None:
        return 0
    in_order = sorted(active)
    built = build(stored, in_order, active_members(stored, in_order), concerned)
    return sum(section_tokens(stored, section) for section in built.sections)


def tokens_added(
    stored: catalog.Catalog,
    before: Set[str],
    after: Set[str],
    concerned_before: Set[str],
    concerned_after: Set[str],
) -> int:
    """Return by how many tokens the policy grows from one set of active tools to another, and from the toolkits that
    concern the agent before to those after: only sections that differ are counted.
    """
    if stored.count_tokens is None:
        return 0
    changed = before ^ after
    touched = {toolkit.key: toolkit for tool in changed for toolkit in stored.toolkits_of.get(tool, ())}
    touched |= {key: stored.toolkits[key] for key in concerned_before ^ concerned_after}
    added = 0
    for sign, active, concerned in ((1, after, concerned_after), (-1, before, concerned_before)):
        for toolkit in touched.values():
            members = {member.tool for member in toolkit.members} & active
            if members or toolkit.key in concerned:
                added += sign * section_tokens(stored, section_of(stored, toolkit, members))
        added += sign * sum(
            section_tokens(stored, _section_of_tool(stored, key))
            for key in stored.with_own_policy & changed & active
        )
    return added


def section_tokens(stored: catalog.Catalog, section: Section) -> int:
    """Return the number of tokens of one section of the policy, with its tags; 0 for one without text."""
    if not section.text:
        return 0
    counts = _token_counts(stored)
    count = counts.get(section)
    if count is None and stored.count_tokens is not None:
        if len(counts) >= MAX_CACHED:
            counts.clear()
        count = counts[section] = stored.count_tokens(section.tagged)
    return count or 0


@catalog.derived
def _token_counts(stored: catalog.Catalog) -> dict[Section, int]:
    """Return the tokens of the sections that were counted so far; at most ``MAX_CACHED``."""
    return {}


def text_by_importance(policy: Policy) -> str:
    """Return the sections' text for a reader that may cut it: toolkits that are on, tools, then off texts."""
    in_order = sorted(policy.sections, key=lambda section: (section.state != "on", bool(section.tool)))
    return "\n\n".join([section.tagged for section in in_order])


def active_members(stored: catalog.Catalog, active: Iterable[str]) -> dict[str, list[str]]:
    """Return the active members of each toolkit that has any: toolkits in order, members in the order of ``active``."""
    by_toolkit: dict[str, list[str]] = {}
    for tool in active:
        for toolkit in stored.toolkits_of.get(tool, ()):
            by_toolkit.setdefault(toolkit.key, []).append(tool)
    return {key: by_toolkit[key] for key in sorted(by_toolkit, key=stored.position.__getitem__)}


def section_text(toolkit: catalog.Toolkit, tools: Iterable[str]) -> str:
    """Return the toolkit's section for these active members: its policy, then their notes, in order."""
    in_order = toolkit.in_order(tools)
    parts = [toolkit.policy.replace(PLACEHOLDER, ", ".join(in_order)).strip()]
    notes = [f"- {tool}: {note}" for tool in in_order if (note := toolkit.tool_notes.get(tool, "").strip())]
    parts.append("\n".join(notes))
    return "\n".join(part for part in parts if part)


def off_text(toolkit: catalog.Toolkit) -> str:
    """Return the toolkit's text while none of its members is active."""
    return toolkit.policy_when_off.replace(PLACEHOLDER, "").strip()


def section(stored: catalog.Catalog, key: str, tools: tuple[str, ...]) -> Section:
    """Return the toolkit's section for these active members."""
    kept = sections_on(stored)
    found = kept.get((key, tools))
    if found is None:
        if len(kept) >= MAX_CACHED:
            kept.clear()
        toolkit = stored.toolkits[key]
        hooks = stored.hooks(toolkit)
        policy_text = section_text(toolkit, tools) if hooks is None else hooks.policy(toolkit.in_order(tools))
        text = (policy_text or "").strip()
        found = kept[key, tools] = Section(toolkit=key, tool="", state="on", text=text)
    return found


@catalog.derived
def sections_on(stored: catalog.Catalog) -> dict[tuple[str, tuple[str, ...]], Section]:
    """Return the sections that were made so far, by toolkit and active members; at most ``MAX_CACHED``."""
    return {}


def section_of(stored: catalog.Catalog, toolkit: catalog.Toolkit, active: Iterable[str]) -> Section:
    """Return the toolkit's text for the policy while these members are active; without any, its off text."""
    if tools := tuple(sorted(active)):
        return section(stored, toolkit.key, tools)
    return _section_off(stored, toolkit.key)


def _section_of_tool(stored: catalog.Catalog, key: str) -> Section:
    """Return the section of a tool with a policy of its own."""
    return Section(toolkit="", tool=key, state="on", text=stored.tools[key].policy.strip())


@catalog.derived
def _section_off(stored: catalog.Catalog, key: str) -> Section:
    """Return the toolkit's off text as a section."""
    return Section(toolkit=key, tool="", state="off", text=off_text(stored.toolkits[key]))
