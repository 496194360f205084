"""The entries that an import changes, and the agents that would then exceed a budget that refuses."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.control import guards
from toolbelt.control.catalog import entries
from toolbelt.core import belts, catalog, errors, policy, schema
from toolbelt.core.rules import budgets
from toolbelt.store import snapshots, token_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An entry that an import creates (``before`` is None) or changes, with its stored form before and after."""

    kind: belts.KindName
    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any]


def problems(
    changed: Sequence[Difference], stored: Mapping[str, Any], proposed: belts.Belt
) -> list[errors.Problem]:
    """Return the problems of agents that would exceed a budget that refuses, by the rule for flips: agents that the
    import creates or changes, and all agents if it changes something that agents share.
    """
    count = _token_counter()
    before: belts.Belt | None = None
    exceeded: list[errors.Problem] = []
    written = {difference.name for difference in changed if difference.kind == "agent"}
    affects_all = any(
        budgets.concerns_all_agents(
            difference.kind, entries.differences(difference.before, difference.after)[1]
        )
        for difference in changed
    )
    existing = {entry["key"] for entry in stored.get("agents", ())}
    for name, agent in proposed.agents.items():
        if agent.budget is None or agent.budget.on_exceed != "refuse":
            continue
        if name not in written and (agent.archived or not affects_all):
            continue
        after_ = _spent(proposed, name, count)
        if not after_.is_exceeded:
            continue
        if before is None:
            before = belts.load(stored, lenient=True)
        before_ = _spent(before, name, count) if name in existing else budgets.Spent(tools=0, tokens=0)
        try:
            guards.refuse_budget(name, before_, after_)
        except errors.Refused as refused:
            path = f"{belts.address('agent', {'key': name})}.budget"
            exceeded.append(errors.Problem(path=path, message=str(refused)))
    return exceeded


def _spent(belt: belts.Belt, agent: str, count: Callable[[catalog.Tool], int]) -> budgets.Spent:
    """Return the budget that the agent uses in this belt. A budget that refuses defers nothing, so tokens are only
    counted for the active tools.
    """
    resolved = guards.resolved(belt.catalog, belt.agents[agent])
    counting = dataclasses.replace(
        belt.catalog, code=snapshots.catalog().code, count_tokens=token_counts.count_policy, derived={}
    )
    policy_tokens = policy.tokens(counting, resolved.active, resolved.context.concerned)
    spent = policy_tokens + sum(count(belt.catalog.tools[key]) for key in resolved.active)
    return dataclasses.replace(resolved.spent, tokens=spent, policy_tokens=policy_tokens)


def _token_counter() -> Callable[[catalog.Tool], int]:
    """Return a counter of a tool's tokens that counts equal definitions once."""

    @functools.cache
    def counted(key: str, description: str, input_schema: str) -> int:
        return token_counts.count(
            catalog.model_json(key, description, schema.mapping(input_schema, schema.EMPTY))
        )

    return lambda tool: counted(tool.key, tool.description, tool.input_schema)
