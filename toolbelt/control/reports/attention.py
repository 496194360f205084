"""Matters that need an operator's attention: failures, budgets, tools to review, blocks, and settings without effect.

Read in a fixed number of queries, however many entries there are; nothing here writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolbelt.control import trials
from toolbelt.control.access import access_index
from toolbelt.control.catalog import blocking, unresolved
from toolbelt.control.config import drift
from toolbelt.control.reports import queries
from toolbelt.control.servers import approvals, states
from toolbelt.core import catalog, connections
from toolbelt.core.imported import instructions
from toolbelt.core.rules import reasons, resolution
from toolbelt.store import server_sign_ins, snapshots

# Why an override has no effect.
Why = Literal["retired", "without effect", "redundant"]


class IneffectiveOverride(NamedTuple):
    """An override without effect; :func:`explain_ineffective` returns the reason in words."""

    tool: str
    on: bool
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPlugin:
    """A plugin that has failed, or a server at which no one is signed in, with its error if it reported one."""

    plugin: catalog.Plugin
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Everything that needs attention, and the ``agents`` and the catalog (``stored``) that it was computed from.

    ``sign_in_needed`` are the servers at which no one is signed in, or with too few scopes. ``not_running`` are the
    plugins in code with tools that no process can run; ``to_review`` is the number of tools to review, by plugin, and
    ``findings`` are theirs, by plugin and tool; ``blocked`` what is blocked for everyone (kind, name); ``unresolved``
    names that do not exist; ``instructions`` the servers with instructions that nobody has seen; ``drift`` what differs
    from the belt applied last; ``trials`` those that are over, of drafts that are to be decided about.
    """

    agents: Sequence[queries.Summary]
    stored: catalog.Catalog
    failed_plugins: Sequence[FailedPlugin]
    sign_in_needed: Sequence[FailedPlugin]
    not_running: Sequence[catalog.Plugin]
    to_review: Mapping[str, int]
    findings: Mapping[str, Mapping[str, Sequence[str]]]
    blocked: Sequence[tuple[str, str]]
    ineffective_overrides: Sequence[tuple[queries.Summary, Sequence[IneffectiveOverride]]]
    unresolved: Sequence[unresolved.Unresolved]
    instructions: Sequence[catalog.Plugin] = ()
    drift: drift.Drift | None = None
    trials: Sequence[trials.Trial] = ()


def load() -> Attention:
    """Return everything that needs attention."""
    summaries, stored = queries.summaries(), snapshots.catalog()
    all_states = states.load(stored)

    def failures(of_state: states.State) -> list[FailedPlugin]:
        return [
            FailedPlugin(plugin=state.plugin, error=state.error)
            for state in all_states
            if state.state == of_state
        ]

    return Attention(
        agents=summaries,
        stored=stored,
        failed_plugins=failures("failed"),
        sign_in_needed=[*failures("sign-in-needed"), *_more_scopes_needed(all_states)],
        not_running=tuple(state.plugin for state in all_states if state.state == "not-running"),
        to_review={state.plugin.name: state.to_review for state in all_states if state.to_review},
        findings=_findings(stored),
        blocked=tuple(blocking.blocked(stored)),
        ineffective_overrides=tuple(
            (summary, overrides)
            for summary in summaries
            if (overrides := tuple(_ineffective_overrides(summary)))
        ),
        unresolved=unresolved.find_all(stored),
        instructions=tuple(filter(instructions.is_unseen, stored.plugins.values())),
        drift=drift.find(),
        trials=trials.undecided(),
    )


def _more_scopes_needed(all_states: Iterable[states.PluginState]) -> Iterator[FailedPlugin]:
    """Yield the servers that answer, but demand more than their sign-in has."""
    signed_in = [
        state
        for state in all_states
        if state.state == "ready"
        and (settings := connections.read(state.plugin.upstream)) is not None
        and settings.sign_in
    ]
    demanded = server_sign_ins.demanded() if signed_in else {}
    for state in signed_in:
        if scopes := demanded.get(state.plugin.name):
            yield FailedPlugin(plugin=state.plugin, error=f"Some calls demand more scopes: {scopes}.")


def _findings(stored: catalog.Catalog) -> dict[str, dict[str, Sequence[str]]]:
    by_plugin: dict[str, dict[str, Sequence[str]]] = {}
    for key, flags in approvals.findings(stored).items():
        by_plugin.setdefault(stored.tools[key].plugin, {})[key] = flags
    return by_plugin


def explain_ineffective(summary: queries.Summary, override: IneffectiveOverride) -> str:
    """Return in words why an override of this agent has no effect."""
    if override.why == "redundant":
        return reasons.explain(resolution.decide(_without_overrides(summary).context, override.tool))
    return reasons.explain(summary.access.decision(override.tool))


def _ineffective_overrides(summary: queries.Summary) -> Iterator[IneffectiveOverride]:
    """Yield the overrides without effect. Those that protect a tool from the budget have one."""
    stored, budget = summary.access.catalog, summary.agent.budget
    overrides = [(key, on) for key, on in sorted(summary.agent.overrides.items()) if key in stored.tools]
    if not overrides:
        return
    may_be_deferred = budget is not None and budget.defers
    without = _without_overrides(summary)
    denied = without.context.denied
    closed = access_index.closed(stored)
    for key, on in overrides:
        decision = closed.get(key)
        if stored.tools[key].retired:
            yield IneffectiveOverride(key, on, "retired")
        elif on and key not in summary.access.granted:
            yield IneffectiveOverride(key, on, "without effect")
        elif (on and not may_be_deferred and key in without.granted) or (
            not on and (decision.state == "denied" if decision is not None else key in denied)
        ):
            yield IneffectiveOverride(key, on, "redundant")


def _without_overrides(summary: queries.Summary) -> access_index.AgentAccess:
    """Return the agent without its overrides and its budget."""
    agent = dataclasses.replace(summary.agent, overrides={}, budget=None)
    state = summary.access.state
    return access_index.AgentAccess(
        agent=agent,
        catalog=summary.access.catalog,
        state=None if state is None else ("without overrides", state),
    )
