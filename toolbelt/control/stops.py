"""How does an operator stop a tool, toolkit or plugin for everyone, at once? (semantics: The resolution, question 2)

It is done without a question, as an emergency is no time for one, and can be taken back like any other change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolbelt.control import actors, entries, holdings, writing
from toolbelt.core import catalog
from toolbelt.store import snapshots

Kind = Literal["tool", "toolkit", "plugin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(writing.Change):
    """What a stop, or its lifting, did. ``agents`` says how many of its tools each agent loses or has again."""

    agents: Mapping[str, int] = field(default_factory=dict)


def stop(actor: actors.Actor, kind: Kind, name: str, on: bool, *, was: bool, reason: str = "") -> Stopped:
    """Stop it for everyone, or lift the stop; ``was`` is what the writer saw.

    Raises errors.NotFound, and errors.Stale where somebody was faster.
    """
    before = snapshots.catalog()
    # An entry leaves out what is as usual.
    wanted = {"blocked": True if on else None}
    change = entries.change(actor, kind, name, wanted, was={"blocked": True if was else None}, reason=reason)
    # Counted when it is done, for it shall not wait for that: with the catalog in which its tools can be had.
    stored = before if on else snapshots.catalog()
    return Stopped(
        entry=change.entry,
        before=change.before,
        after=change.after,
        whole=change.whole,
        agents={} if change.is_nothing else _having(stored, kind, name),
    )


def _having(stored: catalog.Catalog, kind: Kind, name: str) -> dict[str, int]:
    """Say how many of the tools each agent has, of those that have some."""
    tools = set(_tools(stored, kind, name))
    counts = {
        holder.agent.key: len(tools.intersection(holder.active)) for holder in holdings.of(stored).holders
    }
    return {agent: count for agent, count in counts.items() if count}


def _tools(stored: catalog.Catalog, kind: Kind, name: str) -> tuple[str, ...]:
    if kind == "tool":
        return (name,)
    if kind == "toolkit":
        return holdings.members(stored, stored.toolkits[name])
    return tuple(stored.tools_of_plugin.get(name, ()))
