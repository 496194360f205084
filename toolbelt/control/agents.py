"""What does an operator do with an agent, beside flipping its switches?"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from toolbelt.control import actors, entries, writing


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
