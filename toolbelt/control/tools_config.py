"""How are many switches and overrides of an agent set at once? In their flat form, ``{key: true | false | null}``.

All of it comes about in one transaction, or nothing does. A key that names nothing, and a value that is no answer, are
refused with their path, wherever they stand. The flat form says nothing of ends: what it leaves as it is keeps its
end, and what it changes stands for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.control import actors, endings, switches, writing
from toolbelt.core import belts, errors, grants
from toolbelt.store import snapshots

Flat = Mapping[str, bool | None]


def read(agent: str) -> dict[str, bool]:
    """Give what is set, by key. Raises errors.NotFound."""
    return snapshots.find(agent, None).agent.tools_config()


def ends(agent: str) -> dict[str, dict[str, Any]]:
    """Give the ends of what is set, by key: ``at``, what stands ``then`` (None: unset) and ``by`` whom. Raises
    errors.NotFound.
    """
    found = snapshots.find(agent, None).agent.ends
    return {
        key: {"at": grants.written(end.at), "then": end.then, "by": end.by}
        for key, end in sorted(found.items())
    }


def put(
    actor: actors.Actor,
    agent: str,
    wanted: Mapping[str, Any],
    *,
    was: Flat | None = None,
    reason: str = "",
    confirm: bool = False,
) -> writing.Change:
    """Let ``wanted`` be all that is set: what it does not name is cleared.

    ``was`` is all that was set when the writer looked; anything else now raises Stale. Raises Invalid with every
    problem, and what :func:`switches.flip` raises.
    """
    with writing.begin():
        found = endings.find(agent)
        now = found.agent.tools_config()
        seen = {} if was is None else {**dict.fromkeys(now), **was}
        return _set(actor, found, {**dict.fromkeys(now), **wanted}, seen, reason, confirm)


def change(
    actor: actors.Actor,
    agent: str,
    wanted: Mapping[str, Any],
    *,
    was: Flat | None = None,
    reason: str = "",
    confirm: bool = False,
) -> writing.Change:
    """Set only the keys that ``wanted`` names; None clears one.

    ``was`` is what the writer saw of the keys that it names. Raises as :func:`put` does.
    """
    with writing.begin():
        found = endings.find(agent)
        return _set(actor, found, wanted, was or {}, reason, confirm)


def _set(
    actor: actors.Actor,
    found: snapshots.Found,
    wanted: Mapping[str, Any],
    seen: Flat,
    reason: str,
    confirm: bool,
) -> writing.Change:
    agent, now = found.agent.key, found.agent.tools_config()
    # What stands already is judged by its name alone: a conflict that nobody makes now stands against nothing.
    asked = {key: None if on is now.get(key) else on for key, on in wanted.items()}
    problems = belts.check_entry(
        "agent",
        {"key": agent, "tools_config": asked},
        belts.Known.of_catalog(found.catalog, (agent,)),
    )
    if problems:
        raise errors.Invalid(problems)
    for key, was in seen.items():
        if now.get(key) is not was:
            raise errors.Stale(f"{key} in tools_config of {agent}", was, now.get(key), wanted.get(key))
    return switches.together(actor, found, wanted, reason=reason, confirm=confirm)
