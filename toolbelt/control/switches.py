"""How does an operator flip a switch or override a tool? (semantics: tools_config, Budgets; dashboard: Access page)

A flip says what is wanted, never "the other way"; ``was`` is what its writer saw. A flip that nothing stands against
is done at once; a far-reaching one raises ConfirmationRequired with its differences, and is done when it is repeated
with ``confirm``.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from toolbelt.control import actors, endings, guards, impacts, writing
from toolbelt.core import agents, catalog, effects, errors
from toolbelt.core import grants as values
from toolbelt.store import audit, clock, grants, snapshots

Family = Literal["switch", "override"]
# When something ends: then it is what it was before, or what the end says. None: it stands for good.
Until = dt.datetime | agents.End | None
# What a writer saw: on, off, unset; with its end, in the form of core.grants.said; or they do not say.
Was = bool | dict[str, Any] | writing._Any | None


def flip(
    actor: actors.Actor,
    agent: str,
    toolkit: str,
    on: bool | None,
    *,
    ends: Until = None,
    was: Was = writing.ANY,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Set the agent's switch of ``toolkit`` on or off, or clear it (None); until ``ends``, else for good.

    What ends goes back to what it was before it was given for a while. ``was`` is what the writer saw, its end aside;
    in the form of :func:`toolbelt.core.grants.said`, with its end.

    Raises NotFound, Stale (``was`` is no longer so), Invalid (it would make a conflict of options, or has an end that
    cannot be), Refused (it would pass a budget that refuses) or ConfirmationRequired.
    """
    return _set("switch", actor, agent, toolkit, on, ends, was, reason, confirm, batch, undoes)


def override(
    actor: actors.Actor,
    agent: str,
    tool: str,
    on: bool | None,
    *,
    ends: Until = None,
    was: Was = writing.ANY,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Set the agent's override of ``tool`` on or off, or clear it (None), as :func:`flip` does with a switch."""
    return _set("override", actor, agent, tool, on, ends, was, reason, confirm, batch, undoes)


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
    ends: Mapping[str, Until] = MappingProxyType({}),
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Set switches and overrides of the agent that was ``found`` in the transaction of the caller; all keys are known.

    They are judged once, together: halfway there may be a state that neither was nor is wanted. The answer holds what
    differs, before and after; each has an entry in the audit, and several share a batch.

    ``ends`` says when what is wanted ends (None: it stands for good). Of a key that it does not name, the end stays as
    long as the rest does.
    """
    had = found.agent.tools_config()
    after, agent = _wanted(actor, found, wanted, ends)
    before = {key: values.said(found.agent, key) for key in after}
    if not after:
        return writing.Change(entry=None, before=before, after={}, whole=had)
    keys = ", ".join(after)
    on = wanted[keys] if len(after) == 1 else None
    guards.refuse_conflicts(found.catalog, found.agent, agent, keys)
    effect = guards.guarded(found.catalog, found.agent, agent, keys, on, confirm=confirm)
    if batch is None and len(after) > 1:
        batch = writing.new_batch()
    entry = None
    for key, said in after.items():
        family = _family(found.catalog, key)
        grants.write(family, found.agent_id, key, wanted[key], agent.ends.get(key))
        entry = audit.record(
            actor=actor.name,
            via=actor.via,
            action=f"{family}.set" if said is not None else f"{family}.clear",
            subject_kind="agent",
            subject_key=found.agent.key,
            key=key,
            before=before[key],
            after=said,
            reason=reason,
            batch=batch,
            undoes=undoes,
        )
    return writing.Change(entry=entry, before=before, after=after, effect=effect, whole=agent.tools_config())


def _wanted(
    actor: actors.Actor,
    found: snapshots.Found,
    wanted: Mapping[str, bool | None],
    ends: Mapping[str, Until],
) -> tuple[dict[str, values.Said], agents.Agent]:
    """Say what differs of what is wanted, and what the agent is then."""
    after: dict[str, values.Said] = {}
    agent, now = found.agent, found.agent.tools_config()
    for key, on in wanted.items():
        if key not in ends and now.get(key) is on:
            continue
        end = _end(actor, found.agent, key, on, ends.get(key))
        if values.with_end(on, end) != values.said(found.agent, key):
            agent = _with(agent, _family(found.catalog, key), key, on, end)
            after[key] = values.with_end(on, end)
    return after, agent


def _end(
    actor: actors.Actor, agent: agents.Agent, key: str, on: bool | None, until: Until
) -> agents.End | None:
    """Give the end that is wanted. Raises Invalid for one that cannot be."""
    if until is None:
        return None
    at = until.at if isinstance(until, agents.End) else until
    if on is None:
        raise _cannot_end(f"{key} would be unset, so there is nothing to end: say on or off with an end.")
    if at.tzinfo is None:
        raise _cannot_end(f"{at.isoformat()} does not say its zone: add it, such as Z for UTC.")
    at = at.astimezone(dt.UTC).replace(microsecond=0)
    if at <= clock.now():
        raise _cannot_end(f"{values.written(at)} is over already: name a moment that is still to come.")
    had = agent.ends.get(key)
    # What was there for good: one that ends does not come back when another ends.
    then = had.then if had is not None else agent.tools_config().get(key)
    if isinstance(until, agents.End):
        then = until.then
    if then is on:
        word = errors.was_in_words(on)
        raise _cannot_end(
            f"{key} is {word} for good, so it would not end: clear it, or set it otherwise first."
        )
    return agents.End(at=at, then=then, by=actor.name)


def _cannot_end(message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path="ends", message=message)])


def _family(stored: catalog.Catalog, key: str) -> Family:
    return "switch" if key in stored.toolkits else "override"


def preview(agent: str, key: str, on: bool | None) -> effects.Effect:
    """Say what setting the switch or override of ``key`` would do to what the model sees, also in the sessions that
    are live, without doing it. Raises NotFound.
    """
    return previews(agent, key, (on,))[on]


def standing(agent: str, key: str) -> bool | None:
    """Say how the agent's switch or override of ``key`` stands. Raises NotFound for a key that nothing has."""
    found = snapshots.find(agent, None)
    _known(found.catalog, "switch" if key in found.catalog.toolkits else "override", key)
    return found.agent.tools_config().get(key)


def previews(agent: str, key: str, states: Iterable[bool | None]) -> dict[bool | None, effects.Effect]:
    """Say what setting the switch or override of ``key`` to each of these would do."""
    found = snapshots.find(agent, None)
    family = _family(found.catalog, key)
    if family == "override":
        _known(found.catalog, family, key)
    return {on: impacts.of(found.catalog, found.agent, _with(found.agent, family, key, on)) for on in states}


def wished(stored: catalog.Catalog, agent: agents.Agent, wanted: Mapping[str, bool | None]) -> agents.Agent:
    """Give the agent with these switches and overrides set; what is so already keeps its end."""
    now = agent.tools_config()
    for key, on in wanted.items():
        if now.get(key) is not on:
            agent = _with(agent, _family(stored, key), key, on)
    return agent


def _set(
    family: Family,
    actor: actors.Actor,
    agent: str,
    key: str,
    on: bool | None,
    ends: Until,
    was: Was,
    reason: str,
    confirm: bool,
    batch: uuid.UUID | None,
    undoes: int | None,
) -> writing.Change:
    with writing.begin():
        found = endings.find(agent)
        _known(found.catalog, family, key)
        now = values.said(found.agent, key)
        seen = now if isinstance(was, dict) else values.is_on(now)
        if not isinstance(was, writing._Any) and was != seen:
            raise errors.Stale(f"The {family} of {key} for {agent}", was, seen, on)
        change = together(
            actor,
            found,
            {key: on},
            ends={key: ends},
            reason=reason,
            confirm=confirm,
            batch=batch,
            undoes=undoes,
        )
    return dataclasses.replace(change, before=now, after=change.after.get(key, now))


def _rows(agent: agents.Agent, family: Family) -> Mapping[str, bool]:
    return agent.switches if family == "switch" else agent.overrides


def _known(stored: catalog.Catalog, family: Family, key: str) -> None:
    if family == "switch" and key not in stored.toolkits:
        raise errors.NotFound("toolkit", key, stored.toolkits)
    if family == "override" and key not in stored.tools:
        raise errors.NotFound("tool", key, stored.tools)


def _with(
    agent: agents.Agent, family: Family, key: str, on: bool | None, end: agents.End | None = None
) -> agents.Agent:
    rows = {known: value for known, value in _rows(agent, family).items() if known != key}
    if on is not None:
        rows[key] = on
    ends = {known: value for known, value in agent.ends.items() if known != key}
    if end is not None:
        ends[key] = end
    if family == "switch":
        return dataclasses.replace(agent, switches=rows, ends=ends)
    return dataclasses.replace(agent, overrides=rows, ends=ends)
