"""Scheduled jobs, as they are stored in the plugin's state.

The key ``<agent>/job/<id>`` holds a job, and only its agent writes it. The key ``<agent>/ran/<id>`` holds the time of
its last run, and only the worker writes it. Neither overwrites the other, so a job that is cancelled during its
delivery stays cancelled. Agents' names contain no ``/``.
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

MAX_NOTE_LENGTH = 2_000
MAX_JOBS = 100

_ID = re.compile(r"[0-9a-f]{8}")
_KEY = re.compile(r"([^/]+)/job/([0-9a-f]{8})")
# Characters that no note needs and that not every database stores. Line breaks and tabs are allowed.
_UNSTORABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A scheduled note. ``due`` is its next delivery, in UTC; ``every`` is None for a note that is delivered once."""

    id: str
    agent: str
    note: str
    due: dt.datetime
    every: dt.timedelta | None = None

    @property
    def key(self) -> str:
        """The key of the job."""
        return f"{self.agent}/job/{self.id}"

    @property
    def last_run_key(self) -> str:
        """The key of the time of its last run."""
        return f"{self.agent}/ran/{self.id}"


def read(pairs: Mapping[str, Any]) -> tuple[list[Job], list[str]]:
    """Return the stored jobs, soonest first, and the keys of jobs that cannot be read.

    Finished jobs are left out, even if the worker stopped before it deleted them.
    """
    readable_jobs, unreadable = [], []
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
                last_run = dt.datetime.fromisoformat(ran).astimezone(dt.UTC)
                if every is None:
                    continue
                due = due + ((last_run - due) // every + 1) * every if last_run >= due else due
            readable_jobs.append(Job(id=job_id, agent=agent, note=str(value["note"]), due=due, every=every))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            unreadable.append(key)
    return sorted(readable_jobs, key=lambda job: (job.due, job.key)), unreadable


class AgentJobs:
    """The jobs of the agent that makes the current call."""

    def __init__(self, runtime: RuntimeAPI) -> None:
        if runtime.call is None or not runtime.call.agent:
            raise ToolError("Schedules belong to an agent, and this call is not by an agent.")
        self._state, self._agent = runtime.state, runtime.call.agent

    async def all(self) -> list[Job]:
        """Return all jobs, soonest first."""
        all_jobs, _ = read(await self._state.list(f"{self._agent}/"))
        # Some databases compare a prefix ignoring case, and Ada's jobs are not ada's.
        return [job for job in all_jobs if job.agent == self._agent]

    async def add(self, note: str, due: dt.datetime, every: dt.timedelta | None) -> Job:
        """Store a job and return it, or return an existing equal job."""
        note = _UNSTORABLE.sub("", note).strip()
        if not note:
            raise ToolError("The note is empty. Write what to deliver.")
        if len(note) > MAX_NOTE_LENGTH:
            raise ToolError(f"The note has {len(note)} characters; at most {MAX_NOTE_LENGTH} are allowed.")
        jobs = await self.all()
        due = due.replace(microsecond=0)
        for job in jobs:
            if (job.note, job.due, job.every) == (note, due, every):
                return job
        if len(jobs) >= MAX_JOBS:
            raise ToolError(
                f"You have {len(jobs)} schedules; at most {MAX_JOBS} are allowed. Cancel some first."
            )
        job = Job(id=secrets.token_hex(4), agent=self._agent, note=note, due=due, every=every)
        seconds = int(every.total_seconds()) if every else None
        await self._state.set(job.key, {"note": note, "due": times.format_time(due), "every": seconds})
        return job

    async def cancel(self, job_id: str) -> None:
        """Delete a job. Another agent's job is refused like one that does not exist."""
        # Validate the id before a key is made of it.
        if not _ID.fullmatch(job_id) or not await self._state.delete(f"{self._agent}/job/{job_id}"):
            raise ToolError(
                f"You have no schedule {job_id!r}. scheduler__list returns the ids of your schedules."
            )
        await self._state.delete(f"{self._agent}/ran/{job_id}")
