"""Delivery of due notes.

Rules:

1. A due time is delivered once. It counts as delivered when ``deliver`` has returned. If ``deliver`` raises, the job
   stays due and is tried again in the next round; other jobs continue.
2. Times that were missed because no worker ran become one run, for the latest of them, with the number of earlier ones.
   The times do not shift: a job due every hour at ten past stays due at ten past after a pause.
3. One worker at a time: the caller of :func:`run_due` holds a lock. A worker that dies between delivering a run and
   recording it delivers it again with the same ``Run.key``, by which ``deliver`` can recognize repetitions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.plugins import contract
from toolbelt.plugins.builtin.scheduler import jobs, times


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job at one of its due times. ``missed`` is how many earlier times passed without a run."""

    key: str
    agent: str
    job: str
    note: str
    due: dt.datetime
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The result of one round: runs that were delivered, runs that failed and why, and keys that cannot be read."""

    delivered: tuple[Run, ...] = ()
    failed: tuple[tuple[Run, Exception], ...] = ()
    unreadable: tuple[str, ...] = ()


Deliver = Callable[[Run], Awaitable[None]]


async def due(state: contract.State, now: dt.datetime) -> list[Run]:
    """Return the due runs of all agents, longest due first."""
    all_jobs, _ = jobs.read(await state.list())
    return [_run(job, now) for job in all_jobs if job.due <= now]


async def run_due(state: contract.State, now: dt.datetime, deliver: Deliver) -> Round:
    """Deliver and record all due runs. ``state`` is the scheduler's own state; ``now`` has a time zone."""
    pairs = await state.list()
    all_jobs, unreadable = jobs.read(pairs)
    await _sweep(state, pairs, {job.key for job in all_jobs} | set(unreadable))
    delivered: list[Run] = []
    failed: list[tuple[Run, Exception]] = []
    for job in all_jobs:
        # It may have been cancelled while others were delivered, so check again right before delivery.
        if job.due > now or await state.get(job.key) is None:
            continue
        run = _run(job, now)
        try:
            await deliver(run)
        except Exception as error:  # one failed run must not stop the others
            failed.append((run, error))
            continue
        await state.set(job.last_run_key, times.format_time(run.due))
        if job.every is None:
            await state.delete(job.key)
            await state.delete(job.last_run_key)
        delivered.append(run)
    return Round(delivered=tuple(delivered), failed=tuple(failed), unreadable=tuple(unreadable))


def _run(job: jobs.Job, now: dt.datetime) -> Run:
    moment, missed = times.latest(job.due, job.every, now) if job.every else (job.due, 0)
    key = f"{job.agent}/{job.id}@{times.format_time(moment)}"
    return Run(key=key, agent=job.agent, job=job.id, note=job.note, due=moment, missed=missed)


async def _sweep(state: contract.State, pairs: Mapping[str, Any], job_keys: Container[str]) -> None:
    """Delete what an interrupted round left behind: jobs that have finished, and run times of deleted jobs."""
    for key in pairs:
        agent, _, agent_key = key.partition("/")
        kind, _, job_id = agent_key.partition("/")
        if kind in ("job", "ran") and f"{agent}/job/{job_id}" not in job_keys:
            await state.delete(key)
