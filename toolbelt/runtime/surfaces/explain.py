"""Explanations of decisions: why an agent has a tool, or why not."""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.core import catalog, errors, request_key
from toolbelt.core.rules import budgets, reasons, resolution
from toolbelt.runtime.surfaces import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision with every rule that was checked, including those after the deciding one, and who runs the tool."""

    agent: str
    decision: resolution.Decision
    trace: tuple[resolution.Step, ...]
    runner: catalog.Runner

    @property
    def line(self) -> str:
        """Return the explanation in one line."""
        return reasons.format_line(self.decision)


def why(key: request_key.RequestKey, tool: str) -> Explanation:
    """Explain the decision for one tool of one agent. Raise errors.NotFound for an unknown agent or tool."""
    snapshot, _ = snapshots.take(key)
    if tool not in snapshot.catalog.tools:
        raise errors.NotFound("tool", tool, snapshot.catalog.tools)
    resolved = budgets.resolve(snapshot)
    return Explanation(
        agent=key.agent,
        decision=resolved.decision(tool),
        trace=resolution.trace(resolved.context, tool),
        runner=snapshot.catalog.runner(snapshot.catalog.tools[tool]),
    )
