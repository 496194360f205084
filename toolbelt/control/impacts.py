"""The effects of a change on live conversations, computed before it is made; nothing here writes.

A conversation is live for an hour after it last loaded something or called a tool: about as long as a provider caches
the start of its prompt. A cache holds what precedes the first difference: the tools, then the system text. A change of
either therefore resets the cache of every live conversation that sees it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt

from toolbelt.core import agents, catalog, effects, surface
from toolbelt.core import sessions as conversations
from toolbelt.store import agent_sessions, clock, snapshots

LIVE = dt.timedelta(hours=1)
# How many of them, the latest, are computed; others are extrapolated.
MAX_SESSIONS = 20


def with_sessions(
    stored: catalog.Catalog,
    agent: agents.Agent,
    proposed: agents.Agent,
    effect: effects.Effect | None = None,
) -> effects.Effect:
    """Return the effect of changing the agent to ``proposed``, with the number of live sessions concerned. ``effect``
    is that in a new session, if it is known.
    """
    if effect is None:
        versions = (agent, proposed)
        effect = effects.compare(*(_surface(stored, version, conversations.NEW) for version in versions))
    live, total = agent_sessions.live(agent.key, clock.now() - LIVE, MAX_SESSIONS)
    affected, breaks = 0, set(effect.breaks)
    for session in live:
        broken = effects.breaks(_surface(stored, agent, session), _surface(stored, proposed, session))
        affected += bool(broken)
        breaks.update(broken)
    if affected and total > len(live):
        affected = round(total * affected / len(live))
    order = ("tools", "system text")
    return dataclasses.replace(
        effect, sessions=affected, breaks=tuple(part for part in order if part in breaks)
    )


def _surface(stored: catalog.Catalog, agent: agents.Agent, session: conversations.Session) -> surface.Surface:
    return surface.build(snapshots.of(stored, agent, session=session))
