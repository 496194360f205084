"""Roll-outs: changes of an agent that count in some of its sessions first (docs/how-to/try-a-change.md).

1. A session is in the new arm if the hash of the trial, the agent and the session is below the share: always the same
   one, in every process, and for its subagents. A request without a session is in the old arm.
2. The new arm is the agent as it is now, with the changes made to it. Whatever else is changed, counts in both arms.
3. If what a roll-out changes is not as it was when it began, it changes nothing: what was written since counts at once,
   in all sessions.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import agents, belts, catalog

# The fields of an agent that sessions can differ in. Others are of the agent itself, or decide which sessions it has.
FIELDS = frozenset(
    {
        *("kind", "loadout", "tools", "allowed_toolkits", "initial_toolkits", "budget", "denied_risks"),
    }
)


def includes(rollout: agents.Rollout, agent: str, session: str) -> bool:
    """Return whether a session of an agent is in the new arm of a roll-out."""
    text = f"{rollout.trial}\0{agent}\0{session}".encode(errors="surrogatepass")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
    return number * 100 < rollout.percent << 64


def changed(agent: agents.Agent, rollout: agents.Rollout, stored: catalog.Catalog) -> agents.Agent:
    """Return an agent as it is in the new arm: itself, if what the roll-out changes is not as it was."""
    was = belts.entry("agent", agent, with_secrets=True)
    entry = was
    for change in _changes(rollout, agent.key):
        if not _is_as_it_was(belts.withheld(entry), change):
            return agent
        entry = belts.changed("agent", entry, change)
    value: agents.Agent = belts.value("agent", belts.restored("agent", entry, was), stored)
    return dataclasses.replace(value, rollout=agent.rollout, arm=rollout)


def _changes(rollout: agents.Rollout, agent: str) -> Iterator[belts.LoggedChange]:
    for change in json.loads(rollout.changes):
        yield belts.LoggedChange(kind="agent", name=agent, **change)


def _is_as_it_was(entry: Mapping[str, Any], change: belts.LoggedChange) -> bool:
    if change.key:
        return bool(belts.switches(entry).get(change.key) == change.before)
    return all(entry.get(name) == change.before.get(name) for name in {**change.before, **change.after})
