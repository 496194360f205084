"""What would a change do to the conversations that are going on? Worked out before it is made; nothing here writes.

A conversation is live for an hour after it last loaded something or called a tool: as long as a provider keeps the
beginning of its prompt. A provider's cache holds what stands before the first difference: the tools, then the system
text. So what changes either lets every live conversation that sees it begin its cache anew.
"""

from __future__ import annotations

import dataclasses
import datetime as dt

from toolbelt import conf
from toolbelt.core import agents, catalog, effects, resolution, surface
from toolbelt.core import sessions as conversations
from toolbelt.store import clock, sessions

LIVE = dt.timedelta(hours=1)
# How many of them are worked out, the last ones; further ones count as they do on average.
MOST_SESSIONS = 20


def of(
    stored: catalog.Catalog,
    agent: agents.Agent,
    wanted: agents.Agent,
    effect: effects.Effect | None = None,
) -> effects.Effect:
    """Say what making the agent as ``wanted`` does outside any session, and to how many that are live. ``effect`` is
    the former, where it is known already.
    """
    if effect is None:
        effect = effects.compare(*(_surface(stored, one, None) for one in (agent, wanted)))
    live, total = sessions.live(agent.key, clock.now() - LIVE, MOST_SESSIONS)
    touched, breaks = 0, set(effect.breaks)
    for session in live:
        broken = effects.breaks(_surface(stored, agent, session), _surface(stored, wanted, session))
        touched += bool(broken)
        breaks.update(broken)
    if touched and total > len(live):
        touched = round(total * touched / len(live))
    order = ("tools", "system text")
    return dataclasses.replace(
        effect, sessions=touched, breaks=tuple(part for part in order if part in breaks)
    )


def _surface(
    stored: catalog.Catalog, agent: agents.Agent, session: conversations.Session | None
) -> surface.Surface:
    return surface.build(
        resolution.Snapshot(catalog=stored, agent=agent, session=session, kind_loadouts=conf.KIND_LOADOUTS)
    )
