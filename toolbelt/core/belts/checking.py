"""Is this entry, is this whole document sound? Every problem with its path, in the order of the document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolbelt.core import errors
from toolbelt.core.belts import catalog_rules, findings, known, profile_rules, reading, vocabulary

Rule = Callable[[Any, known.Known], Iterator[findings.Found]]

_RULES: Mapping[vocabulary.KindName, Rule] = {
    "category": catalog_rules.category,
    "plugin": catalog_rules.plugin,
    "tool": catalog_rules.tool,
    "toolkit": catalog_rules.toolkit,
    "loadout": profile_rules.loadout,
    "agent": profile_rules.agent,
    "sub_app": catalog_rules.sub_app,
}


def entry(kind: vocabulary.KindName, written: Any, there: known.Known) -> list[errors.Problem]:
    """Check one entry that is written beside what is stored, which may be an older form of it."""
    found = list(_inside(kind, written, there))
    given = reading.clean(kind, written)
    if kind == "plugin" and given is not None:
        found += catalog_rules.leaves_outside(given, there)
    problems = list(findings.problems(address(kind, written), written, found, findings.Hints()))
    if kind == "agent" and not problems:
        problems += profile_rules.conflicting(written, reading.agent(given, there.stored), there.stored)
    return problems


def document(written: Any, belt: reading.Belt) -> list[errors.Problem]:
    """Check a whole document; ``belt`` is what can be read of it."""
    if not isinstance(written, Mapping):
        return [errors.Problem(path="", message=f"A belt is a mapping of {', '.join(vocabulary.SECTIONS)}.")]
    there = known.Known.of_names(belt.catalog, tuple(belt.agents), _names(written))
    hints = findings.Hints()
    problems: list[errors.Problem] = []
    for position, (section, entries) in enumerate(written.items()):
        at = (findings.part(section, position),)
        kind = vocabulary.SECTIONS.get(section) if isinstance(section, str) else None
        if kind is None:
            message, among = f"A belt has no section {section!r}.", tuple(vocabulary.SECTIONS)
            found = findings.Found(at, message, str(section), among, f"It has {', '.join(among)}.")
            problems += findings.problems("", written, [found], hints)
        elif isinstance(entries, (list, tuple)):
            problems += _section(kind, entries, there, hints)
        elif entries is not None:
            found = findings.Found(at, f"{section!r} must be a list of entries.")
            problems += findings.problems("", written, [found], hints)
    if problems:
        return problems
    for written_agent, agent in zip(written.get("agents") or (), belt.agents.values(), strict=True):
        problems += profile_rules.conflicting(written_agent, agent, belt.catalog)
    return problems


def address(kind: vocabulary.KindName, written: Any, position: int = 0) -> str:
    """Give the path of an entry; a category is a name in a list, and stands by its index."""
    spoken = vocabulary.KINDS[kind]
    return findings.address(spoken.section, spoken.name_of(written) if spoken.named_by else None, position)


def _section(
    kind: vocabulary.KindName, entries: Sequence[Any], there: known.Known, hints: findings.Hints
) -> Iterator[errors.Problem]:
    spoken = vocabulary.KINDS[kind]
    first: dict[str, int] = {}
    for position, written in enumerate(entries):
        found = list(_inside(kind, written, there))
        name = spoken.name_of(written)
        if isinstance(name, str) and name.strip():
            earlier = first.setdefault(name, position)
            if earlier != position:
                message = f"{name!r} stands twice: it is {spoken.section}[{earlier}] already. Take one out."
                found.append(findings.Found(spoken.place(), message))
        yield from findings.problems(address(kind, written, position), written, found, hints)


def _inside(kind: vocabulary.KindName, written: Any, there: known.Known) -> Iterator[findings.Found]:
    shape = vocabulary.KINDS[kind].shape
    yield from shape.problems(written, ())
    given = shape.read(written)
    if given is not None:
        yield from _RULES[kind](given, there)


def _names(written: Mapping[str, Any]) -> Iterator[known.Owner]:
    """Name what the document defines, kind by kind, in its order."""
    for kind, spoken in vocabulary.KINDS.items():
        for one in reading.entries(written, spoken.section):
            name = spoken.name_of(one)
            if isinstance(name, str) and name.strip():
                yield kind, name
