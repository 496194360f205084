"""Roll-outs: changes of an agent that count in some of its sessions first (docs/how-to/try-a-change.md).

1. A session is in the new arm if the hash of the trial, the agent and the session is below the share: always the same
   one, in every process, and for its subagents. A request without a session is in the old arm.
2. The new arm is the agent as it is now, with the changes made to it. Whatever else is changed, counts in both arms.
3. If what a roll-out changes is not as it was when it began, it changes nothing: what was written since counts at once,
   in all sessions. Writing what is there already ends it (:mod:`toolbelt.control.access.rolled_out`). Nothing has to be
   written for its end.
4. Sessions with a refused or failed call are counted in both arms: sessions, because calls of one fail together. The
   arms are compared after every ten sessions that come or fail, by a one-sided z-test, and the new one is worse only if
   chance hardly explains it. Looking so often, and so strictly, takes back a draft that harms nothing in less than 4 of
   100 cases.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from toolbelt.core import agents, belts, catalog

# The fields of an agent that sessions can differ in. Others are of the agent itself, or decide which sessions it has.
FIELDS = frozenset(
    {
        *("kind", "loadout", "tools", "allowed_toolkits", "initial_toolkits", "budget", "denied_risks"),
    }
)


# How often the arms are compared, in sessions that come or fail, and what makes the new one worse: enough sessions in
# each, enough failed ones in the new one, and a higher share of them, by so many standard errors, and so much of all.
LOOK_EVERY, MIN_SESSIONS, MIN_FAILED, MIN_SCORE, MIN_DIFFERENCE = 10, 20, 3, 3.0, 0.02
# In so many sessions of the new arm, a call may be refused that only the changes refuse.
MAX_REFUSED = 10


class Arm(NamedTuple):
    """How many sessions an arm has, and how many of them have a refused or failed call."""

    sessions: int = 0
    failed: int = 0

    @property
    def share(self) -> float:
        """Return the share of sessions with such a call."""
        return self.failed / self.sessions if self.sessions else 0.0

    @property
    def percent(self) -> int:
        """Return the share in whole percent."""
        return round(self.share * 100)


class Arms(NamedTuple):
    """Both arms of a roll-out, and in how many sessions of the new one only its changes refused a call."""

    new: Arm = Arm()
    old: Arm = Arm()
    refused: int = 0

    @property
    def sessions(self) -> int:
        """Return the number of sessions of both."""
        return self.new.sessions + self.old.sessions

    @property
    def failed(self) -> int:
        """Return how many of them have a refused or failed call."""
        return self.new.failed + self.old.failed

    @property
    def is_comparable(self) -> bool:
        """Return whether both have enough sessions."""
        return min(self.new.sessions, self.old.sessions) >= MIN_SESSIONS

    @property
    def score(self) -> float:
        """Return by how many standard errors the new arm's share of failed sessions is higher (z)."""
        if not (self.new.sessions and self.old.sessions):
            return 0.0
        pooled = self.failed / self.sessions
        error = math.sqrt(pooled * (1 - pooled) * (1 / self.new.sessions + 1 / self.old.sessions))
        return (self.new.share - self.old.share) / error if error else 0.0

    @property
    def is_worse(self) -> bool:
        """Return whether the new arm does worse, by more than chance explains."""
        return (
            self.is_comparable
            and self.new.failed >= MIN_FAILED
            and self.new.share - self.old.share >= MIN_DIFFERENCE
            and self.score >= MIN_SCORE
        )


def is_due(before: Arms, now: Arms) -> bool:
    """Return whether enough sessions came or failed since the arms were compared last: those that are there already may
    go on for long, and fail later.
    """
    return (now.sessions + now.failed) // LOOK_EVERY > (before.sessions + before.failed) // LOOK_EVERY


def includes(rollout: agents.Rollout, agent: str, session: str) -> bool:
    """Return whether a session of an agent is in the new arm of a roll-out."""
    text = f"{rollout.trial}\0{agent}\0{session}".encode(errors="surrogatepass")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
    return number * 100 < rollout.percent << 64


def changed(agent: agents.Agent, rollout: agents.Rollout, stored: catalog.Catalog) -> agents.Agent:
    """Return an agent as it is in the new arm: itself, if what the roll-out changes is not as it was, or is gone."""
    was = belts.entry("agent", agent, with_secrets=True)
    entry = was
    for change in _changes(rollout, agent.key):
        if not (_is_there(stored, change) and _is_as_it_was(belts.withheld(entry), change)):
            return agent
        # What it changes is as it was, so that it becomes exactly what was approved: lists in their order, too.
        entry = belts.changed(
            "agent", entry, change if change.key else dataclasses.replace(change, before=None)
        )
    value: agents.Agent = belts.value("agent", belts.restored("agent", entry, was), stored)
    return dataclasses.replace(value, rollout=agent.rollout, arm=rollout)


def keys(rollout: agents.Rollout) -> frozenset[str]:
    """Return the switches and overrides that a roll-out changes."""
    return frozenset(change.key for change in _changes(rollout, "") if change.key)


def named(rollout: agents.Rollout, keys: Collection[str] = (), fields: Collection[str] = ()) -> list[str]:
    """Return which of these switches and overrides, and of these fields, a roll-out changes."""
    found = []
    for change in _changes(rollout, ""):
        if change.key:
            found += [change.key] if change.key in keys else []
        else:
            found += [name for name in change.after if name in fields]
    return found


def _changes(rollout: agents.Rollout, agent: str) -> Iterator[belts.LoggedChange]:
    for change in json.loads(rollout.changes):
        yield belts.LoggedChange(kind="agent", name=agent, **change)


def _is_there(stored: catalog.Catalog, change: belts.LoggedChange) -> bool:
    """Return whether the toolkit or the tool of a switch or an override exists: what has its key now is another one."""
    named = stored.toolkits if change.action.startswith("switch.") else stored.tools
    return not change.key or change.key in named


def _is_as_it_was(entry: Mapping[str, Any], change: belts.LoggedChange) -> bool:
    if change.key:
        return bool(belts.switches(entry).get(change.key) == change.before)
    return all(entry.get(name) == change.before.get(name) for name in {**change.before, **change.after})
