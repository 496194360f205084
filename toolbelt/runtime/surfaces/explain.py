"""Explanations of decisions: why an agent has a tool, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import (
    admitting,
    agents,
    catalog,
    declared_versions,
    errors,
    gate_rules,
    request_key,
    schema,
)
from toolbelt.core.rules import budgets, reasons, resolution
from toolbelt.runtime import counting
from toolbelt.runtime.surfaces import snapshots
from toolbelt.store import clock, trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision with every rule that was checked, including those after the deciding one, and who runs the tool.

    ``at_the_gate`` are the gate rules that concern calls of it; ``problems`` are why the arguments in question do not
    fit the tool. ``rollout`` is the title of the draft that the session has because it is rolled out; empty: none.
    """

    agent: str
    decision: resolution.Decision
    trace: tuple[resolution.Step, ...]
    runner: catalog.Runner
    at_the_gate: tuple[gate_rules.Step, ...] = ()
    problems: tuple[schema.Violation, ...] = ()
    rollout: str = ""

    @property
    def line(self) -> str:
        """Return the explanation in one line."""
        return reasons.format_line(self.decision)


def why(key: request_key.RequestKey, tool: str, arguments: Mapping[str, Any] | None = None) -> Explanation:
    """Explain the decision for one tool of one agent, and what gate rules say to these arguments of a call.

    Raise errors.NotFound for an unknown agent or tool.
    """
    snapshot, _ = snapshots.take(key)
    if tool not in snapshot.catalog.tools:
        raise errors.NotFound("tool", tool, snapshot.catalog.tools)
    resolved = budgets.resolve(snapshot)
    stored = snapshot.catalog
    problems: tuple[schema.Violation, ...] = ()
    if arguments is not None:
        takes = declared_versions.offered(stored.tools[tool]).input_schema
        arguments = admitting.filled(stored, tool, arguments)
        problems = schema.violations(takes, arguments)
    now = clock.now()
    past = counting.past(key, snapshot.session, tool=tool, at=now)
    return Explanation(
        agent=key.agent,
        decision=resolved.decision(tool),
        trace=resolution.trace(resolved.context, tool),
        runner=stored.runner(stored.tools[tool]),
        at_the_gate=gate_rules.explain(
            stored, snapshot.agent, tool, arguments, subagent=snapshot.subagent or "", past=past, at=now
        ),
        problems=problems,
        rollout=_rollout(snapshot.agent),
    )


def _rollout(agent: agents.Agent) -> str:
    trial = None if agent.arm is None else trials.numbered(agent.arm.trial)
    return "" if trial is None else trial.title
