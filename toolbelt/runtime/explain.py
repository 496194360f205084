"""Why does this agent have this tool, or why not?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolbelt.core import budgets, errors, reasons, resolution
from toolbelt.runtime import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision with every question that was asked on the way, also those after the one that decided."""

    agent: str
    decision: resolution.Decision
    trace: tuple[resolution.Step, ...]

    @property
    def line(self) -> str:
        """Say it in one line."""
        return reasons.line(self.decision)


def why(
    agent: str,
    tool: str,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
) -> Explanation:
    """Explain the decision for one tool of one agent. Raises errors.NotFound for a name that is not known."""
    snapshot, _ = snapshots.take(agent, session, request_id, subagent)
    if tool not in snapshot.catalog.tools:
        raise errors.NotFound("tool", tool, snapshot.catalog.tools)
    resolved = budgets.resolve(snapshot)
    return Explanation(
        agent=agent, decision=resolved.decision(tool), trace=resolution.trace(resolved.standing, tool)
    )


def everything(
    agent: str, session: str | None = None, request_id: str | None = None, subagent: str | None = None
) -> Mapping[str, resolution.Decision]:
    """Decide for every tool of the catalog, by key, in key order. For screens: it costs what the catalog counts."""
    snapshot, _ = snapshots.take(agent, session, request_id, subagent)
    return budgets.resolve(snapshot).everything()
