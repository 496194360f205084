"""Checks of an entry and of a whole document: every problem with its path, in the order of the document."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolbelt.core import errors
from toolbelt.core.belts import (
    catalog_rules,
    findings,
    gate_rule_checks,
    name_index,
    profile_rules,
    reading,
    secret_options,
    vocabulary,
)

Rule = Callable[[Any, name_index.NameIndex], Iterator[findings.Finding]]

_RULES: Mapping[vocabulary.KindName, Rule] = {
    "plugin": catalog_rules.plugin,
    "tool": catalog_rules.tool,
    "toolkit": catalog_rules.toolkit,
    "loadout": profile_rules.loadout,
    "agent": profile_rules.agent,
    "gate_rule": gate_rule_checks.gate_rule,
}


def entry(
    kind: vocabulary.KindName, written: Any, index: name_index.NameIndex, stored: Any = None
) -> list[errors.Problem]:
    """Return the problems of one entry, checked against what exists, which may include an older form of it.

    ``stored`` is that older form, with its secrets: those may stay, as its connection may.
    """
    read = reading.entry(kind, written)
    items = list(_inside(kind, written, read, index, is_saved=True, stored=stored))
    if kind == "plugin" and reading.is_named(kind, read[0]):
        items += catalog_rules.namespace_of_tools(read[0], index)
    problems = list(findings.problems(address(kind, written), written, items, findings.Hints()))
    if kind == "gate_rule":
        problems += gate_rule_checks.too_many({*index.stored.gate_rules, read[0].key if read[0] else ""})
    if kind == "agent" and not problems:
        problems += profile_rules.conflicting(written, reading.agent(read[0], index.stored), index.stored)
    return problems


def document(
    written: Any,
    read: Mapping[vocabulary.KindName, Sequence[reading.Read]],
    belt: reading.Belt,
    *,
    is_saved: bool,
    stored: Any = None,
) -> list[errors.Problem]:
    """Return the problems of a whole document; ``belt`` is what can be ``read`` of it, ``is_saved`` whether it is to be
    saved over what is ``stored``.
    """
    if not isinstance(written, Mapping):
        return [errors.Problem(path="", message=f"A belt is a mapping of {', '.join(vocabulary.SECTIONS)}.")]
    index = name_index.NameIndex.of_names(belt.catalog, tuple(belt.agents), _names(written))
    hints = findings.Hints()
    problems: list[errors.Problem] = []
    for position, (section, entries) in enumerate(written.items()):
        at = (findings.part(section, position),)
        kind = vocabulary.SECTIONS.get(section) if isinstance(section, str) else None
        if kind is None:
            message, among = f"A belt has no section {section!r}.", tuple(vocabulary.SECTIONS)
            finding = findings.Finding(at, message, str(section), among, f"It has {', '.join(among)}.")
            problems += findings.problems("", written, [finding], hints)
        elif isinstance(entries, (list, tuple)):
            older = {vocabulary.KINDS[kind].name_of(old): old for old in reading.entries(stored, section)}
            problems += _section(kind, entries, read[kind], index, hints, is_saved=is_saved, stored=older)
        elif entries is not None:
            finding = findings.Finding(at, f"{section!r} must be a list of entries.")
            problems += findings.problems("", written, [finding], hints)
    problems += gate_rule_checks.too_many(belt.catalog.gate_rules)
    if problems:
        return problems
    for written_agent, agent in zip(written.get("agents") or (), belt.agents.values(), strict=True):
        problems += profile_rules.conflicting(written_agent, agent, belt.catalog)
    return problems


def address(kind: vocabulary.KindName, written: Any, position: int = 0) -> str:
    """Return the path of an entry; the rest of a problem's path is a field of it.

    A category has no key, so its path is its index.
    """
    spec = vocabulary.KINDS[kind]
    return findings.address(spec.section, spec.name_of(written) if spec.named_by else None, position)


def _section(
    kind: vocabulary.KindName,
    entries: Sequence[Any],
    read: Sequence[reading.Read],
    index: name_index.NameIndex,
    hints: findings.Hints,
    *,
    is_saved: bool,
    stored: Mapping[Any, Any],
) -> Iterator[errors.Problem]:
    spec = vocabulary.KINDS[kind]
    first: dict[str, int] = {}
    for position, written in enumerate(entries):
        name = spec.name_of(written)
        older = stored.get(name) if isinstance(name, str) else None
        items = list(_inside(kind, written, read[position], index, is_saved=is_saved, stored=older))
        if isinstance(name, str) and name.strip():
            earlier = first.setdefault(name, position)
            if earlier != position:
                message = (
                    f"{name!r} is listed twice: {spec.section}[{earlier}] is the same. Remove one of them."
                )
                items.append(findings.Finding(spec.name_path(), message))
        yield from findings.problems(address(kind, written, position), written, items, hints)


def _inside(
    kind: vocabulary.KindName,
    written: Any,
    read: reading.Read,
    index: name_index.NameIndex,
    *,
    is_saved: bool,
    stored: Any,
) -> Iterator[findings.Finding]:
    entry, misfits = read
    yield from misfits
    if entry is None:
        return
    # A command or URL that does not fit is not missing.
    is_given = any(misfit.at in (("upstream", "command"), ("upstream", "url")) for misfit in misfits)
    # A rule that is newer than a stored connection must not prevent other changes, such as switching it off.
    is_kept = kind == "plugin" and bool(stored) and written.get("upstream") == stored.get("upstream")
    yield from catalog_rules.naming(kind, entry, index)
    rules = (_RULES[kind], catalog_rules.references) if kind in _RULES else (catalog_rules.references,)
    for finding in itertools.chain.from_iterable(rule(entry, index) for rule in rules):
        if not (is_given and finding.at == ("upstream",)) and not (
            is_kept and finding.at[:1] == ("upstream",)
        ):
            yield finding
    if is_saved:
        if kind == "loadout":
            yield from profile_rules.patterns(entry)
        yield from secret_options.check(kind, entry, stored)


def _names(written: Mapping[str, Any]) -> Iterator[name_index.Owner]:
    """Yield what the document defines, kind by kind, in its order."""
    for kind, spec in vocabulary.KINDS.items():
        for entry_ in reading.entries(written, spec.section):
            name = spec.name_of(entry_)
            if isinstance(name, str) and name.strip():
                yield kind, name
