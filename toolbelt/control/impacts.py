"""The effects of a change on live conversations, computed before it is made; nothing here writes.

A conversation is live for an hour after it last loaded something, called a tool, or was told of changes: about as long
as a provider caches the start of its prompt. A change is appended to the conversations that programs name. Others are
written again: a cache holds what precedes the first difference, the tools, then the system text, so a change of either
resets it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Collection, Iterable, Mapping

from toolbelt.core import agents, catalog, effects, surface
from toolbelt.core import sessions as conversations
from toolbelt.store import agent_sessions, clock, snapshots
from toolbelt.store import conversations as recorded_conversations

LIVE = dt.timedelta(hours=1)
# How many of them, the latest, are computed; others are extrapolated.
MAX_SESSIONS = 20


def with_sessions(
    stored: catalog.Catalog,
    agent: agents.Agent,
    proposed: agents.Agent,
    effect: effects.Effect | None = None,
) -> effects.Effect:
    """Return the effect of changing the agent to ``proposed``, with the live conversations concerned. ``effect``
    is that in a new session, if it is known.
    """
    if effect is None:
        versions = (agent, proposed)
        effect = effects.compare(*(_surface(stored, version, conversations.NEW) for version in versions))
    since = clock.now() - LIVE
    recorded = recorded_conversations.live([agent.key], since)
    ways = {each.session: each.way for each in recorded if each.session}
    live, total = agent_sessions.live(agent.key, since, MAX_SESSIONS, ways)
    breaks, counts, seen = set(effect.breaks), {"append": 0, "words": 0, "rewrite": 0}, len(live)
    for session in live:
        broken = effects.breaks(_surface(stored, agent, session), _surface(stored, proposed, session))
        counts[ways.get(session.key, "rewrite")] += bool(broken)
        breaks.update(broken)
    if total > seen:
        counts = {way: round(total * count / seen) for way, count in counts.items()}
    # Those that named no session have loaded nothing.
    for each in recorded:
        counts[each.way] += not each.session and bool(effect.breaks)
    order = ("tools", "system text")
    return dataclasses.replace(
        effect,
        conversations=effects.Conversations(*counts.values()),
        breaks=tuple(part for part in order if part in breaks),
    )


def by_agent(names: Collection[str]) -> dict[str, effects.Conversations]:
    """Return the live conversations of these agents, as if a change concerned all. Uses a fixed number of queries."""
    since = clock.now() - LIVE
    return _divided(agent_sessions.live_of(names, since), recorded_conversations.live(names, since))


def of_agents(names: Collection[str]) -> effects.Conversations:
    """Return the live conversations of these agents together, as if a change concerned all."""
    return sum(by_agent(names).values(), effects.NO_CONVERSATIONS) if names else effects.NO_CONVERSATIONS


def holding(kind: str, name: str, having: Collection[str]) -> effects.Conversations:
    """Return the live conversations that were told of a tool or of the texts of a toolkit: they begin again if it is
    purged. Those of the agents ``having`` it now whose programs send no conversation are written again.
    """
    since = clock.now() - LIVE
    held = recorded_conversations.holding(f"{kind} {name}", since)
    others = _divided(agent_sessions.live_of(having, since), recorded_conversations.live(having, since))
    return effects.Conversations(
        rewritten=sum(each.rewritten for each in others.values()), restarted=len(held)
    )


def _divided(
    sessions: Mapping[str, Collection[str]], recorded: Iterable[recorded_conversations.Live]
) -> dict[str, effects.Conversations]:
    """Return, by agent, how many live conversations there are of each kind. ``sessions`` are the agents' live ones:
    those that are not ``recorded`` rewrite.
    """
    named: dict[str, set[str]] = {}
    counts: dict[str, list[int]] = {}
    for each in recorded:
        counts.setdefault(each.agent, [0, 0])[each.way == "words"] += 1
        named.setdefault(each.agent, set()).add(each.session)
    return {
        agent: effects.Conversations(
            continued=counts.get(agent, [0, 0])[0],
            in_words=counts.get(agent, [0, 0])[1],
            rewritten=len({*sessions.get(agent, ())}.difference(named.get(agent, ()))),
        )
        for agent in {*sessions, *counts}
    }


def _surface(stored: catalog.Catalog, agent: agents.Agent, session: conversations.Session) -> surface.Surface:
    return surface.build(snapshots.of(stored, agent, session=session))
