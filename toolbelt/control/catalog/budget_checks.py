"""Checks that a write leaves no agent above a budget that refuses.

Toolkits, loadouts and sub-apps are checked by the rule for flips, whichever interface writes them. Changes that no
operator makes are not checked: a plugin's code, a server that offers more tools, a plugin that recovers. Unblocking is
not checked either, because it only restores what was granted.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt import conf
from toolbelt.control import guards
from toolbelt.core import catalog
from toolbelt.core.rules import budgets, inventory
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots


def catalog_before(kind: str) -> catalog.Catalog | None:
    """Return the catalog before something of this kind is written, in the writer's transaction; None if no check is
    needed.
    """
    return snapshots.catalog() if kind in budgets.SHARED_KINDS else None


def refuse_exceeded(before: catalog.Catalog | None) -> None:
    """Raise Refused after a write if an agent exceeds its budget by more than before."""
    if before is not None:
        guards.refuse_budgets(_exceeding(before))


def refuse_new(name: str) -> None:
    """Raise Refused if the new agent with this name exceeds its budget."""
    created = snapshots.find(name, None)
    if created.agent.budget is not None and created.agent.budget.on_exceed == "refuse":
        nothing = budgets.Spent(tools=0, tokens=0)
        guards.refuse_budget(name, nothing, guards.resolved(created.catalog, created.agent).spent)


def _exceeding(before: catalog.Catalog) -> Iterator[tuple[str, budgets.Spent, budgets.Spent]]:
    # What agents share was written, not the agents.
    bound = agent_rows.present(on_exceed="refuse")
    stored = snapshots.catalog() if bound else before
    for agent in bound:
        after = inventory.take(stored, agent, conf.KIND_LOADOUTS).spent
        if after.is_exceeded:
            yield agent.key, inventory.take(before, agent, conf.KIND_LOADOUTS).spent, after
