"""Setting many switches and overrides of an agent at once, in their flat form: ``{key: true | false | null}``.

All are set in one transaction, or none. Unknown keys and invalid values are rejected with their path. The flat form
contains no expiries: unchanged keys keep theirs, and changed ones become permanent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.control import writing
from toolbelt.control.access import expirations, rolled_out, switches
from toolbelt.core import agents, belts, errors, grants
from toolbelt.store import snapshots

Flat = Mapping[str, bool | None]
# Prefix of a single switch or override among the keys of an agent's entry: ``tools_config.run_sql``.
SINGLE = "tools_config."


def read(agent: str) -> dict[str, bool]:
    """Return the stored switches and overrides, by key; raise errors.NotFound."""
    return snapshots.find(agent, None).agent.tools_config()


def ends(agent: str) -> dict[str, dict[str, Any]]:
    """Return the expiries of what is set, by key: ``at``, the value ``then`` (None: unset) and ``by`` whom. Raise
    errors.NotFound.
    """
    expiries = snapshots.find(agent, None).agent.ends
    return {
        key: {"at": grants.format_time(end.at), "then": end.then, "by": end.by}
        for key, end in sorted(expiries.items())
    }


def put(
    write: writing.Write, agent: str, config: Mapping[str, Any], *, was: Flat | None = None
) -> writing.Change:
    """Set ``config`` and clear everything else.

    ``was`` is everything that was set when the writer looked: raise Stale if it has changed. Raise Invalid with every
    problem, and as :func:`switches.flip` does.
    """
    with writing.begin():
        current = expirations.find(agent)
        now = current.agent.tools_config()
        seen = {} if was is None else {**dict.fromkeys(now), **was}
        # It also says that what is set by a roll-out only is not set.
        rolled_out.end(write, current.agent, keys=rolled_out.keys(current.agent) - now.keys() - config.keys())
        return _set(write, current, {**dict.fromkeys(now), **config}, seen)


def change(
    write: writing.Write, agent: str, changes: Mapping[str, Any], *, was: Flat | None = None
) -> writing.Change:
    """Set only the keys in ``changes``; None clears one.

    ``was`` is what the writer saw of the keys that it contains. Raise as :func:`put` does.
    """
    with writing.begin():
        current = expirations.find(agent)
        return _set(write, current, changes, was or {})


def _set(
    write: writing.Write, current: snapshots.StoredState, changes: Mapping[str, Any], seen: Flat
) -> writing.Change:
    agent, now = current.agent.key, current.agent.tools_config()
    # Values that are already set are only checked by name: existing conflicts do not prevent other changes.
    changed = {key: None if on is now.get(key) else on for key, on in changes.items()}
    problems = belts.check_entry(
        "agent",
        {"key": agent, "tools_config": changed},
        belts.NameIndex.of_catalog(current.catalog, (agent,)),
    )
    if problems:
        raise errors.Invalid(problems)
    for key, was in seen.items():
        if now.get(key) is not was:
            by = writing.author(write, "agent", agent, key)
            raise errors.Stale(
                f"{key} in tools_config of {agent}", was, now.get(key), changes.get(key), by=by
            )
    return switches.set_all(write, current, changes)


def keys(changes: Mapping[str, Any]) -> set[str]:
    """Return the keys of the switches and overrides in changes of an agent's entry, one by one or as a whole."""
    single = {name.removeprefix(SINGLE) for name in changes if name.startswith(SINGLE)}
    return single | {*(changes.get("tools_config") or ())}


def as_single(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with every switch and override as a key of its own.

    ``tools_config.KEY`` is on, off, or ``{"on", "ends"}`` if it expires; these keys replace ``tools_config`` and
    ``ends``. Entries of other kinds are returned unchanged.
    """
    ends_at = entry.get("ends") or {}
    single = {
        f"{SINGLE}{key}": {"on": on, "ends": ends_at[key]["at"]} if key in ends_at else on
        for key, on in (entry.get("tools_config") or {}).items()
    }
    return {key: value for key, value in entry.items() if key not in ("tools_config", "ends")} | single


def merge_single(
    actor: writing.Actor, agent: agents.Agent, entry: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the changes of an agent's ``entry`` with the keys of :func:`as_single` merged into ``tools_config`` and
    ``ends``. Raise Invalid, at the path of its end, for an impossible expiry.
    """
    other_changes = {key: value for key, value in changes.items() if not key.startswith(SINGLE)}
    if len(other_changes) == len(changes):
        return other_changes  # ``tools_config`` may be among them as a whole
    config, ends_at = dict(entry.get("tools_config") or {}), dict(entry.get("ends") or {})
    problems = []
    for key, value in changes.items():
        if key in other_changes:
            continue
        name, on = key.removeprefix(SINGLE), grants.is_on(value)
        config.pop(name, None)
        ends_at.pop(name, None)
        try:
            end = grants.expiry_of(value)
            end = end and switches.end_of(actor, agent, name, on, end.at)
        except errors.Invalid as error:
            path = f"{belts.address('agent', entry)}.ends.{name}"
            problems += [errors.Problem(path=path, message=problem.message) for problem in error.problems]
            continue
        if on is not None:
            config[name] = on
        if end is not None:
            then = {} if end.then is None else {"then": end.then}
            ends_at[name] = {"at": grants.format_time(end.at), **then, "by": end.by}
    if problems:
        raise errors.Invalid(problems)
    return {**other_changes, "tools_config": config or None, "ends": ends_at or None}
