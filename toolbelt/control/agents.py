"""What does an operator do with an agent, beside flipping its switches?"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt.control import actors, entries, writing


def edit(
    actor: actors.Actor,
    agent: str,
    changes: Mapping[str, Any],
    *,
    was: Mapping[str, Any] | None = None,
    reason: str = "",
    confirm: bool = False,
) -> writing.Change:
    """Change several of the agent's settings at once, as :func:`toolbelt.control.entries.change` does; a new loadout
    alone is told as what it is.
    """
    return entries.change(
        actor,
        "agent",
        agent,
        changes,
        was=was,
        reason=reason,
        confirm=confirm,
        action="agent.equip" if set(changes) == {"loadout"} else None,
    )


def archive(
    actor: actors.Actor, agent: str, archived: bool, *, reason: str = "", confirm: bool = False
) -> writing.Change:
    """Put the agent away, so that it answers nobody and is in no list; or bring it back as it was. What is set and its
    history stay, and its tokens open again what they did.

    Raises NotFound, and ConfirmationRequired for putting it away.
    """
    wanted = {"archived": archived or None}
    return entries.change(actor, "agent", agent, wanted, reason=reason, confirm=confirm)


def duplicate(actor: actors.Actor, agent: str, key: str, *, reason: str = "") -> writing.Change:
    """Make the agent ``key``, configured as ``agent`` is. Sessions, tokens and history stay with the first one, and so
    do the sub-apps that embed it.

    Raises NotFound, Invalid for a key that no agent can have, and Refused for one that an agent has.
    """
    with writing.begin():
        entry = entries.read("agent", agent)
        entry.pop("archived", None)
        return entries.create(actor, "agent", {**entry, "key": key}, reason=reason or f"As {agent} is.")


def equip(
    actor: actors.Actor,
    agent: str,
    loadout: str,
    *,
    was: str | None = None,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
) -> writing.Change:
    """Equip the agent with a loadout (built in or stored; empty: its kind's, or none). ``was``: the one you saw."""
    return entries.change(
        actor,
        "agent",
        agent,
        {"loadout": loadout or None},
        was=None if was is None else {"loadout": was or None},
        reason=reason,
        confirm=confirm,
        batch=batch,
        action="agent.equip",
    )


def allow_toolkits(
    actor: actors.Actor,
    agent: str,
    allowed: Sequence[str],
    initial: Sequence[str] = (),
    *,
    was: tuple[Sequence[str], Sequence[str]] | None = None,
    reason: str = "",
    confirm: bool = False,
    batch: uuid.UUID | None = None,
) -> writing.Change:
    """Say which toolkits the agent may load, in order, and which of them every session has from the start.

    ``was``: the allowed and the initial ones that you saw.
    """
    seen = None
    if was is not None:
        seen = {"allowed_toolkits": list(was[0]) or None, "initial_toolkits": list(was[1]) or None}
    return entries.change(
        actor,
        "agent",
        agent,
        {"allowed_toolkits": list(allowed) or None, "initial_toolkits": list(initial) or None},
        was=seen,
        reason=reason,
        confirm=confirm,
        batch=batch,
        action="agent.allow-toolkits",
    )
