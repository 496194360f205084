"""What is scheduled, and where does it stand in the state?

A job stands under ``<agent>/job/<id>`` and is only ever written by its agent; how far the worker came with it, under
``<agent>/ran/<id>``, only by the worker. So neither overwrites what the other did meanwhile: a job that is cancelled
while it is delivered stays cancelled. An agent's name holds no ``/``.
"""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt import RuntimeAPI, ToolError
from toolbelt.plugins.builtin.scheduler import times

LONGEST_NOTE = 2_000
MOST_JOBS = 100

_ID = re.compile(r"[0-9a-f]{8}")
_KEY = re.compile(r"([^/]+)/job/([0-9a-f]{8})")
# Signs that no note needs and that not every database stores; line breaks and tabs stay.
_UNSTORABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A note with its time, in UTC. ``due`` is the next time it is to be delivered at; ``every`` None: only then."""

    id: str
    agent: str
    note: str
    due: dt.datetime
    every: dt.timedelta | None = None

    @property
    def key(self) -> str:
        """Where the job stands in the state."""
        return f"{self.agent}/job/{self.id}"

    @property
    def progress(self) -> str:
        """Where it stands how far the worker came."""
        return f"{self.agent}/ran/{self.id}"


def read(pairs: Mapping[str, Any]) -> tuple[list[Job], list[str]]:
    """Read the jobs of a state, the next first, and name the keys of those that cannot be read.

    What the worker is done with is no job any more, also where it came to note that and not to delete it.
    """
    found, unreadable = [], []
    for key, value in pairs.items():
        match = _KEY.fullmatch(key)
        if match is None:
            continue
        agent, job_id = match.groups()
        try:
            due = dt.datetime.fromisoformat(value["due"]).astimezone(dt.UTC)
            every = dt.timedelta(seconds=value["every"]) if value["every"] else None
            ran = pairs.get(f"{agent}/ran/{job_id}")
            if ran is not None:
                done = dt.datetime.fromisoformat(ran).astimezone(dt.UTC)
                if every is None:
                    continue
                due = due + ((done - due) // every + 1) * every if done >= due else due
            found.append(Job(id=job_id, agent=agent, note=str(value["note"]), due=due, every=every))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            unreadable.append(key)
    return sorted(found, key=lambda job: (job.due, job.key)), unreadable


class Diary:
    """The jobs of the agent whose call is under way, and of no other."""

    def __init__(self, runtime: RuntimeAPI) -> None:
        if runtime.call is None or not runtime.call.agent:
            raise ToolError("Schedules belong to an agent, and no agent is calling.")
        self._state, self._agent = runtime.state, runtime.call.agent

    async def all(self) -> list[Job]:
        """Give every job, the next first."""
        found, _ = read(await self._state.list(f"{self._agent}/"))
        # Some databases compare a prefix ignoring case, and Ada's jobs are not ada's.
        return [job for job in found if job.agent == self._agent]

    async def add(self, note: str, due: dt.datetime, every: dt.timedelta | None) -> Job:
        """Keep a job. The same once more is the job that there is."""
        note = _UNSTORABLE.sub("", note).strip()
        if not note:
            raise ToolError("There is nothing to be told: the note is empty.")
        if len(note) > LONGEST_NOTE:
            raise ToolError(f"The note has {len(note)} characters, and {LONGEST_NOTE} are the most.")
        known = await self.all()
        due = due.replace(microsecond=0)
        for job in known:
            if (job.note, job.due, job.every) == (note, due, every):
                return job
        if len(known) >= MOST_JOBS:
            raise ToolError(
                f"You have {len(known)} schedules, and {MOST_JOBS} are the most. Cancel some first."
            )
        job = Job(id=secrets.token_hex(4), agent=self._agent, note=note, due=due, every=every)
        seconds = int(every.total_seconds()) if every else None
        await self._state.set(job.key, {"note": note, "due": times.written(due), "every": seconds})
        return job

    async def cancel(self, job_id: str) -> None:
        """Forget a job. Another agent's is answered as one that does not exist."""
        # Only what can be an id becomes part of a key.
        if not _ID.fullmatch(job_id) or not await self._state.delete(f"{self._agent}/job/{job_id}"):
            raise ToolError(f"You have no schedule {job_id!r}. scheduler__list gives the ids there are.")
        await self._state.delete(f"{self._agent}/ran/{job_id}")
