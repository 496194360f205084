"""What may a client know of the toolkits? What an application can show its users: no policy, options or triggers.

A toolkit that holds nothing for the agent is not told of, as calls of its tools are answered like those of tools that
do not exist; with ``TOOLBELT_HIDE_DENIED`` neither is one that is denied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolbelt import conf
from toolbelt.core import budgets, catalog
from toolbelt.runtime import snapshots

State = Literal["on", "loadable", "unavailable", "off"]
# The first of them that holds for a member is the toolkit's.
_STATES: tuple[tuple[str, State], ...] = (
    ("active", "on"),
    ("discoverable", "loadable"),
    ("unavailable", "unavailable"),
    ("denied", "off"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One toolkit as a client may know it. ``members`` are those that it may be told of, in order.

    ``default``: whether all of them are on by default, for agents without a loadout. ``state``: ``on`` if one is
    active for this agent now, else ``loadable``, ``unavailable`` or ``off``.
    """

    key: str
    title: str
    description: str
    members: tuple[str, ...]
    default: bool
    state: State


def known(
    agent: str, session: str | None = None, request_id: str | None = None, subagent: str | None = None
) -> tuple[Known, ...]:
    """List the toolkits that this agent's client may know, in their order.

    Raises errors.NotFound for an unknown agent and errors.Invalid for ids that cannot be.
    """
    snapshot, _ = snapshots.take(agent, session, request_id, subagent)
    resolved = budgets.resolve(snapshot)
    stored = snapshot.catalog
    found = (_known(resolved, toolkit) for toolkit in stored.in_order(stored.toolkits))
    return tuple(one for one in found if one is not None)


def _known(resolved: budgets.Resolution, toolkit: catalog.Toolkit) -> Known | None:
    tools = resolved.standing.catalog.tools
    members = [member.tool for member in toolkit.members if member.tool in tools]
    states = {tool: resolved.decision(tool).state for tool in members}
    state = next((said for word, said in _STATES if word in states.values()), None)
    if state is None or (state == "off" and conf.HIDE_DENIED):
        return None
    hidden = ("dormant", "denied") if conf.HIDE_DENIED else ("dormant",)
    return Known(
        key=toolkit.key,
        title=toolkit.title,
        description=toolkit.description,
        members=tuple(tool for tool in members if states[tool] not in hidden),
        default=all(tools[tool].default_on for tool in members),
        state=state,
    )
