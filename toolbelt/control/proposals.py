"""What would this change do, and to whom? Loadouts, toolkits and sub-apps reach many agents at once, so a save shows
that first (dashboard: Loadouts).

A proposal is worked out beside what is stored and writes nothing. :func:`save` and :func:`remove` do what was shown:
they work it out again in their own transaction, and where it would do something else by now, they ask again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import actors, consequences, entries, guards, holdings, writing
from toolbelt.core import agents, belts, catalog, conflicts, definitions, errors, schema
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots

Kind = consequences.Kind
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a change would be. ``before`` and ``after`` hold the keys that differ, as an audit entry has them (``after``
    is None for a removal); ``touched`` are the agents that it reaches, out of ``agents``. ``digest`` stands for all of
    it.
    """

    kind: Kind
    name: str
    before: Entry | None
    after: Entry | None
    touched: tuple[consequences.Consequence, ...]
    agents: int
    digest: str

    @property
    def is_nothing(self) -> bool:
        """Say whether things are so already."""
        return self.after is not None and self.before is not None and not self.after


class Taken(errors.Refused):
    """Something else has the name that is wanted for a new one."""


class Unseen(errors.ConfirmationRequired):
    """The change reaches agents, and its writer has not been shown what it does to them: ``proposal`` says it."""

    def __init__(self, proposal: Proposal, again: bool) -> None:
        self.proposal = proposal
        count = len(proposal.touched)
        reasons = [
            f"It changes what {count} agent{'' if count == 1 else 's'} get{'s' if count == 1 else ''}."
        ]
        if again:
            reasons.insert(0, "It would do something else than you were shown: look again.")
        super().__init__(reasons, in_short(proposal))


def propose(
    kind: Kind, name: str, changes: Entry, *, was: Entry | None = None, new: bool = False
) -> Proposal:
    """Say what changing these keys would do (None puts a key back to its default); ``new``: there is none yet.

    Raises what the change itself would: NotFound, Invalid with every problem, Refused (also where an agent would pass a
    budget that refuses), and Stale where ``was`` (keys with their values) is no longer so.
    """
    naming = entries.naming(kind)
    stored = snapshots.catalog()
    now = _stored(stored, kind, name)
    if new and now is not None:
        raise Taken(f"{name!r} is there already: choose another name.")
    if not new and now is None:
        entries.read(kind, name)  # raises what there is to say
    for key, seen in (was or {}).items():
        if (now or {}).get(key) != seen:
            raise errors.Stale(
                f"{key} of {belts.KINDS[kind].word} {name}", seen, (now or {}).get(key), changes.get(key)
            )
    merged = {**(now or {naming: name}), **changes}
    wanted = {key: value for key, value in merged.items() if value is not None}
    if problems := belts.check_entry(kind, wanted, entries.known()):
        raise errors.Invalid(problems)
    value = belts.value(kind, wanted, stored)
    before, after = entries.differences(now, belts.entry(kind, value))
    if now is not None and (owned := entries.owned_by_code(kind, now, after)):
        raise errors.Invalid(owned)
    every = agent_rows.every()
    proposed = _with(stored, kind, name, value)
    if clashes := list(_clashes(kind, name, stored, proposed, every)):
        raise errors.Invalid(clashes)
    return _proposal(kind, name, None if now is None else before, after, stored, proposed, every)


def propose_removal(kind: Kind, name: str) -> Proposal:
    """Say what removing it would do. Raises NotFound, and Refused while something refers to it or a budget forbids."""
    now = entries.read(kind, name)
    entries.refuse_while_used(kind, name)
    stored = snapshots.catalog()
    proposed = _with(stored, kind, name, None)
    return _proposal(kind, name, now, None, stored, proposed, agent_rows.every())


def save(
    actor: actors.Actor,
    kind: Kind,
    name: str,
    changes: Entry,
    *,
    was: Entry | None = None,
    new: bool = False,
    shown: str = "",
    reason: str = "",
) -> writing.Change:
    """Change these keys, or make it; ``shown`` is the digest of the proposal that its writer looked at.

    A change that reaches no agent needs none. Raises as :func:`propose` does, and Unseen.
    """
    with writing.begin():
        proposal = propose(kind, name, changes, was=was, new=new)
        _ask(proposal, shown)
        if new:
            entry = {key: value for key, value in changes.items() if value is not None}
            return entries.create(actor, kind, {**entry, entries.naming(kind): name}, reason=reason)
        return entries.change(actor, kind, name, changes, was=was, reason=reason)


def remove(
    actor: actors.Actor, kind: Kind, name: str, *, was: Entry | None, shown: str = "", reason: str = ""
) -> writing.Change:
    """Remove it; ``was`` is the entry as its writer saw it. Raises as :func:`propose_removal` does, Stale, Unseen."""
    with writing.begin():
        _ask(propose_removal(kind, name), shown)
        return entries.remove(actor, kind, name, was=was, reason=reason)


def problems(kind: Kind, name: str, entry: Entry) -> list[errors.Problem]:
    """Say what is wrong with an entry that is still being written: every problem with its path."""
    written = {key: value for key, value in entry.items() if value is not None}
    return belts.check_entry(kind, {**written, entries.naming(kind): name}, entries.known())


def beside(kind: Kind, name: str, entry: Entry, agent: str) -> holdings.Holdings:
    """Give what this agent (if there is one) would have if the entry were stored; what of it cannot be understood is
    passed over.
    """
    stored = snapshots.catalog()
    value = belts.value(kind, {**entry, entries.naming(kind): name}, stored)
    return holdings.of(_with(stored, kind, name, value), agent)


def in_short(proposal: Proposal) -> dict[str, Any]:
    """Give a proposal as plain values."""
    return {
        "kind": proposal.kind,
        "name": proposal.name,
        "agents": [
            {
                "agent": one.agent.key,
                "tools": [one.effect.tools_before, one.effect.tools_after],
                "tokens": [one.effect.tokens_before, one.effect.tokens_after],
                "added": list(one.effect.added),
                "removed": list(one.effect.removed),
                "policy": [list(change) for change in one.effect.policy],
                "loadable": [list(one.gained), list(one.lost)],
            }
            for one in proposal.touched
        ],
    }


def _ask(proposal: Proposal, shown: str) -> None:
    if proposal.touched and shown != proposal.digest:
        raise Unseen(proposal, again=bool(shown))


def _stored(stored: catalog.Catalog, kind: Kind, name: str) -> dict[str, Any] | None:
    value = _values(stored, kind).get(name)
    return None if value is None else dict(belts.entry(kind, value))


def _values(stored: catalog.Catalog, kind: Kind) -> Mapping[str, Any]:
    match kind:
        case "loadout":
            return {one.name: one for one in stored.loadouts.values()}
        case "toolkit":
            return stored.toolkits
        case "sub_app":
            return stored.sub_apps


def _with(stored: catalog.Catalog, kind: Kind, name: str, value: Any) -> catalog.Catalog:
    """Give the catalog as it would be: with the value in its place, last where it is new, or without it."""
    changed = {**_values(stored, kind), name: value}
    if value is None:
        del changed[name]
    values = {one: _values(stored, one) for one in ("loadout", "toolkit", "sub_app")} | {kind: changed}
    proposed = catalog.compile_(
        number=stored.number,
        categories=stored.categories,
        plugins=stored.plugins.values(),
        tools=stored.tools.values(),
        toolkits=values["toolkit"].values(),
        loadouts=values["loadout"].values(),
        sub_apps=values["sub_app"].values(),
        code=stored.code,
    )
    # The tools are the same ones, and so is what is sent of each, but for the toolkits that are named there.
    kept = stored.derived.setdefault("definitions", {})
    proposed.derived["definitions"] = _as_in(proposed, kept) if kind == "toolkit" else kept
    return proposed


def _as_in(
    proposed: catalog.Catalog, kept: Mapping[str, definitions.Definition]
) -> dict[str, definitions.Definition]:
    """Give those that are the same there; what is added to them is seen nowhere else."""
    return {
        tool: definition
        for tool, definition in {**kept}.items()
        if definition.toolkits == tuple(kit.key for kit in proposed.toolkits_of.get(tool, ()))
    }


def _clashes(
    kind: Kind, name: str, stored: catalog.Catalog, proposed: catalog.Catalog, every: Iterable[agents.Agent]
) -> Iterator[errors.Problem]:
    """Find where the options that it hands to a tool would now differ from another's, for some agent."""
    field = {"toolkit": "members", "sub_app": "tool_names"}.get(kind)
    if field is None:
        return
    for agent in every:
        already = conflicts.of_agent(stored, agent)
        for conflict in conflicts.of_agent(proposed, agent):
            if conflict not in already and name in (conflict.first.name, conflict.second.name):
                path = f"{belts.KINDS[kind].section}.{name}.{field}"
                yield errors.Problem(path=path, message=f"For {agent.key}: {conflict.message}")


def _proposal(
    kind: Kind,
    name: str,
    before: Entry | None,
    after: Entry | None,
    stored: catalog.Catalog,
    proposed: catalog.Catalog,
    every: Collection[agents.Agent],
) -> Proposal:
    touched = consequences.of(kind, name, stored, proposed, every)
    guards.refuse_budgets((one.agent.key, one.spent, one.spends) for one in touched if not one.agent.archived)
    proposal = Proposal(
        kind=kind, name=name, before=before, after=after, touched=touched, agents=len(every), digest=""
    )
    said = schema.canonical([before, after, in_short(proposal)])
    return Proposal(
        kind=kind,
        name=name,
        before=before,
        after=after,
        touched=touched,
        agents=len(every),
        digest=hashlib.sha256(said.encode()).hexdigest(),
    )
