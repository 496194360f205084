"""How does an operator flip a switch or override a tool? (semantics: tools_config, Budgets; dashboard: Access page)

A flip says what is wanted, never "the other way"; ``was`` is what its writer saw. A flip that nothing stands against
is done at once; a far-reaching one raises ConfirmationRequired with its differences, and is done when it is repeated
with ``confirm``.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from toolbelt import conf
from toolbelt.control import actors, writing
from toolbelt.core import agents, budgets, catalog, conflicts, effects, errors, resolution, risks, surface
from toolbelt.store import audit, grants, snapshots

Family = Literal["switch", "override"]


def flip(
    actor: actors.Actor,
    agent: str,
    toolkit: str,
    on: bool | None,
    *,
    was: bool | writing._Any | None = writing.ANY,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Set the agent's switch of ``toolkit`` on or off, or clear it (None).

    Raises NotFound, Stale (``was`` is no longer so), Invalid (it would make a conflict of options), Refused (it would
    pass a budget that refuses) or ConfirmationRequired.
    """
    return _set("switch", actor, agent, toolkit, on, was, reason, confirm, batch, undoes)


def override(
    actor: actors.Actor,
    agent: str,
    tool: str,
    on: bool | None,
    *,
    was: bool | writing._Any | None = writing.ANY,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Set the agent's override of ``tool`` on or off, or clear it (None). Raises as :func:`flip` does."""
    return _set("override", actor, agent, tool, on, was, reason, confirm, batch, undoes)


def clear(
    actor: actors.Actor,
    agent: str,
    key: str,
    *,
    was: bool | writing._Any | None = writing.ANY,
    reason: str = "",
    confirm: bool = False,
) -> writing.Change:
    """Clear the switch or the override of ``key``, whichever the key is: it follows the defaults again."""
    found = snapshots.find(agent, None)
    write = flip if key in found.catalog.toolkits else override
    return write(actor, agent, key, None, was=was, reason=reason, confirm=confirm)


def together(
    actor: actors.Actor,
    found: snapshots.Found,
    wanted: Mapping[str, bool | None],
    *,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Set switches and overrides of the agent that was ``found`` in the transaction of the caller; all keys are known.

    They are judged once, together: halfway there may be a state that neither was nor is wanted. The answer holds what
    differs, before and after; each has an entry in the audit, and several share a batch.
    """
    had = found.agent.tools_config()
    after = {key: on for key, on in wanted.items() if had.get(key) is not on}
    before = {key: had.get(key) for key in after}
    if not after:
        return writing.Change(entry=None, before=before, after=after, whole=had)
    families: dict[str, Family] = {
        key: "switch" if key in found.catalog.toolkits else "override" for key in after
    }
    agent = found.agent
    for key, on in after.items():
        agent = _with(agent, families[key], key, on)
    keys = ", ".join(after)
    on = next(iter(after.values())) if len(after) == 1 else None
    _refuse_conflicts(found.catalog, found.agent, agent, keys)
    effect = guarded(found.catalog, found.agent, agent, keys, on, confirm=confirm)
    if batch is None and len(after) > 1:
        batch = writing.new_batch()
    entry = None
    for key, on in after.items():
        family = families[key]
        grants.write(family, found.agent_id, key, on)
        entry = audit.record(
            actor=actor.name,
            via=actor.via,
            action=f"{family}.set" if on is not None else f"{family}.clear",
            subject_kind="agent",
            subject_key=found.agent.key,
            key=key,
            before=before[key],
            after=on,
            reason=reason,
            batch=batch,
            undoes=undoes,
        )
    whole = {key: on for key, on in {**had, **after}.items() if on is not None}
    return writing.Change(entry=entry, before=before, after=after, effect=effect, whole=whole)


def preview(agent: str, key: str, on: bool | None) -> effects.Effect:
    """Say what setting the switch or override of ``key`` would do to what the model sees, without doing it."""
    found = snapshots.find(agent, None)
    family: Family = "switch" if key in found.catalog.toolkits else "override"
    _known(found.catalog, family, key)
    return effect(found.catalog, found.agent, _with(found.agent, family, key, on))


def effect(stored: catalog.Catalog, agent: agents.Agent, wanted: agents.Agent) -> effects.Effect:
    """Compare what the model sees of the agent as it is with the agent as ``wanted``, outside any session."""
    return _effect(stored, agent, wanted)[2]


def _set(
    family: Family,
    actor: actors.Actor,
    agent: str,
    key: str,
    on: bool | None,
    was: bool | writing._Any | None,
    reason: str,
    confirm: bool,
    batch: uuid.UUID | None,
    undoes: int | None,
) -> writing.Change:
    with writing.begin():
        found = snapshots.find(agent, None)
        _known(found.catalog, family, key)
        now = _rows(found.agent, family).get(key)
        if not isinstance(was, writing._Any) and was is not now:
            raise errors.Stale(f"The {family} of {key} for {agent}", was, now, on)
        change = together(actor, found, {key: on}, reason=reason, confirm=confirm, batch=batch, undoes=undoes)
    return dataclasses.replace(change, before=now, after=on)


def guarded(
    stored: catalog.Catalog,
    agent: agents.Agent,
    wanted: agents.Agent,
    key: str,
    on: bool | None = None,
    *,
    confirm: bool,
) -> effects.Effect:
    """Give the effect of making the agent as ``wanted``, unless something stands against it.

    Raises Refused where a budget that refuses would be passed, and ConfirmationRequired unless ``confirm``.
    """
    before, after, effect = _effect(stored, agent, wanted)
    refuse_budget(wanted.key, before.spent, after.spent)
    if not confirm:
        _ask_to_confirm(stored, agent, wanted, key, on, effect)
    return effect


def resolved(stored: catalog.Catalog, agent: agents.Agent) -> budgets.Resolution:
    """Say what the agent has active outside any session, and what its budget says to that."""
    return budgets.resolve(_alone(stored, agent))


def refuse_budget(agent: str, before: budgets.Spent, after: budgets.Spent) -> None:
    """Raise Refused where a budget that refuses would be passed, and by more than before: the way down stays open."""
    budget = after.budget
    if budget is None or budget.on_exceed != "refuse" or not after.is_passed:
        return
    if after.tools > before.tools or after.tokens > before.tokens:
        most = " and ".join(
            f"{number} {unit}"
            for number, unit in ((budget.max_tools, "tools"), (budget.max_tokens, "tokens"))
            if number is not None
        )
        raise errors.Refused(
            f"The budget of {agent} is {most}; this would make {after.tools} tools and {after.tokens} tokens. "
            "Switch something else off first, or raise the budget."
        )


def _rows(agent: agents.Agent, family: Family) -> Mapping[str, bool]:
    return agent.switches if family == "switch" else agent.overrides


def _known(stored: catalog.Catalog, family: Family, key: str) -> None:
    if family == "switch" and key not in stored.toolkits:
        raise errors.NotFound("toolkit", key, stored.toolkits)
    if family == "override" and key not in stored.tools:
        raise errors.NotFound("tool", key, stored.tools)


def _with(agent: agents.Agent, family: Family, key: str, on: bool | None) -> agents.Agent:
    rows = {known: value for known, value in _rows(agent, family).items() if known != key}
    if on is not None:
        rows[key] = on
    if family == "switch":
        return dataclasses.replace(agent, switches=rows)
    return dataclasses.replace(agent, overrides=rows)


def _alone(stored: catalog.Catalog, agent: agents.Agent) -> resolution.Snapshot:
    return resolution.Snapshot(catalog=stored, agent=agent, kind_loadouts=conf.KIND_LOADOUTS)


def _effect(
    stored: catalog.Catalog, agent: agents.Agent, wanted: agents.Agent
) -> tuple[surface.Surface, surface.Surface, effects.Effect]:
    before, after = (surface.build(_alone(stored, one)) for one in (agent, wanted))
    return before, after, effects.compare(before, after)


def _refuse_conflicts(stored: catalog.Catalog, agent: agents.Agent, wanted: agents.Agent, key: str) -> None:
    already = conflicts.of_agent(stored, agent)
    made = [conflict for conflict in conflicts.of_agent(stored, wanted) if conflict not in already]
    if made:
        path = f"agents.{agent.key}.tools_config.{key}"
        raise errors.Invalid([errors.Problem(path=path, message=conflict.message) for conflict in made])


def _ask_to_confirm(
    stored: catalog.Catalog,
    agent: agents.Agent,
    wanted: agents.Agent,
    key: str,
    on: bool | None,
    effect: effects.Effect,
) -> None:
    reasons: list[str] = []
    touched = not effect.is_nothing or agent.tools_config() != wanted.tools_config() or not wanted.protected
    if agent.protected and touched:
        reasons.append(f"{agent.key} is protected.")
    destructive = [tool for tool in effect.added if risks.of(stored.tools[tool]) == "destructive"]
    if destructive:
        reasons.append(f"Tools that can destroy something go on: {', '.join(destructive)}.")
    most: int = conf.CONFIRM_OFF_TOOLS
    if on is not True and len(effect.removed) > most:
        reasons.append(f"{len(effect.removed)} active tools go away.")
    if reasons:
        raise errors.ConfirmationRequired(reasons, differences(key, on, effect))


def differences(key: str, on: bool | None, effect: effects.Effect) -> dict[str, Any]:
    """Give an effect as plain values, as the screens, the API and a refusal show it."""
    return {
        "key": key,
        "on": on,
        "tools": [effect.tools_before, effect.tools_after],
        "tokens": [effect.tokens_before, effect.tokens_after],
        "added": list(effect.added),
        "removed": list(effect.removed),
        "policy": [list(change) for change in effect.policy],
    }
