"""The tools of an agent's subagents, compared with its own (docs/semantics.md: The eleven rules)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolbelt import conf
from toolbelt.core import agents
from toolbelt.core.rules import budgets
from toolbelt.store import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """A subagent of one kind. ``added`` are the active tools that its agent does not have itself."""

    kind: str
    loadout: str
    spent: budgets.Spent
    added: tuple[str, ...]
    added_tokens: int


def compare(resolved: budgets.Resolution) -> Iterator[Subagent]:
    """Yield a subagent of each kind; ``resolved`` is the agent's own resolution, outside any session."""
    stored, agent = resolved.context.catalog, resolved.context.agent
    for kind in agents.KINDS:
        of_kind = budgets.resolve(snapshots.of(stored, agent, subagent=kind))
        added = tuple(sorted(of_kind.active.keys() - resolved.active.keys()))
        yield Subagent(
            kind=kind,
            loadout=conf.KIND_LOADOUTS.get(kind, ""),
            spent=of_kind.spent,
            added=added,
            added_tokens=sum(stored.tools[key].tokens for key in added),
        )
