"""Flipping switches and overriding tools (docs/concepts.md: Switches and overrides).

A flip states the new value, never "the other way"; ``was`` is what the writer saw. It is done at once if nothing
prevents it; a far-reaching flip raises ConfirmationRequired with its differences, and is done when it is repeated with
``confirm``.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from toolbelt.control import guards, impacts, writing
from toolbelt.control.access import expirations, rolled_out
from toolbelt.core import agents, catalog, effects, errors
from toolbelt.core import grants as values
from toolbelt.store import clock, grants, snapshots

Family = Literal["switch", "override"]
# When something expires: then the earlier value returns, or the end's ``then``. None: it is permanent.
Until = dt.datetime | agents.End | None
# What a writer saw: on, off, unset; with its expiry, in the form of core.grants.switch_state; or ANY.
Was = bool | dict[str, Any] | writing._Any | None


def flip(
    write: writing.Write,
    agent: str,
    toolkit: str,
    on: bool | None,
    *,
    ends: Until = None,
    was: Was = writing.ANY,
) -> writing.Change:
    """Set the agent's switch of ``toolkit`` on or off, or clear it (None); until ``ends``, or permanently.

    When it expires, the value before it was set for a time returns. ``was`` is what the writer saw, without its expiry,
    or in the form of :func:`toolbelt.core.grants.switch_state` with its expiry. Raise NotFound, Stale (``was`` has
    changed), Invalid (conflicting options, or an impossible expiry), Refused (it would exceed a budget that refuses) or
    ConfirmationRequired.
    """
    return _set("switch", write, agent, toolkit, on, ends, was)


def override(
    write: writing.Write,
    agent: str,
    tool: str,
    on: bool | None,
    *,
    ends: Until = None,
    was: Was = writing.ANY,
) -> writing.Change:
    """Set the agent's override of ``tool`` on or off, or clear it (None), as :func:`flip` does with a switch."""
    return _set("override", write, agent, tool, on, ends, was)


def set_all(
    write: writing.Write,
    current: snapshots.StoredState,
    changes: Mapping[str, bool | None],
    *,
    ends: Mapping[str, Until] = MappingProxyType({}),
) -> writing.Change:
    """Set switches and overrides of the agent ``current``, in the transaction of the caller; all keys exist.

    They are checked together, because the states in between are never in force. The result holds what differs, before
    and after; each has an audit entry, and several share a batch. ``ends`` are the expiries of the changes (None:
    permanent). A key that it does not contain keeps its expiry while its value is unchanged.
    """
    config_before = current.agent.tools_config()
    after, agent = _with_changes(write.actor, current, changes, ends)
    before = {key: values.switch_state(current.agent, key) for key in after}
    rolled_out.end(write, current.agent, keys=changes.keys() - after.keys())
    if not after:
        return writing.Change(entry=None, before=before, after={}, result=config_before)
    keys = ", ".join(after)
    on = changes[keys] if len(after) == 1 else None
    guards.refuse_conflicts(current.catalog, current.agent, agent, keys)
    effect = guards.check(current.catalog, current.agent, agent, keys, on, confirm=write.confirm)
    if len(after) > 1:
        write = write.in_batch()
    entry = None
    for key, state in after.items():
        family = _family(current.catalog, key)
        grants.write(family, current.agent_id, key, changes[key], agent.ends.get(key))
        entry = writing.record(
            write,
            "agent",
            current.agent.key,
            action=f"{family}.set" if state is not None else f"{family}.clear",
            key=key,
            before=before[key],
            after=state,
        )
    return writing.Change(entry=entry, before=before, after=after, effect=effect, result=agent.tools_config())


def _with_changes(
    actor: writing.Actor,
    current: snapshots.StoredState,
    changes: Mapping[str, bool | None],
    ends: Mapping[str, Until],
) -> tuple[dict[str, values.SwitchState], agents.Agent]:
    """Return the states that change, and the resulting agent."""
    after: dict[str, values.SwitchState] = {}
    agent, now = current.agent, current.agent.tools_config()
    for key, on in changes.items():
        if key not in ends and now.get(key) is on:
            continue
        end = end_of(actor, current.agent, key, on, ends.get(key))
        if values.with_end(on, end) != values.switch_state(current.agent, key):
            agent = _with(agent, _family(current.catalog, key), key, on, end)
            after[key] = values.with_end(on, end)
    return after, agent


def end_of(
    actor: writing.Actor, agent: agents.Agent, key: str, on: bool | None, until: Until
) -> agents.End | None:
    """Return the expiry of a switch or override that is set ``until`` then; raise Invalid if it is impossible."""
    if until is None:
        return None
    at = until.at if isinstance(until, agents.End) else until
    if on is None:
        raise _cannot_end(f"{key} would be reset to default, so it cannot have an end: turn it on or off.")
    if at.tzinfo is None:
        raise _cannot_end(f"{at.isoformat()} has no time zone: add one, such as Z for UTC.")
    at = at.astimezone(dt.UTC).replace(microsecond=0)
    if at <= clock.now():
        raise _cannot_end(f"{values.format_time(at)} is in the past: choose a later time.")
    earlier = agent.ends.get(key)
    # The permanent value: a temporary one does not return when another temporary one expires.
    then = earlier.then if earlier is not None else agent.tools_config().get(key)
    if isinstance(until, agents.End):
        then = until.then
    if then is on:
        word = errors.describe_value(on)
        raise _cannot_end(
            f"{key} is permanently {word}, so an end would change nothing: reset it or change it first."
        )
    return agents.End(at=at, then=then, by=actor.name)


def _cannot_end(message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path="ends", message=message)])


def _family(stored: catalog.Catalog, key: str) -> Family:
    return "switch" if key in stored.toolkits else "override"


def preview(agent: str, key: str, on: bool | None) -> effects.Effect:
    """Return the effect of setting the switch or override of ``key`` on what the model sees, including in live
    sessions, without setting it; raise NotFound.
    """
    return previews(agent, key, (on,))[on]


def current_value(agent: str, key: str) -> bool | None:
    """Return the value of the agent's switch or override of ``key``; raise NotFound for an unknown key."""
    current = snapshots.find(agent, None)
    _check_exists(current.catalog, "switch" if key in current.catalog.toolkits else "override", key)
    return current.agent.tools_config().get(key)


def is_archived(agent: str) -> bool:
    """Return whether the agent is archived; raise NotFound."""
    return snapshots.find(agent, None).agent.archived


def previews(agent: str, key: str, states: Iterable[bool | None]) -> dict[bool | None, effects.Effect]:
    """Return the effect of setting the switch or override of ``key`` to each of these."""
    current = snapshots.find(agent, None)
    family = _family(current.catalog, key)
    if family == "override":
        _check_exists(current.catalog, family, key)
    return {
        on: impacts.with_sessions(current.catalog, current.agent, _with(current.agent, family, key, on))
        for on in states
    }


def with_settings(
    stored: catalog.Catalog, agent: agents.Agent, settings: Mapping[str, bool | None]
) -> agents.Agent:
    """Return the agent with these switches and overrides set; unchanged ones keep their expiry."""
    now = agent.tools_config()
    changed = {key: on for key, on in settings.items() if now.get(key) is not on}
    rows = {"switch": dict(agent.switches), "override": dict(agent.overrides)}
    for key, on in changed.items():
        family = rows[_family(stored, key)]
        if on is None:
            family.pop(key, None)
        else:
            family[key] = on
    ends = {key: end for key, end in agent.ends.items() if key not in changed}
    return dataclasses.replace(agent, switches=rows["switch"], overrides=rows["override"], ends=ends)


def _set(
    family: Family,
    write: writing.Write,
    agent: str,
    key: str,
    on: bool | None,
    ends: Until,
    was: Was,
) -> writing.Change:
    with writing.begin():
        current = expirations.find(agent)
        _check_exists(current.catalog, family, key)
        now = values.switch_state(current.agent, key)
        seen = now if isinstance(was, dict) else values.is_on(now)
        if not isinstance(was, writing._Any) and was != seen:
            by = writing.author(write, "agent", agent, key)
            raise errors.Stale(f"The {family} of {key} for {agent}", was, seen, on, by=by)
        change = set_all(write, current, {key: on}, ends={key: ends})
    return dataclasses.replace(change, before=now, after=change.after.get(key, now))


def _rows(agent: agents.Agent, family: Family) -> Mapping[str, bool]:
    return agent.switches if family == "switch" else agent.overrides


def _check_exists(stored: catalog.Catalog, family: Family, key: str) -> None:
    if family == "switch" and key not in stored.toolkits:
        raise errors.NotFound("toolkit", key, stored.toolkits)
    if family == "override" and key not in stored.tools:
        raise errors.NotFound("tool", key, stored.tools)


def _with(
    agent: agents.Agent, family: Family, key: str, on: bool | None, end: agents.End | None = None
) -> agents.Agent:
    rows = {existing: value for existing, value in _rows(agent, family).items() if existing != key}
    if on is not None:
        rows[key] = on
    ends = {existing: value for existing, value in agent.ends.items() if existing != key}
    if end is not None:
        ends[key] = end
    if family == "switch":
        return dataclasses.replace(agent, switches=rows, ends=ends)
    return dataclasses.replace(agent, overrides=rows, ends=ends)
