"""What stands against making an agent otherwise, and what has to be confirmed first? (semantics: Budgets; dashboard:
Access page)

Whatever changes what an agent has comes by here: a flip, many at once, an edit of its entry, a copy, an import.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolbelt import conf
from toolbelt.control import impacts
from toolbelt.core import agents, budgets, catalog, conflicts, effects, errors, resolution, risks, surface

# Of the agents whose budgets a change would pass, as many as are named.
MOST_NAMED = 3


def guarded(
    stored: catalog.Catalog,
    agent: agents.Agent,
    wanted: agents.Agent,
    key: str,
    on: bool | None = None,
    *,
    confirm: bool,
) -> effects.Effect:
    """Give the effect of making the agent as ``wanted``, unless something stands against it.

    Raises Refused for an agent that is archived and stays so, and where a budget that refuses would be passed; and
    ConfirmationRequired unless ``confirm``.
    """
    refuse_archived(agent, wanted)
    before, after, effect = _effect(stored, agent, wanted)
    refuse_budget(wanted.key, before.spent, after.spent)
    if not confirm:
        _ask_to_confirm(stored, agent, wanted, key, on, effect)
    return effect


def resolved(stored: catalog.Catalog, agent: agents.Agent) -> budgets.Resolution:
    """Say what the agent has active outside any session, and what its budget says to that."""
    return budgets.resolve(_alone(stored, agent))


def refuse_archived(agent: agents.Agent, wanted: agents.Agent) -> None:
    """Raise Refused where an agent that is archived, and stays so, would be another one."""
    if agent.archived and wanted.archived and agent != wanted:
        raise errors.Refused(f"{agent.key} is archived, and stays as it is: {errors.BRING_BACK}.")


def refuse_budget(agent: str, before: budgets.Spent, after: budgets.Spent) -> None:
    """Raise Refused where a budget that refuses would be passed, and by more than before: the way down stays open."""
    refuse_budgets([(agent, before, after)])


def refuse_budgets(changed: Iterable[tuple[str, budgets.Spent, budgets.Spent]]) -> None:
    """Raise Refused where a change passes the budget of any of these agents, as :func:`refuse_budget` does for one;
    each is given with what it spent before and would spend after.
    """
    said = [_passed(agent, after) for agent, before, after in changed if budgets.refuses(before, after)]
    if said:
        more = len(said) - MOST_NAMED
        others = f" {more} more agent{'' if more == 1 else 's'} would pass a budget." if more > 0 else ""
        raise errors.Refused(
            f"{' '.join(said[:MOST_NAMED])}{others} Switch something else off first, or raise the budget."
        )


def _passed(agent: str, after: budgets.Spent) -> str:
    budget = after.budget or agents.Budget()
    most = " and ".join(
        f"{number} {unit}"
        for number, unit in ((budget.max_tools, "tools"), (budget.max_tokens, "tokens"))
        if number is not None
    )
    return f"The budget of {agent} is {most}; this would make {after.tools} tools and {after.tokens} tokens."


def effect(stored: catalog.Catalog, agent: agents.Agent, wanted: agents.Agent) -> effects.Effect:
    """Compare what the model sees of the agent as it is with the agent as ``wanted``, outside any session."""
    return _effect(stored, agent, wanted)[2]


def refuse_conflicts(stored: catalog.Catalog, agent: agents.Agent, wanted: agents.Agent, key: str) -> None:
    """Raise Invalid where two sources would now bring one tool with different options, and did not before."""
    made: Sequence[conflicts.Conflict] = conflicts.of_agent(stored, wanted)
    if made:
        already = conflicts.of_agent(stored, agent)
        made = [conflict for conflict in made if conflict not in already]
    if made:
        path = f"agents.{agent.key}.tools_config.{key}"
        raise errors.Invalid([errors.Problem(path=path, message=conflict.message) for conflict in made])


def far_reaching(
    stored: catalog.Catalog,
    agent: agents.Agent,
    wanted: agents.Agent,
    on: bool | None,
    effect: effects.Effect,
) -> list[str]:
    """Say why making the agent as ``wanted`` has to be confirmed; nothing: it has not to be."""
    reasons: list[str] = []
    is_set = agent.tools_config() != wanted.tools_config() or agent.ends != wanted.ends
    touched = not effect.is_nothing or is_set or not wanted.protected
    if agent.protected and touched:
        reasons.append(f"{agent.key} is protected.")
    if wanted.archived and not agent.archived:
        reasons.append(
            f"While {agent.key} is archived it answers nobody, and its tokens open nothing."
            " What is set stays, and so does its history, for when it is brought back."
        )
    destructive = [tool for tool in effect.added if risks.of(stored.tools[tool]) == "destructive"]
    if destructive:
        reasons.append(f"Tools that can destroy something go on: {', '.join(destructive)}.")
    most: int = conf.CONFIRM_OFF_TOOLS
    if on is not True and len(effect.removed) > most:
        reasons.append(f"{len(effect.removed)} active tools go away.")
    return reasons


def differences(key: str, on: bool | None, effect: effects.Effect) -> dict[str, Any]:
    """Give an effect as plain values, as the screens, the API and a refusal show it."""
    return {
        "key": key,
        "on": on,
        "tools": [effect.tools_before, effect.tools_after],
        "tokens": [effect.tokens_before, effect.tokens_after],
        "added": list(effect.added),
        "removed": list(effect.removed),
        "policy": [list(change) for change in effect.policy],
        "breaks": list(effect.breaks),
        "sessions": effect.sessions,
    }


def _ask_to_confirm(
    stored: catalog.Catalog,
    agent: agents.Agent,
    wanted: agents.Agent,
    key: str,
    on: bool | None,
    effect: effects.Effect,
) -> None:
    reasons = far_reaching(stored, agent, wanted, on, effect)
    if reasons:
        effect = impacts.of(stored, agent, wanted, effect)
        raise errors.ConfirmationRequired(reasons, differences(key, on, effect))


def _alone(stored: catalog.Catalog, agent: agents.Agent) -> resolution.Snapshot:
    return resolution.Snapshot(catalog=stored, agent=agent, kind_loadouts=conf.KIND_LOADOUTS)


def _effect(
    stored: catalog.Catalog, agent: agents.Agent, wanted: agents.Agent
) -> tuple[surface.Surface, surface.Surface, effects.Effect]:
    before, after = (surface.build(_alone(stored, one)) for one in (agent, wanted))
    return before, after, effects.compare(before, after)
