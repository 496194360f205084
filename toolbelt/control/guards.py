"""Checks of a change of an agent: what prevents it, and what must be confirmed first (docs/semantics.md: Budgets).

Everything that changes what an agent has is checked here: a flip, many at once, an edit of its entry, a copy, an
import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolbelt import conf
from toolbelt.control import impacts
from toolbelt.core import agents, catalog, conflicts, effects, errors, risks, sessions, surface, texts
from toolbelt.core.rules import budgets
from toolbelt.store import snapshots

# How many agents are named whose budgets a change would exceed.
MAX_NAMED = 3


def check(
    stored: catalog.Catalog,
    agent: agents.Agent,
    proposed: agents.Agent,
    key: str,
    on: bool | None = None,
    *,
    confirm: bool,
    even_archived: bool = False,
) -> effects.Effect:
    """Return the effect of changing the agent to ``proposed``, unless something prevents it.

    Raise Refused for an agent that is archived and stays so (unless ``even_archived``), or if a budget that refuses
    would be exceeded; raise ConfirmationRequired unless ``confirm``.
    """
    if not even_archived:
        refuse_archived(agent, proposed)
    before, after, effect = _effect(stored, agent, proposed)
    refuse_budget(proposed.key, before.spent, after.spent)
    if not confirm:
        _ask_to_confirm(stored, agent, proposed, key, on, effect)
    return effect


def resolved(stored: catalog.Catalog, agent: agents.Agent) -> budgets.Resolution:
    """Return the agent's resolution outside any session."""
    return budgets.resolve(snapshots.of(stored, agent))


def refuse_archived(agent: agents.Agent, proposed: agents.Agent) -> None:
    """Raise Refused for a change of an agent that is archived and stays so."""
    if agent.archived and proposed.archived and agent != proposed:
        raise errors.Refused(f"{agent.key} is archived and cannot be changed: {errors.BRING_BACK}.")


def refuse_budget(agent: str, before: budgets.Spent, after: budgets.Spent) -> None:
    """Raise Refused if a budget that refuses would be exceeded by more than before."""
    refuse_budgets([(agent, before, after)])


def refuse_budgets(changed: Iterable[tuple[str, budgets.Spent, budgets.Spent]]) -> None:
    """Raise Refused if a change exceeds the budget of any of these agents, as :func:`refuse_budget` does for one; each
    is given with its use before and after.
    """
    sentences = [
        _describe_excess(agent, after) for agent, before, after in changed if budgets.refuses(before, after)
    ]
    if sentences:
        more = len(sentences) - MAX_NAMED
        others = f" {texts.counted(more, 'more agent')} would exceed a budget." if more > 0 else ""
        raise errors.Refused(
            f"{' '.join(sentences[:MAX_NAMED])}{others} Switch something else off first, or raise the budget."
        )


def _describe_excess(agent: str, after: budgets.Spent) -> str:
    budget = after.budget or agents.Budget()
    limits = " and ".join(
        texts.counted(number, unit)
        for number, unit in ((budget.max_tools, "tool"), (budget.max_tokens, "token"))
        if number is not None
    )
    tools, tokens = texts.counted(after.tools, "tool"), texts.counted(after.tokens, "token")
    return f"The budget of {agent} is {limits}; this change would result in {tools} and {tokens}."


def effect(stored: catalog.Catalog, agent: agents.Agent, proposed: agents.Agent) -> effects.Effect:
    """Return the effect on what the model sees, in a new session, of changing the agent to ``proposed``."""
    return _effect(stored, agent, proposed)[2]


def refuse_conflicts(stored: catalog.Catalog, agent: agents.Agent, proposed: agents.Agent, key: str) -> None:
    """Raise Invalid if two sources would newly give one tool different options."""
    new: Sequence[conflicts.Conflict] = conflicts.of_agent(stored, proposed)
    if new:
        already = conflicts.of_agent(stored, agent)
        new = [conflict for conflict in new if conflict not in already]
    if new:
        path = f"agents.{agent.key}.tools_config.{key}"
        raise errors.Invalid([errors.Problem(path=path, message=conflict.message) for conflict in new])


def confirmation_reasons(
    stored: catalog.Catalog,
    agent: agents.Agent,
    proposed: agents.Agent,
    on: bool | None,
    effect: effects.Effect,
) -> list[str]:
    """Return the reasons for which changing the agent to ``proposed`` must be confirmed; empty if none."""
    reasons: list[str] = []
    is_set = agent.tools_config() != proposed.tools_config() or agent.ends != proposed.ends
    is_affected = not effect.is_nothing or is_set or not proposed.protected
    if agent.protected and is_affected:
        reasons.append(f"{agent.key} is protected.")
    if proposed.archived and not agent.archived:
        reasons.append(
            f"While {agent.key} is archived, it answers no requests, and its tokens are rejected."
            " Its settings and history are kept, and it can be restored."
        )
    added = {tool: risks.stated(stored.tools[tool]) for tool in effect.added}
    for risk, words in (
        ("destructive", "destructive tools"),
        ("not stated", "tools that do not state their risk"),
    ):
        if tools := [tool for tool, stated in added.items() if stated == risk]:
            reasons.append(f"Enables {words}: {', '.join(tools)}.")
    limit: int = conf.CONFIRM_OFF_TOOLS
    if on is not True and len(effect.removed) > limit:
        reasons.append(f"Turns off {texts.counted(len(effect.removed), 'tool')}.")
    return reasons


def describe_effect(key: str, on: bool | None, effect: effects.Effect) -> dict[str, Any]:
    """Return an effect as plain values, for the dashboard, the API and ConfirmationRequired."""
    return {
        "key": key,
        "on": on,
        "tools": [effect.tools_before, effect.tools_after],
        "tokens": [effect.tokens_before, effect.tokens_after],
        "added": list(effect.added),
        "removed": list(effect.removed),
        "policy": [list(change) for change in effect.policy],
        "on_request_added": list(effect.on_request_added),
        "on_request_removed": list(effect.on_request_removed),
        "breaks": list(effect.breaks),
        "sessions": effect.sessions,
        "conversations": None if effect.conversations is None else effect.conversations._asdict(),
    }


def summed(effects_of: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the effects on several agents together, as :func:`describe_effect` does for one."""
    known = [each for each in effects_of if each.get("tools")]
    lists = ("added", "removed", "on_request_added", "on_request_removed")
    return {
        "tools": [sum(each["tools"][side] for each in known) for side in (0, 1)],
        "tokens": [sum(each["tokens"][side] for each in known) for side in (0, 1)],
        **{name: sorted({tool for each in known for tool in each.get(name, ())}) for name in lists},
        "policy": [],
        "breaks": [],
    }


def _ask_to_confirm(
    stored: catalog.Catalog,
    agent: agents.Agent,
    proposed: agents.Agent,
    key: str,
    on: bool | None,
    effect: effects.Effect,
) -> None:
    reasons = confirmation_reasons(stored, agent, proposed, on, effect)
    if reasons:
        effect = impacts.with_sessions(stored, agent, proposed, effect)
        raise errors.ConfirmationRequired(reasons, describe_effect(key, on, effect))


def _effect(
    stored: catalog.Catalog, agent: agents.Agent, proposed: agents.Agent
) -> tuple[surface.Surface, surface.Surface, effects.Effect]:
    before, after = (
        surface.build(snapshots.of(stored, version, session=sessions.NEW)) for version in (agent, proposed)
    )
    return before, after, effects.compare(before, after)
