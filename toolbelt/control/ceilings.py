"""May something be written so that an agent begins, or comes to stand, above a budget that refuses more?

Toolkits, loadouts and sub-apps are held to it by the rule of a flip, whichever shell writes them. What comes about by
itself is not: a plugin's code, a server that offers more, a plugin that is back. Nor is the end of an emergency stop:
it gives back what was granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolbelt.control import guards
from toolbelt.core import agents, budgets, catalog
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The agents whose budgets refuse, and the catalog that they are resolved beside before something is written."""

    agents: tuple[agents.Agent, ...]
    stored: catalog.Catalog


def of(kind: str) -> Ceilings | None:
    """Look, in the writer's transaction, before something of this kind is written; None: nothing stands against it."""
    if kind not in budgets.SHARED:
        return None
    bound = tuple(agent_rows.present(on_exceed="refuse"))
    return Ceilings(agents=bound, stored=snapshots.catalog()) if bound else None


def refuse(before: Ceilings | None) -> None:
    """Raise Refused, now that it is written, where one of the agents is above its budget, and higher than before."""
    if before is not None:
        guards.refuse_budgets(_changed(before, snapshots.catalog()))


def refuse_new(name: str) -> None:
    """Raise Refused where the agent of this name, which is new, begins above its budget."""
    found = snapshots.find(name, None)
    if found.agent.budget is not None and found.agent.budget.on_exceed == "refuse":
        nothing = budgets.Spent(tools=0, tokens=0)
        guards.refuse_budget(name, nothing, guards.resolved(found.catalog, found.agent).spent)


def _changed(before: Ceilings, stored: catalog.Catalog) -> Iterator[tuple[str, budgets.Spent, budgets.Spent]]:
    for agent in before.agents:
        after = guards.resolved(stored, agent).spent
        if after.is_passed:
            yield agent.key, guards.resolved(before.stored, agent).spent, after
