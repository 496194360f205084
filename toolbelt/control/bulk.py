"""How are many switches and overrides set alike at once, for one agent or for many?

A plan says first what that would do: how many are so already, what changes for each agent, what has to be confirmed,
and which agents' budgets stand against it. What is then done is what was shown: if one of them is not as it was seen,
nothing is done. It is one transaction; each change has its entry in the audit, and they share a batch, so that they
can be undone as one.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from toolbelt import conf
from toolbelt.control import actors, endings, guards, holdings, impacts, switches, writing
from toolbelt.core import catalog, effects, errors, grants, inventory
from toolbelt.store import clock, sessions, snapshots

# What is (or was seen to be) set, by the keys of agents, and of toolkits and tools.
Seen = Mapping[str, Mapping[str, grants.Said]]
# How many changes one act may make: all of them are in one transaction, during which nobody else writes.
MOST_CHANGES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What the act would do for one agent: ``before`` by the keys that are not so yet.

    ``reasons`` have to be confirmed. ``refused`` says why it cannot be done for this agent; empty: it can.
    """

    agent: str
    before: Mapping[str, grants.Said]
    effect: effects.Effect
    reasons: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What setting these keys to ``on`` would do: for each agent for which something changes, in the order in which
    they were named; ``same`` is how many are so already.
    """

    on: bool | None
    parts: tuple[Part, ...]
    same: int
    sessions: int = 0

    @property
    def changes(self) -> int:
        """Say how many switches and overrides would be set, where nothing is refused."""
        return sum(len(part.before) for part in self.possible)

    @property
    def possible(self) -> tuple[Part, ...]:
        """Give what can be done."""
        return tuple(part for part in self.parts if not part.refused)

    @property
    def refused(self) -> tuple[Part, ...]:
        """Give what cannot."""
        return tuple(part for part in self.parts if part.refused)

    @property
    def seen(self) -> Seen:
        """Give what :func:`apply` compares: what would change, as it is."""
        return {part.agent: dict(part.before) for part in self.possible}


def plan(names: Sequence[str], keys: Collection[str], on: bool | None) -> Plan:
    """Say what setting the switches and overrides of ``keys`` to ``on`` (None: clearing them) would do for these
    agents, and do nothing. A fixed number of queries, however many there are; what each has and would have is worked
    out by sets of tools, and its surface is not built.

    Raises NotFound for a name that nothing has, and Refused for more than anybody can overlook.
    """
    stored = snapshots.catalog()
    _check(stored, keys, len(names))
    there = _holders(stored, names)
    live = sessions.live_of(names, clock.now() - impacts.LIVE)
    parts, same, touched = [], 0, 0
    for name in dict.fromkeys(names):
        part = _part(there[name], keys, on)
        same += len(set(keys)) - len(part.before)
        if part.before:
            parts.append(part)
            touched += live.get(name, 0) if part.effect.breaks and not part.refused else 0
    return Plan(on=on, parts=tuple(parts), same=same, sessions=touched)


def apply(
    actor: actors.Actor,
    seen: Seen,
    on: bool | None,
    *,
    ends: dt.datetime | None = None,
    reason: str = "",
    confirm: bool = False,
) -> writing.Change:
    """Set what was ``seen`` of each agent to ``on``, until ``ends`` if that is given: all of it, or nothing.

    Raises NotFound; Stale for the first that is not as it was seen; Refused with every agent for which it cannot be
    done; and ConfirmationRequired with all that has to be confirmed. The answer's ``after`` counts the changes by
    agent; its effect is that on the one agent, where it was one.
    """
    with writing.begin():
        stored = snapshots.catalog()
        _check(stored, {key for keys in seen.values() for key in keys}, len(seen))
        batch: uuid.UUID = writing.new_batch()
        done: dict[str, int] = {}
        refused: list[str] = []
        asked: list[str] = []
        shown: list[effects.Effect] = []
        entry, effect = None, None
        for name, before in seen.items():
            found = endings.find(name)
            for key, was in before.items():
                # With its end: on for good, as it was seen, is another thing than on until two, as it is by now.
                if (now := grants.said(found.agent, key)) != was:
                    raise errors.Stale(f"{key} for {name}", was, now, on)
            wanted = dict.fromkeys(before, on)
            if not confirm:
                part = _part(holdings.Holder(agent=found.agent, catalog=stored), before, on)
                asked += _named(name, part.reasons, len(seen))
                shown.append(part.effect)
            try:
                change = switches.together(
                    actor,
                    found,
                    wanted,
                    ends=dict.fromkeys(before, ends),
                    reason=reason,
                    confirm=True,
                    batch=batch,
                )
            except (errors.Refused, errors.Invalid) as error:
                refused.append(str(error))
                continue
            entry, effect = change.entry or entry, change.effect
            done[name] = len(change.after)
        if refused:
            raise errors.Refused(" ".join(["Nothing was changed.", *refused]))
        if asked:
            raise errors.ConfirmationRequired(asked, _together(on, shown))
    return writing.Change(entry=entry, before=None, after=done, effect=effect if len(seen) == 1 else None)


def _check(stored: catalog.Catalog, keys: Collection[str], agents_named: int) -> None:
    for key in keys:
        if key not in stored.toolkits and key not in stored.tools:
            raise errors.NotFound("toolkit or tool", key, [*stored.toolkits, *stored.tools])
    if len(keys) * agents_named > MOST_CHANGES:
        raise errors.Refused(
            f"{len(keys)} toolkits and tools for {agents_named} agents are more than {MOST_CHANGES} at once:"
            " narrow the filter."
        )


def _holders(stored: catalog.Catalog, names: Sequence[str]) -> dict[str, holdings.Holder]:
    """Return these agents by name, archived or not. Raises NotFound for a name that nothing has."""
    there: dict[str, holdings.Holder] = {}
    for archived in (False, True):
        if not all(name in there for name in names):
            found = holdings.of_now(stored, archived=archived)
            there |= {holder.agent.key: holder for holder in found.holders}
    for name in names:
        if name not in there:
            raise errors.NotFound("agent", name, there)
    return there


def _part(holder: holdings.Holder, keys: Collection[str], on: bool | None) -> Part:
    agent, stored = holder.agent, holder.catalog
    before = {key: now for key in keys if (now := grants.said(agent, key)) != on}
    wanted = switches.wished(stored, agent, dict.fromkeys(before, on))
    had = holder.inventory
    has = had if wanted == agent else inventory.take(stored, wanted, conf.KIND_LOADOUTS)
    effect = effects.of_inventories(stored, had, has)
    refused = ""
    try:
        guards.refuse_archived(agent, wanted)
        guards.refuse_conflicts(stored, agent, wanted, ", ".join(before))
        guards.refuse_budget(agent.key, had.spent, has.spent)
    except (errors.Refused, errors.Invalid) as error:
        refused = str(error)
    return Part(
        agent=agent.key,
        before=before,
        effect=effect,
        reasons=tuple(guards.far_reaching(stored, agent, wanted, on, effect)),
        refused=refused,
    )


def _named(agent: str, reasons: Sequence[str], many: int) -> list[str]:
    """Say of which agent each reason is, where there are several."""
    return [
        reason if many == 1 or reason.startswith(f"{agent} ") else f"{agent}: {reason}" for reason in reasons
    ]


def _together(on: bool | None, found: Sequence[effects.Effect]) -> dict[str, object]:
    """Give the effects of all agents as one, in the form of :func:`guards.differences`."""
    return {
        "key": "",
        "on": on,
        "tools": [sum(one.tools_before for one in found), sum(one.tools_after for one in found)],
        "tokens": [sum(one.tokens_before for one in found), sum(one.tokens_after for one in found)],
        "added": sorted({key for one in found for key in one.added}),
        "removed": sorted({key for one in found for key in one.removed}),
        "policy": sorted({change for one in found for change in one.policy}) if len(found) == 1 else [],
        "breaks": [part for part in ("tools", "system text") if any(part in one.breaks for one in found)],
        "sessions": None,
    }
