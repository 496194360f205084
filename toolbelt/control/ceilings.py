"""May something be written so that an agent begins, or comes to stand, above a budget that refuses more?

Toolkits, loadouts and sub-apps are held to it by the rule of a flip, whichever shell writes them. What comes about by
itself is not: a plugin's code, a server that offers more, a plugin that is back. Nor is the end of an emergency stop:
it gives back what was granted.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt import conf
from toolbelt.control import guards
from toolbelt.core import budgets, catalog, inventory
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots


def of(kind: str) -> catalog.Catalog | None:
    """Return what agents are resolved beside, in the writer's transaction, before something of this kind is written;
    None: nothing stands against it.
    """
    return snapshots.catalog() if kind in budgets.SHARED else None


def refuse(before: catalog.Catalog | None) -> None:
    """Raise Refused, now that it is written, where one of the agents is above its budget, and higher than before."""
    if before is not None:
        guards.refuse_budgets(_changed(before))


def refuse_new(name: str) -> None:
    """Raise Refused where the agent of this name, which is new, begins above its budget."""
    found = snapshots.find(name, None)
    if found.agent.budget is not None and found.agent.budget.on_exceed == "refuse":
        nothing = budgets.Spent(tools=0, tokens=0)
        guards.refuse_budget(name, nothing, guards.resolved(found.catalog, found.agent).spent)


def _changed(before: catalog.Catalog) -> Iterator[tuple[str, budgets.Spent, budgets.Spent]]:
    # What agents share was written, and not they.
    bound = agent_rows.present(on_exceed="refuse")
    stored = snapshots.catalog() if bound else before
    for agent in bound:
        after = inventory.take(stored, agent, conf.KIND_LOADOUTS).spent
        if after.is_passed:
            yield agent.key, inventory.take(before, agent, conf.KIND_LOADOUTS).spent, after
