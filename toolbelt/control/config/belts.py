"""Import and export of the whole configuration as one file.

A belt has what was decided. What was observed (:mod:`toolbelt.core.facts`) is not exported, and an import keeps what is
stored of it: an older belt that has it is accepted, with a note for each field that is ignored. An entry of something
that a source lists may leave out all of its texts (:mod:`toolbelt.control.config.belt_decisions`): they stay then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.access import expirations
from toolbelt.control.catalog import connection_policy, entries, kept_descriptions, ordering, unresolved
from toolbelt.control.config import belt_budgets
from toolbelt.core import belts, catalog, errors, facts
from toolbelt.store import clock, revisions, snapshots
from toolbelt.store import entries as rows

# In the order of references: an entry comes before those that name it.
SECTIONS: Mapping[str, belts.KindName] = {
    "categories": "category",
    "plugins": "plugin",
    "tools": "tool",
    "toolkits": "toolkit",
    "loadouts": "loadout",
    "agents": "agent",
    "sub_apps": "sub_app",
    "gate_rules": "gate_rule",
}


Difference = belt_budgets.Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of an import or its dry run: the entries that it creates and changes, in order, and the number of
    those that are up to date already.

    ``ordered`` are the kinds whose order it changes; ``unresolved_names`` are names in its loadouts that do not exist;
    ``ignored`` are its fields that are observed, and therefore ignored;
    ``entry`` is the id of the last audit entry, None if nothing was written.
    """

    differences: tuple[Difference, ...]
    same: int
    ordered: tuple[belts.KindName, ...] = ()
    unresolved_names: tuple[unresolved.Unresolved, ...] = ()
    ignored: tuple[errors.Problem, ...] = ()
    entry: int | None = dataclasses.field(default=None, compare=False)

    @property
    def created(self) -> int:
        """Return the number of new entries."""
        return sum(difference.before is None for difference in self.differences)

    @property
    def changed(self) -> int:
        """Return the number of existing entries that change."""
        return len(self.differences) - self.created

    @property
    def warnings(self) -> tuple[errors.Problem, ...]:
        """Return the ignored fields, and the names in loadouts that do not exist, each with its path."""
        return (*self.ignored, *map(unresolved.as_problem, self.unresolved_names))

    @property
    def to_confirm(self) -> tuple[unresolved.Unresolved, ...]:
        """Return the denials of what does not exist, which must be confirmed."""
        before = {
            difference.name: difference.before
            for difference in self.differences
            if difference.kind == "loadout"
        }
        return tuple(
            denial
            for name, now in before.items()
            for denial in unresolved.new_denials(
                (entry for entry in self.unresolved_names if entry.loadout == name), now
            )
        )


def export() -> dict[str, Any]:
    """Return the whole configuration as a belt, without sessions, tokens and observations. Secrets in options, which
    older versions stored, are withheld.
    """
    return {
        section: [
            facts.decided(SECTIONS[section], entry) if isinstance(entry, Mapping) else entry
            for entry in written
        ]
        for section, written in rows.export().items()
    }


def with_revision(read: Callable[[], dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """Return what an export reads, with the revision that it is of."""
    number, document = revision(), read()
    while (now := revision()) != number:
        number, document = now, read()
    return number, document


def revision() -> int:
    """Return the number of the last write of configuration."""
    return revisions.number()


def check(document: Mapping[str, Any]) -> list[errors.Problem]:
    """Return the problems of importing this belt now; it may refer to what is stored."""
    stored = rows.export(with_secrets=True)
    restored = _restored(_with_observed(document, stored), stored)
    return belts.check(_with_stored(restored, stored), stored=stored)


def warnings(document: Mapping[str, Any]) -> list[errors.Problem]:
    """Return the fields of this valid belt that are ignored, and the names in its loadouts that exist neither in it nor
    in what is stored.
    """
    belt = belts.load(_with_stored(document, rows.export()), lenient=True)
    return [*_ignored(document), *map(unresolved.as_problem, _unresolved(document, belt.catalog))]


def preview(write: writing.Write, document: Mapping[str, Any], *, is_state: bool = False) -> Imported:
    """Return the effects of importing this belt now, without importing it; raise as :func:`import_` does."""
    return evaluate(write, document, is_state=is_state)[0]


def evaluate(
    write: writing.Write,
    document: Mapping[str, Any],
    count_tokens: Callable[[str], int] | None = None,
    *,
    is_state: bool = False,
) -> tuple[Imported, belts.Belt]:
    """Return the effects of importing this belt now, and the resulting configuration, with the tokens of its tools if
    ``count_tokens`` is given. ``is_state`` is as in :func:`import_`.
    """
    stored = rows.export(with_secrets=True)
    ignored = () if is_state else tuple(_ignored(document))
    document = _restored(document if is_state else _with_observed(document, stored), stored)
    belt = belts.load(_with_stored(document, stored), count_tokens=count_tokens, is_saved=True, stored=stored)
    belt = dataclasses.replace(belt, catalog=_as_imported(belt.catalog, document, stored))
    current = {
        (kind, _name(kind, entry)): belts.withheld(_entry(kind, entry))
        for section, kind in SECTIONS.items()
        for entry in stored.get(section, ())
    }
    changed: list[Difference] = []
    now = clock.now()
    problems: list[errors.Problem] = []
    same = 0
    for section, kind in SECTIONS.items():
        for written in document.get(section) or ():
            name = _name(kind, written)
            before = current.get((kind, name))
            value = catalog.as_of(belts.value(kind, written, belt.catalog), now)
            after = _entry(kind, belts.entry(kind, value))
            if after == before:
                same += 1
                continue
            if kind == "plugin":
                connection_policy.check_change(write.actor, name, before, after)
            changed.append(Difference(kind=kind, name=name, before=before, after=after))
            problems += entries.owned_by_code(kind, before, entries.differences(before, after)[1])
            if before is not None and before.get("archived") and after.get("archived"):
                message = f"It is archived and cannot be changed: {errors.BRING_BACK}."
                problems.append(errors.Problem(path=belts.address("agent", dict(after)), message=message))
    if problems := [*problems, *belt_budgets.problems(changed, stored, belt)]:
        raise errors.Invalid(problems)
    ordered = tuple(kind for section, kind in SECTIONS.items() if _is_reordered(section, document, stored))
    unresolved_names = _unresolved(document, belt.catalog)
    return Imported(
        differences=tuple(changed),
        same=same,
        ordered=ordered,
        unresolved_names=unresolved_names,
        ignored=ignored,
    ), belt


def import_(
    write: writing.Write, document: Mapping[str, Any], *, was: int | None = None, is_state: bool = False
) -> Imported:
    """Import every entry of the belt, in its order, in one transaction; entries that it does not name are unchanged.

    Each created or changed entry is audited; all share a batch. With ``is_state``, the document is no belt, but a state
    with what was observed in it, such as that of a scenario or of the demo. ``was`` is the revision that the writer
    saw: raise Stale if it is another one now. Raise errors.Invalid with every problem (including agents that would
    exceed a budget that refuses), ConfirmationRequired if a loadout would disable what does not exist, or Refused for a
    connection that may not be set this way; then nothing is written.
    """
    # Checked before the lock is taken, because that takes long, and again only if the configuration changed meanwhile.
    checked, imported = revision(), preview(write, document, is_state=is_state)
    write = write.in_batch()
    with writing.begin():
        now = revision()
        if was is not None and now != was:
            raise errors.Stale(
                "The configuration", f"revision {was}", f"revision {now}", by=writing.author(write)
            )
        if now != checked:
            imported = preview(write, document, is_state=is_state)
        if not write.confirm:
            unresolved.confirm(imported.to_confirm)
        expirations.record_due()
        entry: int | None = None
        for difference in imported.differences:
            stored = rows.write(difference.kind, dict(difference.after))
            entry = entries.record_change(write, difference.kind, difference.name, difference.before, stored)
        for tool in kept_descriptions.restored():
            entry = entries.put(write, "tool", tool).entry or entry
        for kind in imported.ordered:
            entry = ordering.set_order(write, kind, _names(document, kind)).entry or entry
    return dataclasses.replace(imported, entry=entry)


def _with_observed(document: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the belt with what is observed in what is stored, instead of what was observed when it was exported, and
    with the texts of entries that have only decisions.
    """
    joined = dict(document)
    listed = {
        str(plugin.get("name"))
        for plugin in (*(stored.get("plugins") or ()), *_mappings(document.get("plugins")))
        if plugin.get("upstream") or plugin.get("in_code")
    }
    for section, kind in SECTIONS.items():
        written = document.get(section)
        if kind == "category" or not isinstance(written, list):
            continue
        now = {_name(kind, entry): entry for entry in stored.get(section, ())}
        joined[section] = [
            _with_facts(kind, entry, now.get(str(entry.get(entries.name_field(kind)))), listed)
            if isinstance(entry, Mapping)
            else entry
            for entry in written
        ]
    return joined


def _with_facts(
    kind: str, entry: Mapping[str, Any], stored: Any, listed: Collection[str]
) -> Mapping[str, Any]:
    entry = facts.with_observed(kind, entry, stored)
    return facts.with_texts(kind, entry, stored, is_listed=str(entry.get("plugin")) in listed)


def _mappings(written: Any) -> Iterator[Mapping[str, Any]]:
    for entry in written if isinstance(written, list) else ():
        if isinstance(entry, Mapping):
            yield entry


def _ignored(document: Mapping[str, Any]) -> Iterator[errors.Problem]:
    """Yield a note for each field of the belt that is ignored, because it is observed."""
    for section, kind in SECTIONS.items():
        written = document.get(section)
        for entry in written if isinstance(written, list) else ():
            for name in facts.observed(kind, entry):
                path = f"{belts.address(kind, entry)}.{name}"
                yield errors.Problem(path=path, message="Ignored: this is observed here, not imported.")


def _as_imported(
    proposed: catalog.Catalog, document: Mapping[str, Any], stored: Mapping[str, Any]
) -> catalog.Catalog:
    """Return the catalog with its toolkits in the order that they have after the import, and with what no belt has: the
    hooks of toolkits in code, and the versions of tools that programs declare.

    The order decides what the policy says first, and what a budget defers.
    """
    present = snapshots.catalog()
    existing, written = _names(stored, "toolkit"), _names(document, "toolkit")
    new = [name for name in written if name not in set(existing)]
    return catalog.compile_(
        number=proposed.number,
        stamp=proposed.stamp,
        categories=proposed.categories,
        plugins=proposed.plugins.values(),
        tools=[
            dataclasses.replace(tool, declared_versions=present.tools[key].declared_versions)
            if key in present.tools
            else tool
            for key, tool in proposed.tools.items()
        ],
        toolkits=[proposed.toolkits[key] for key in ordering.merge_order([*existing, *new], written)],
        loadouts=proposed.loadouts.values(),
        sub_apps=proposed.sub_apps.values(),
        gate_rules=proposed.gate_rules.values(),
        code=present.code,
        count_tokens=proposed.count_tokens,
    ).as_of(clock.now())


def _unresolved(document: Mapping[str, Any], stored: catalog.Catalog) -> tuple[unresolved.Unresolved, ...]:
    """Return the names in the document's loadouts that do not exist."""
    written = set(_names(document, "loadout"))
    return tuple(entry for entry in unresolved.find_all(stored) if entry.loadout in written)


def _entry(kind: str, written: Any) -> Mapping[str, Any]:
    return {"name": written} if kind == "category" else written


def _name(kind: str, written: Any) -> str:
    return str(_entry(kind, written)[entries.name_field(kind)])


def _names(document: Mapping[str, Any], kind: belts.KindName) -> list[str]:
    return [_name(kind, written) for written in document.get(belts.KINDS[kind].section) or ()]


def _is_reordered(section: str, document: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Return whether the belt's order differs from the stored one, with new entries at the end."""
    kind = SECTIONS[section]
    if not rows.is_ordered(kind):
        return False
    requested = _names(document, kind)
    names = set(requested)
    existing = [name for name in _names(stored, kind) if name in names]
    new = [name for name in requested if name not in set(existing)]
    return [*existing, *new] != requested


def _restored(document: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the belt with what is stored for each option that was withheld when it was exported."""
    restored = dict(document)
    for section, kind in SECTIONS.items():
        written = document.get(section)
        if isinstance(written, list) and any(belts.has_withheld(kind, entry) for entry in written):
            older = {_name(kind, entry): entry for entry in stored.get(section, ())}
            restored[section] = [
                belts.restored(kind, entry, older.get(str(entry.get(entries.name_field(kind)))))
                if isinstance(entry, dict)
                else entry
                for entry in written
            ]
    return restored


def _with_stored(document: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the belt with the stored entries that it does not name, so that it may refer to them.

    The belt's entries come first, as they are written, so that the paths of problems have its indexes.
    """
    # A section that is null is not given, so its stored entries stay.
    given_sections = {
        key: value for key, value in document.items() if value is not None or key not in SECTIONS
    }
    merged: dict[str, Any] = {**stored, **given_sections}
    for section, kind in SECTIONS.items():
        written = document.get(section)
        if not isinstance(written, list):
            continue
        naming = entries.name_field(kind)
        names = (entry.get(naming) if isinstance(entry, dict) else entry for entry in written)
        belt_names = {name for name in names if isinstance(name, str)}
        others = [entry for entry in stored.get(section, ()) if _name(kind, entry) not in belt_names]
        merged[section] = [*written, *others]
    return merged
