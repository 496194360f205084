"""Setting many switches and overrides at once, for one agent or for many.

A plan shows what that would do: how many are already set, what changes for each agent, what must be confirmed, and
which agents' budgets prevent it. What is then done is what was shown: if any of them has changed since, nothing is
done. It is one transaction; each change has its audit entry, and all share a batch, so that they can be undone
together.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from toolbelt import conf
from toolbelt.control import guards, impacts, writing
from toolbelt.control.access import access_index, expirations, switches
from toolbelt.core import catalog, effects, errors, grants, rollouts
from toolbelt.core.rules import inventory
from toolbelt.store import snapshots

# What is set (or was when it was shown), by the keys of agents, and of toolkits and tools.
Seen = Mapping[str, Mapping[str, grants.SwitchState]]
# How many changes are made at once: they share one transaction, during which no other operator can write.
MAX_CHANGES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChange:
    """The change for one agent: ``before`` holds the keys that change, with their current state.

    ``reasons`` must be confirmed. ``refused`` is why it cannot be done for this agent; empty if it can.
    """

    agent: str
    before: Mapping[str, grants.SwitchState]
    effect: effects.Effect
    reasons: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The effects of setting these keys to ``on``, for each agent that changes, in the requested order.

    ``unchanged`` is how many are already set, and ``skipped`` how many are left out because the agent does not have
    them.
    """

    on: bool | None
    parts: tuple[AgentChange, ...]
    unchanged: int
    skipped: int = 0
    conversations: effects.Conversations = effects.NO_CONVERSATIONS

    @property
    def changes(self) -> int:
        """Return the number of switches and overrides that would be set."""
        return sum(len(part.before) for part in self.possible)

    @property
    def possible(self) -> tuple[AgentChange, ...]:
        """Return the parts that can be done."""
        return tuple(part for part in self.parts if not part.refused)

    @property
    def refused(self) -> tuple[AgentChange, ...]:
        """Return the parts that cannot be done."""
        return tuple(part for part in self.parts if part.refused)

    @property
    def seen(self) -> Seen:
        """Return the state that :func:`apply` compares: that of everything that would change."""
        return {part.agent: dict(part.before) for part in self.possible}


def plan(names: Sequence[str], keys: Collection[str], on: bool | None, *, only_having: bool = False) -> Plan:
    """Return the effects of setting the switches and overrides of ``keys`` to ``on`` (None: clearing them) for these
    agents, without setting them. Uses a fixed number of queries, and builds no surfaces.

    With ``only_having``, a tool that nothing grants or offers an agent is left out for that agent.

    Raise NotFound for a name that does not exist, or Refused for too many changes.
    """
    stored = snapshots.catalog()
    _check(stored, keys, len(names))
    by_name = _access_by_name(stored, names)
    live = impacts.by_agent(names)
    parts, unchanged, skipped, touched = [], 0, 0, effects.NO_CONVERSATIONS
    for name in dict.fromkeys(names):
        access = by_name[name]
        applicable = [
            key
            for key in dict.fromkeys(keys)
            if not only_having or key in stored.toolkits or not access.never_gets(key)
        ]
        part = _part(access, applicable, on)
        unchanged += len(applicable) - len(part.before)
        skipped += len(set(keys)) - len(applicable)
        if part.before:
            parts.append(part)
            if part.effect.breaks and not part.refused:
                touched += live.get(name, effects.NO_CONVERSATIONS)
    return Plan(on=on, parts=tuple(parts), unchanged=unchanged, skipped=skipped, conversations=touched)


def apply(
    write: writing.Write, seen: Seen, on: bool | None, *, ends: dt.datetime | None = None
) -> writing.Change:
    """Set what was ``seen`` of each agent to ``on``, until ``ends`` if given: all of it, or nothing.

    Raise NotFound; Stale for the first that is not as it was seen; Refused with every agent for which it cannot be
    done; or ConfirmationRequired with everything to confirm. The result's ``after`` counts the changes by agent; its
    effect is set if there is one agent.
    """
    with writing.begin():
        stored = snapshots.catalog()
        _check(stored, {key for keys in seen.values() for key in keys}, len(seen))
        confirmed = write.replace(confirm=True).in_batch()
        change_counts: dict[str, int] = {}
        refused: list[str] = []
        to_confirm: list[str] = []
        shown_effects: list[effects.Effect] = []
        entry, effect = None, None
        for name, before in seen.items():
            target = expirations.find(name)
            for key, was in before.items():
                # Compared with its expiry, because a switch that is on permanently differs from one that is on until
                # two.
                if (now := grants.switch_state(target.agent, key)) != was:
                    by = writing.author(write, "agent", name, key)
                    raise errors.Stale(f"{key} for {name}", was, now, on, by=by)
            settings = dict.fromkeys(before, on)
            if not write.confirm:
                part = _part(access_index.AgentAccess(agent=target.agent, catalog=stored), before, on)
                to_confirm += _with_agent(name, part.reasons, len(seen))
                shown_effects.append(part.effect)
            try:
                change = switches.set_all(confirmed, target, settings, ends=dict.fromkeys(before, ends))
            except (errors.Refused, errors.Invalid) as error:
                refused.append(str(error))
                continue
            entry, effect = change.entry or entry, change.effect
            change_counts[name] = len(change.after)
        if refused:
            raise errors.Refused(" ".join(["Nothing was changed.", *refused]))
        if to_confirm:
            raise errors.ConfirmationRequired(to_confirm, _together(on, shown_effects))
    return writing.Change(
        entry=entry, before=None, after=change_counts, effect=effect if len(seen) == 1 else None
    )


def _check(stored: catalog.Catalog, keys: Collection[str], agents_named: int) -> None:
    for key in keys:
        if key not in stored.toolkits and key not in stored.tools:
            raise errors.NotFound("toolkit or tool", key, [*stored.toolkits, *stored.tools])
    if len(keys) * agents_named > MAX_CHANGES:
        raise errors.Refused(
            f"{len(keys)} toolkits and tools for {agents_named} agents are more than {MAX_CHANGES} at once:"
            " narrow the filter."
        )


def _access_by_name(stored: catalog.Catalog, names: Sequence[str]) -> dict[str, access_index.AgentAccess]:
    """Return these agents by name, archived or not; raise NotFound for a name that does not exist."""
    by_name: dict[str, access_index.AgentAccess] = {}
    for archived in (False, True):
        if not all(name in by_name for name in names):
            index = access_index.load_with_catalog(stored, archived=archived)
            by_name |= {access.agent.key: access for access in index.agents}
    for name in names:
        if name not in by_name:
            raise errors.NotFound("agent", name, by_name)
    return by_name


def _part(access: access_index.AgentAccess, keys: Collection[str], on: bool | None) -> AgentChange:
    agent, stored = access.agent, access.catalog
    # What is rolled out is not as it is stored in all sessions.
    split = rollouts.named(agent.rollout, keys) if agent.rollout is not None else ()
    before = {key: now for key in keys if (now := grants.switch_state(agent, key)) != on or key in split}
    proposed = switches.with_settings(stored, agent, dict.fromkeys(before, on))
    current = access.inventory
    resulting = inventory.take(stored, proposed, conf.KIND_LOADOUTS, before=current)
    requestable = inventory.on_request(stored, proposed, conf.KIND_LOADOUTS, now=resulting)
    effect = effects.of_inventories(stored, current, resulting, on_request=(access.on_request, requestable))
    refused = ""
    try:
        guards.refuse_archived(agent, proposed)
        guards.refuse_conflicts(stored, agent, proposed, ", ".join(before))
        guards.refuse_budget(agent.key, current.spent, resulting.spent)
    except (errors.Refused, errors.Invalid) as error:
        refused = str(error)
    return AgentChange(
        agent=agent.key,
        before=before,
        effect=effect,
        reasons=tuple(guards.confirmation_reasons(stored, agent, proposed, on, effect)),
        refused=refused,
    )


def _with_agent(agent: str, reasons: Sequence[str], many: int) -> list[str]:
    """Return the reasons with their agent, if there are several agents."""
    return [
        reason if many == 1 or reason.startswith(f"{agent} ") else f"{agent}: {reason}" for reason in reasons
    ]


def _together(on: bool | None, all_effects: Sequence[effects.Effect]) -> dict[str, object]:
    """Return the effects of all agents as one, in the form of :func:`guards.describe_effect`."""
    return {
        "key": "",
        "on": on,
        "tools": [
            sum(effect.tools_before for effect in all_effects),
            sum(effect.tools_after for effect in all_effects),
        ],
        "tokens": [
            sum(effect.tokens_before for effect in all_effects),
            sum(effect.tokens_after for effect in all_effects),
        ],
        "added": sorted({key for effect in all_effects for key in effect.added}),
        "removed": sorted({key for effect in all_effects for key in effect.removed}),
        "on_request_added": sorted({key for effect in all_effects for key in effect.on_request_added}),
        "on_request_removed": sorted({key for effect in all_effects for key in effect.on_request_removed}),
        "policy": sorted({change for effect in all_effects for change in effect.policy})
        if len(all_effects) == 1
        else [],
        "breaks": [
            part for part in ("tools", "system text") if any(part in effect.breaks for effect in all_effects)
        ],
        "sessions": None,
        "conversations": None,
    }
