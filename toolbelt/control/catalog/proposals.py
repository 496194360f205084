"""Proposals: the effects on agents of a change of a loadout, toolkit, sub-app or gate rule, shown before it is saved.

A proposal is computed from what is stored, and nothing is written. :func:`save` and :func:`remove` do what was shown:
they compute it again in their own transaction, and ask again if the result differs.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import guards, writing
from toolbelt.control.access import access_index
from toolbelt.control.catalog import consequences, entries, rule_effects, unresolved
from toolbelt.core import agents, belts, catalog, conflicts, definitions, errors, schema, texts
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots

Kind = consequences.Kind
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The effects of a change. ``before`` and ``after`` hold the keys that differ, as in an audit entry (``after`` is
    None for a removal); ``touched`` are the agents that it affects, out of ``agents``. ``denials`` are the names that a
    loadout would newly disable and that do not exist. ``rule_effect`` is whom and what a gate rule
    concerns. ``digest`` identifies the proposal.
    """

    kind: Kind
    name: str
    before: Entry | None
    after: Entry | None
    touched: tuple[consequences.Consequence, ...]
    agents: int
    digest: str
    denials: tuple[unresolved.Unresolved, ...] = ()
    rule_effect: rule_effects.RuleEffect | None = None

    @property
    def is_nothing(self) -> bool:
        """Return whether nothing would change."""
        return self.after is not None and self.before is not None and not self.after


class UnseenEffect(errors.ConfirmationRequired):
    """The change affects agents, and the writer has not seen how; ``proposal`` describes it."""

    def __init__(self, proposal: Proposal, again: bool) -> None:
        self.proposal = proposal
        count = len(proposal.touched)
        reasons = [str(unresolved.as_problem(denial)) for denial in proposal.denials]
        if proposal.rule_effect is not None:
            reasons.append("It concerns calls: see whose, and of which tools.")
        if count:
            reasons.append(f"It changes what {texts.counted(count, 'agent')} get{'s' if count == 1 else ''}.")
        if again:
            reasons.insert(0, "The effects have changed since you saw them: review them again.")
        super().__init__(reasons, summarize(proposal))


def propose(
    kind: Kind,
    name: str,
    changes: Entry,
    *,
    was: Entry | None = None,
    new: bool = False,
    write: writing.Write | None = None,
) -> Proposal:
    """Return the effects of changing these keys (None resets a key to its default); ``new``: the entry does not exist
    yet.

    Raise what the change itself would: NotFound, Invalid with every problem, Refused (also if an agent would exceed a
    budget that refuses), or Stale if ``was`` (keys with their values) has changed. ``write`` is the one that would make
    the change, if there is one already.
    """
    naming = entries.name_field(kind)
    stored = snapshots.catalog()
    now = _stored(stored, kind, name)
    if new and now is not None:
        raise entries.NameTaken(f"{name!r} already exists: choose another name.")
    if not new and now is None:
        entries.read(kind, name)  # raises NotFound
    entries.refuse_stale(write, kind, name, now, was or {}, changes)
    merged = {**(now or {naming: name}), **changes}
    entry = belts.restored(kind, {key: value for key, value in merged.items() if value is not None}, now)
    if problems := belts.check_entry(kind, entry, entries.name_index(), stored=now):
        raise errors.Invalid(problems)
    value = belts.value(kind, entry, stored)
    before, after = entries.differences(now, belts.entry(kind, value, with_secrets=True))
    if now is not None and (code_problems := entries.owned_by_code(kind, now, after)):
        raise errors.Invalid(code_problems)
    all_agents = agent_rows.load_all()
    proposed = _with(stored, kind, name, value)
    if clashes := list(_clashes(kind, name, stored, proposed, all_agents)):
        raise errors.Invalid(clashes)
    denials = unresolved.new_denials(unresolved.of_entry(stored, entry), now) if kind == "loadout" else ()
    return _proposal(
        kind, name, None if now is None else before, after, stored, proposed, all_agents, denials
    )


def propose_removal(kind: Kind, name: str) -> Proposal:
    """Return the effects of removing it; raise NotFound, or Refused if a reference or a budget forbids it."""
    now = entries.read(kind, name)
    entries.refuse_while_used(kind, name)
    stored = snapshots.catalog()
    proposed = _with(stored, kind, name, None)
    return _proposal(kind, name, now, None, stored, proposed, agent_rows.load_all())


def save(
    write: writing.Write,
    kind: Kind,
    name: str,
    changes: Entry,
    *,
    was: Entry | None = None,
    new: bool = False,
    seen_digest: str = "",
) -> writing.Change:
    """Change these keys, or create the entry; ``seen_digest`` is the digest of the proposal that the writer saw.

    A change that affects no agent, and disables nothing that does not exist, needs none. Raise as :func:`propose`
    does, or UnseenEffect.
    """
    with writing.begin():
        proposal = propose(kind, name, changes, was=was, new=new, write=write)
        _require_seen(proposal, seen_digest)
        write = write.replace(confirm=True)
        if new:
            entry = {key: value for key, value in changes.items() if value is not None}
            return entries.create(write, kind, {**entry, entries.name_field(kind): name})
        return entries.change(write, kind, name, changes, was=was)


def remove(
    write: writing.Write, kind: Kind, name: str, *, was: Entry | None, seen_digest: str = ""
) -> writing.Change:
    """Remove it; ``was`` is the entry as the writer saw it. Raise as :func:`propose_removal` does, Stale, or
    UnseenEffect.
    """
    with writing.begin():
        _require_seen(propose_removal(kind, name), seen_digest)
        return entries.remove(write, kind, name, was=was)


def problems(kind: Kind, name: str, entry: Entry) -> list[errors.Problem]:
    """Return every problem of an entry that is still being edited, with its path."""
    written = {key: value for key, value in entry.items() if value is not None}
    now = _stored(snapshots.catalog(), kind, name)
    entry = belts.restored(kind, {**written, entries.name_field(kind): name}, now)
    return belts.check_entry(kind, entry, entries.name_index(), stored=now)


def preview_access(kind: Kind, name: str, entry: Entry, agent: str) -> access_index.AccessIndex:
    """Return the access of this agent (if any) as if the entry were stored; invalid parts are skipped."""
    stored = snapshots.catalog()
    entry = belts.restored(kind, {**entry, entries.name_field(kind): name}, _stored(stored, kind, name))
    value = belts.value(kind, entry, stored)
    return access_index.load_uncached(_with(stored, kind, name, value), agent)


def summarize(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as plain values."""
    return {
        "kind": proposal.kind,
        "name": proposal.name,
        "unresolved": [denial.name for denial in proposal.denials],
        "agents": [
            {
                "agent": consequence.agent.key,
                "tools": [consequence.effect.tools_before, consequence.effect.tools_after],
                "tokens": [consequence.effect.tokens_before, consequence.effect.tokens_after],
                "added": list(consequence.effect.added),
                "removed": list(consequence.effect.removed),
                "policy": [list(change) for change in consequence.effect.policy],
                "loadable": [list(consequence.gained), list(consequence.lost)],
            }
            for consequence in proposal.touched
        ],
        **(
            {} if (concerned := proposal.rule_effect) is None else {"concerns": dataclasses.asdict(concerned)}
        ),
    }


def _require_seen(proposal: Proposal, seen_digest: str) -> None:
    is_to_be_seen = proposal.touched or proposal.denials or proposal.rule_effect is not None
    if is_to_be_seen and not proposal.is_nothing and seen_digest != proposal.digest:
        raise UnseenEffect(proposal, again=bool(seen_digest))


def _stored(stored: catalog.Catalog, kind: Kind, name: str) -> dict[str, Any] | None:
    value = _values(stored, kind).get(name)
    return None if value is None else dict(belts.entry(kind, value, with_secrets=True))


def _values(stored: catalog.Catalog, kind: Kind) -> Mapping[str, Any]:
    match kind:
        case "loadout":
            return {loadout.name: loadout for loadout in stored.loadouts.values()}
        case "toolkit":
            return stored.toolkits
        case "sub_app":
            return stored.sub_apps
        case "gate_rule":
            return stored.gate_rules


def _with(stored: catalog.Catalog, kind: Kind, name: str, value: Any) -> catalog.Catalog:
    """Return the catalog with the value in its place (last if it is new), or without it."""
    changed = {**_values(stored, kind), name: value}
    if value is None:
        del changed[name]
    kinds: tuple[Kind, ...] = ("loadout", "toolkit", "sub_app", "gate_rule")
    values = {other: _values(stored, other) for other in kinds} | {kind: changed}
    proposed = catalog.replace(
        stored,
        toolkits=values["toolkit"].values(),
        loadouts=values["loadout"].values(),
        sub_apps=values["sub_app"].values(),
        gate_rules=values["gate_rule"].values(),
    )
    # The tools are the same, and so are their definitions, except for the toolkits that these name.
    known = definitions.computed(stored)
    definitions.computed(proposed).update(
        _unchanged_definitions(proposed, known) if kind == "toolkit" else known
    )
    return proposed


def _unchanged_definitions(
    proposed: catalog.Catalog, stored_definitions: Mapping[str, definitions.Definition]
) -> dict[str, definitions.Definition]:
    """Return a copy of the definitions that are the same in the proposed catalog."""
    return {
        tool: definition
        for tool, definition in {**stored_definitions}.items()
        if definition.toolkits == tuple(kit.key for kit in proposed.toolkits_of.get(tool, ()))
    }


def _clashes(
    kind: Kind,
    name: str,
    stored: catalog.Catalog,
    proposed: catalog.Catalog,
    all_agents: Iterable[agents.Agent],
) -> Iterator[errors.Problem]:
    """Yield a problem for each agent in which the options of the entry would newly conflict with another's."""
    field = {"toolkit": "members", "sub_app": "tool_names"}.get(kind)
    if field is None:
        return
    for agent in all_agents:
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
    all_agents: Collection[agents.Agent],
    denials: tuple[unresolved.Unresolved, ...] = (),
) -> Proposal:
    touched = consequences.of(kind, name, stored, proposed, all_agents)
    rule = (proposed.gate_rules.get(name) or stored.gate_rules[name]) if kind == "gate_rule" else None
    guards.refuse_budgets(
        (consequence.agent.key, consequence.spent_before, consequence.spent_after)
        for consequence in touched
        if not consequence.agent.archived
    )
    proposal = Proposal(
        kind=kind,
        name=name,
        before=before,
        after=after,
        touched=touched,
        agents=len(all_agents),
        digest="",
        denials=denials,
        rule_effect=None if rule is None else rule_effects.of(proposed, rule, all_agents),
    )
    text = schema.canonical([before, after, summarize(proposal)])
    return dataclasses.replace(proposal, digest=hashlib.sha256(text.encode()).hexdigest())
