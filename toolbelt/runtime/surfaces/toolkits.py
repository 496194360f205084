"""The toolkits that an agent's client may list, for an application to show its users: no policy, options or triggers.

A toolkit without any tool for the agent is left out, just as calls of its tools are answered like calls of unknown
tools. With ``TOOLBELT_HIDE_DENIED``, so is a denied toolkit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolbelt import conf
from toolbelt.core import catalog, request_key
from toolbelt.core.rules import budgets
from toolbelt.runtime.surfaces import snapshots

State = Literal["on", "loadable", "unavailable", "off"]
# The first state that any member has is the toolkit's.
_STATES: tuple[tuple[str, State], ...] = (
    ("active", "on"),
    ("discoverable", "loadable"),
    ("unavailable", "unavailable"),
    ("denied", "off"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleToolkit:
    """A toolkit as its client may see it. ``members`` are the members that it may see, in order.

    ``default``: whether all of them are on by default, for agents without a loadout. ``state``: ``on`` if a member is
    active for this agent now, else ``loadable``, ``unavailable`` or ``off``.
    """

    key: str
    title: str
    description: str
    members: tuple[str, ...]
    default: bool
    state: State


def list_visible(key: request_key.RequestKey) -> tuple[VisibleToolkit, ...]:
    """Return the toolkits that this agent's client may see, in order.

    Raise errors.NotFound for an unknown agent, or errors.Invalid for malformed ids.
    """
    snapshot, _ = snapshots.take(key)
    resolved = budgets.resolve(snapshot)
    stored = snapshot.catalog
    visible = (_visible(resolved, toolkit) for toolkit in stored.in_order(stored.toolkits))
    return tuple(toolkit for toolkit in visible if toolkit is not None)


def _visible(resolved: budgets.Resolution, toolkit: catalog.Toolkit) -> VisibleToolkit | None:
    tools = resolved.context.catalog.tools
    members = [member.tool for member in toolkit.members if member.tool in tools]
    states = {tool: resolved.decision(tool).state for tool in members}
    state = next((state for decided, state in _STATES if decided in states.values()), None)
    if state is None or (state == "off" and conf.HIDE_DENIED):
        return None
    hidden = ("dormant", "denied") if conf.HIDE_DENIED else ("dormant",)
    return VisibleToolkit(
        key=toolkit.key,
        title=toolkit.title,
        description=toolkit.description,
        members=tuple(tool for tool in members if states[tool] not in hidden),
        default=all(tools[tool].default_on for tool in members),
        state=state,
    )
