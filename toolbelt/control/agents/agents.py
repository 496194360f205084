"""Changes of an agent other than flipping its switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.core import catalog


def edit(
    write: writing.Write, agent: str, changes: Mapping[str, Any], *, was: Mapping[str, Any] | None = None
) -> writing.Change:
    """Change several settings of the agent at once, as `entries.change` does; a change of the loadout alone is logged
    as such.
    """
    if set(changes) == {"loadout"}:
        write = write.replace(action="agent.equip")
    return entries.change(write, "agent", agent, changes, was=was)


def archive(write: writing.Write, agent: str, archived: bool) -> writing.Change:
    """Archive the agent, so that it answers no requests and is in no list; or restore it. Its settings, history and
    tokens are kept.

    Raise NotFound, or ConfirmationRequired for archiving.
    """
    changes = {"archived": archived or None}
    return entries.change(write, "agent", agent, changes)


def create(
    write: writing.Write,
    key: str,
    *,
    title: str = "",
    loadout: str = "",
    denied_risks: Sequence[catalog.DeniedRisk] = (),
) -> writing.Change:
    """Create the agent ``key``, with a loadout and denied risks if any are given; raise Invalid, or Refused for a key
    that is taken.
    """
    entry = {"key": key, "title": title, "loadout": loadout, "denied_risks": list(denied_risks)}
    return entries.create(write, "agent", {name: value for name, value in entry.items() if value})


def duplicate(
    write: writing.Write,
    agent: str,
    key: str,
    *,
    title: str = "",
    denied_risks: Sequence[catalog.DeniedRisk] = (),
) -> writing.Change:
    """Create the agent ``key`` with the configuration of ``agent``, and a title and denied risks of its own if they are
    given. Sessions, tokens, history and embedding sub-apps are not copied.

    Raise NotFound, Invalid for an invalid key, or Refused for one that is taken.
    """
    with writing.begin():
        entry = entries.read("agent", agent)
        entry.pop("archived", None)
        write = write.replace(reason=write.reason or f"Duplicated from {agent}.")
        own = {"key": key, "title": title, "denied_risks": list(denied_risks)}
        return entries.create(write, "agent", entry | {name: value for name, value in own.items() if value})


def equip(write: writing.Write, agent: str, loadout: str, *, was: str | None = None) -> writing.Change:
    """Equip the agent with a loadout (built in or stored; empty: its kind's, or none). ``was``: the one you saw."""
    seen = None if was is None else {"loadout": was or None}
    return edit(write, agent, {"loadout": loadout or None}, was=seen)
