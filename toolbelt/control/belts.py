"""How does a whole configuration come in, or go out, as one file?"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.control import actors, endings, entries, guards, ordering, reach, writing
from toolbelt.core import belts, budgets, catalog, errors, schema
from toolbelt.store import entries as rows
from toolbelt.store import revisions, tokens

# In the order in which they refer to each other: what is named stands before what names it.
SECTIONS: Mapping[str, belts.KindName] = {
    "categories": "category",
    "plugins": "plugin",
    "tools": "tool",
    "toolkits": "toolkit",
    "loadouts": "loadout",
    "agents": "agent",
    "sub_apps": "sub_app",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An entry that an import creates (``before`` is None) or changes: whole, as it is stored before and after."""

    kind: belts.KindName
    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did or would do: the entries that it creates and changes, in order, and how many are as the belt
    says already. ``ordered`` names the kinds whose entries stand in another order since; ``entry`` is the id of the
    last audit entry, None where nothing was written.
    """

    differences: tuple[Difference, ...]
    same: int
    ordered: tuple[belts.KindName, ...] = ()
    entry: int | None = dataclasses.field(default=None, compare=False)

    @property
    def created(self) -> int:
        """Say how many entries are new."""
        return sum(one.before is None for one in self.differences)

    @property
    def changed(self) -> int:
        """Say how many entries were there, and differ."""
        return len(self.differences) - self.created


def export() -> dict[str, Any]:
    """Give the whole configuration as a belt. It holds no secret, no session and no token."""
    return rows.export()


def part(sections: Collection[str]) -> dict[str, Any]:
    """Give these sections of the configuration, in the order of a belt."""
    return {name: entries_ for name, entries_ in export().items() if name in sections}


def exported() -> tuple[int, dict[str, Any]]:
    """Give the whole configuration with the revision that it is the state of."""
    number, document = revision(), export()
    while (now := revision()) != number:
        number, document = now, export()
    return number, document


def revision() -> int:
    """Give the number of the last write of configuration."""
    return revisions.number()


def check(document: Mapping[str, Any]) -> list[errors.Problem]:
    """Say what stands against importing this belt now: judged together with what is stored, which it may refer to."""
    return belts.check(_with_stored(document, rows.export()))


def preview(actor: actors.Actor, document: Mapping[str, Any]) -> Imported:
    """Say what importing this belt would do now, if they did it, and do nothing. Raises as :func:`import_` does."""
    return judge(actor, document)[0]


def judge(
    actor: actors.Actor, document: Mapping[str, Any], count_tokens: Callable[[str], int] | None = None
) -> tuple[Imported, belts.Belt]:
    """Say what importing this belt would do now, as :func:`preview` does, and what all would be then; with the tokens
    of its tools, where something counts them.
    """
    stored = rows.export()
    belt = belts.load(_with_stored(document, stored), count_tokens=count_tokens)
    there = {
        (kind, _name(kind, entry)): _entry(kind, entry)
        for section, kind in SECTIONS.items()
        for entry in stored.get(section, ())
    }
    found: list[Difference] = []
    owned: list[errors.Problem] = []
    same = 0
    for section, kind in SECTIONS.items():
        for written in document.get(section) or ():
            name = _name(kind, written)
            before = there.get((kind, name))
            after = _entry(kind, belts.entry(kind, belts.value(kind, written, belt.catalog)))
            if after == before:
                same += 1
                continue
            if kind == "plugin":
                reach.guard(actor, name, before, after)
            found.append(Difference(kind=kind, name=name, before=before, after=after))
            owned += entries.owned_by_code(kind, before, entries.differences(before, after)[1])
            if before is not None and before.get("archived") and after.get("archived"):
                message = f"It is archived, and stays as it is: {errors.BRING_BACK}."
                owned.append(errors.Problem(path=belts.address("agent", dict(after)), message=message))
    if owned := [*owned, *_passed_budgets(found, stored, belt)]:
        raise errors.Invalid(owned)
    ordered = tuple(kind for section, kind in SECTIONS.items() if _is_reordered(section, document, stored))
    return Imported(differences=tuple(found), same=same, ordered=ordered), belt


def import_(
    actor: actors.Actor, document: Mapping[str, Any], *, was: int | None = None, reason: str = ""
) -> Imported:
    """Bring every entry of the belt about, in its order, in one transaction; what it does not name stays as it is.

    Each entry that is created or changed is audited; all share a batch. ``was`` is the revision that the writer saw:
    another one now raises Stale. Raises errors.Invalid with every problem, judged together with what stands already
    (also each agent that would pass a budget that refuses, by its own entry or by what agents share), and Refused for
    a connection that may not come this way; and then nothing is written.
    """
    # Judged before the lock is taken, because that takes long; judged again only if somebody wrote meanwhile.
    judged, wanted = revision(), preview(actor, document)
    batch = writing.new_batch()
    with writing.begin():
        now = revision()
        if was is not None and now != was:
            raise errors.Stale("The configuration", f"revision {was}", f"revision {now}")
        if now != judged:
            wanted = preview(actor, document)
        endings.write_due()
        entry: int | None = None
        for one in wanted.differences:
            stored = rows.write(one.kind, dict(one.after))
            entry = entries.recorded(
                actor, one.kind, one.name, one.before, stored, reason=reason, batch=batch
            )
        for kind in wanted.ordered:
            entry = (
                ordering.put(actor, kind, _names(document, kind), reason=reason, batch=batch).entry or entry
            )
    return dataclasses.replace(wanted, entry=entry)


def _passed_budgets(
    found: Sequence[Difference], stored: Mapping[str, Any], wanted: belts.Belt
) -> list[errors.Problem]:
    """Say which agents would pass a budget that refuses, by the rule of a flip: those that are created or changed, and
    every one where something that agents share is.
    """
    count = _counting()
    before: belts.Belt | None = None
    problems: list[errors.Problem] = []
    written = {one.name for one in found if one.kind == "agent"}
    reaches_all = any(budgets.hold(one.kind, entries.differences(one.before, one.after)[1]) for one in found)
    there = {_name("agent", entry) for entry in stored.get("agents", ())}
    for name, agent in wanted.agents.items():
        if agent.budget is None or agent.budget.on_exceed != "refuse":
            continue
        if name not in written and (agent.archived or not reaches_all):
            continue
        has = _spent(wanted, name, count)
        if not has.is_passed:
            continue
        if before is None:
            before = belts.load(stored, lenient=True)
        had = _spent(before, name, count) if name in there else budgets.Spent(tools=0, tokens=0)
        try:
            guards.refuse_budget(name, had, has)
        except errors.Refused as refused:
            path = f"{belts.address('agent', {'key': name})}.budget"
            problems.append(errors.Problem(path=path, message=str(refused)))
    return problems


def _spent(belt: belts.Belt, agent: str, count: Callable[[catalog.Tool], int]) -> budgets.Spent:
    """Say what the agent has active by this belt. A budget that refuses defers nothing, so its tools need no tokens
    before; and a belt's tools bring none: these are counted for the active ones alone.
    """
    resolved = guards.resolved(belt.catalog, belt.agents[agent])
    spent = sum(count(belt.catalog.tools[key]) for key in resolved.active)
    return dataclasses.replace(resolved.spent, tokens=spent)


def _counting() -> Callable[[catalog.Tool], int]:
    """Give what counts the tokens of a tool, each that is sent alike only once."""

    @functools.cache
    def counted(key: str, description: str, input_schema: str) -> int:
        return tokens.count(catalog.sent(key, description, schema.mapping(input_schema, schema.EMPTY)))

    return lambda tool: counted(tool.key, tool.description, tool.input_schema)


def _entry(kind: str, written: Any) -> Mapping[str, Any]:
    return {"name": written} if kind == "category" else written


def _name(kind: str, written: Any) -> str:
    return str(_entry(kind, written)[entries.naming(kind)])


def _names(document: Mapping[str, Any], kind: belts.KindName) -> list[str]:
    return [_name(kind, written) for written in document.get(belts.KINDS[kind].section) or ()]


def _is_reordered(section: str, document: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Say whether the belt names entries in another order than they would stand in: what is new goes last."""
    kind = SECTIONS[section]
    if not rows.is_ordered(kind):
        return False
    wanted = _names(document, kind)
    named = set(wanted)
    there = [name for name in _names(stored, kind) if name in named]
    new = [name for name in wanted if name not in set(there)]
    return [*there, *new] != wanted


def _with_stored(document: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Give the belt with what is stored behind it, where the belt does not name the same: so it may refer to that.

    The belt's entries stand first, as they are written, so that a problem's path counts as its writer does.
    """
    # A section that is null is not given, and what is stored of it stands.
    said = {key: value for key, value in document.items() if value is not None or key not in SECTIONS}
    merged: dict[str, Any] = {**stored, **said}
    for section, kind in SECTIONS.items():
        written = document.get(section)
        if not isinstance(written, list):
            continue
        naming = entries.naming(kind)
        given = (entry.get(naming) if isinstance(entry, dict) else entry for entry in written)
        named = {name for name in given if isinstance(name, str)}
        kept = [entry for entry in stored.get(section, ()) if _name(kind, entry) not in named]
        merged[section] = [*written, *kept]
    return merged
