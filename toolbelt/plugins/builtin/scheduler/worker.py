"""What is due, and has it been delivered?

Rules, before the code:

1. A due time is delivered once. It counts as delivered when ``deliver`` has returned; if that raises, the job stays
   due and is tried again in the next round. The other jobs go on.
2. Times that were missed, because no worker ran, are one run: the latest of them, which says how many came before it.
   The times stay where they are: what is due every hour at ten past is so after a pause, too.
3. One worker at a time: whoever calls :func:`run_due` sees to that, with a lock. A worker that dies after delivering
   and before noting it delivers again, under the same ``Run.key``; a ``deliver`` that keeps keys makes that once too.
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
    """A job at one of its due times. ``missed`` is how many times before it passed without a run."""

    key: str
    agent: str
    job: str
    note: str
    due: dt.datetime
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did: runs that were delivered, those that failed with why, and keys that cannot be read."""

    delivered: tuple[Run, ...] = ()
    failed: tuple[tuple[Run, Exception], ...] = ()
    unreadable: tuple[str, ...] = ()


Deliver = Callable[[Run], Awaitable[None]]


async def due(state: contract.State, now: dt.datetime) -> list[Run]:
    """Give what is due, of all agents, the longest due first."""
    found, _ = jobs.read(await state.list())
    return [_run(job, now) for job in found if job.due <= now]


async def run_due(state: contract.State, now: dt.datetime, deliver: Deliver) -> Round:
    """Deliver what is due, and note it. ``state`` is the scheduler's own, ``now`` has a zone."""
    pairs = await state.list()
    found, unreadable = jobs.read(pairs)
    await _sweep(state, pairs, {job.key for job in found} | set(unreadable))
    delivered: list[Run] = []
    failed: list[tuple[Run, Exception]] = []
    for job in found:
        # Cancelled while others were delivered: looked at once more, right before.
        if job.due > now or await state.get(job.key) is None:
            continue
        run = _run(job, now)
        try:
            await deliver(run)
        except Exception as error:  # whatever it is, it is the run's alone
            failed.append((run, error))
            continue
        await state.set(job.progress, times.written(run.due))
        if job.every is None:
            await state.delete(job.key)
            await state.delete(job.progress)
        delivered.append(run)
    return Round(delivered=tuple(delivered), failed=tuple(failed), unreadable=tuple(unreadable))


def _run(job: jobs.Job, now: dt.datetime) -> Run:
    moment, missed = times.latest(job.due, job.every, now) if job.every else (job.due, 0)
    key = f"{job.agent}/{job.id}@{times.written(moment)}"
    return Run(key=key, agent=job.agent, job=job.id, note=job.note, due=moment, missed=missed)


async def _sweep(state: contract.State, pairs: Mapping[str, Any], kept: Container[str]) -> None:
    """Forget what an earlier round left when it broke off: jobs that ran for good, and the progress of none."""
    for key in pairs:
        agent, _, rest = key.partition("/")
        kind, _, job_id = rest.partition("/")
        if kind in ("job", "ran") and f"{agent}/job/{job_id}" not in kept:
            await state.delete(key)
