"""The scheduler plugin: notes that an agent receives later."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from toolbelt import FunctionPlugin, RuntimeAPI, tool
from toolbelt.plugins.builtin.scheduler import jobs, times, toolkit

Text = Annotated[str, Field(min_length=1)]


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class Scheduler(FunctionPlugin):
    """Scheduled notes per agent. A worker calls ``worker.run_due`` to deliver them."""

    def __init__(self, now: Callable[[], dt.datetime] = _now) -> None:
        super().__init__(
            name="scheduler",
            namespace="scheduler",
            title="Scheduler",
            description="Delivers notes to an agent at a later time, once or repeatedly.",
            category="scheduling",
            functions=[self.schedule, self.list_schedules, self.cancel],
            toolkits=[toolkit.Reminders()],
        )
        self._now = now

    @tool(
        title="Schedule a note",
        annotations={
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": False,
        },
    )
    async def schedule(
        self, runtime: RuntimeAPI, when: Text, note: Text, every: Text | SkipJsonSchema[None] = None
    ) -> dict[str, Any]:
        """Schedule a note that is delivered to you later, once or repeatedly.

        Args:
            when: A time in ISO 8601 with a time zone, such as 2030-05-01T09:00:00+02:00, or 'in 10 minutes'.
            note: The text of the note, understandable without context.
            every: The interval at which to repeat it, from one minute to 366 days, such as '1 day' or '2 weeks'.
        """
        agent_jobs = jobs.AgentJobs(runtime)
        interval = times.interval(every) if every is not None else None
        return _as_json(await agent_jobs.add(note, times.parse_time(when, self._now()), interval))

    @tool(name="list", title="List schedules", annotations={"readOnlyHint": True, "openWorldHint": False})
    async def list_schedules(self, runtime: RuntimeAPI) -> dict[str, Any]:
        """List your schedules, soonest first, and the current time."""
        scheduled = await jobs.AgentJobs(runtime).all()
        return {"now": times.format_time(self._now()), "schedules": [_as_json(job) for job in scheduled]}

    @tool(
        title="Cancel a schedule",
        annotations={
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": False,
        },
    )
    async def cancel(
        self, runtime: RuntimeAPI, job_id: Annotated[str, Field(alias="id", min_length=1, max_length=64)]
    ) -> dict[str, Any]:
        """Cancel a schedule permanently."""
        await jobs.AgentJobs(runtime).cancel(job_id)
        return {"id": job_id, "cancelled": True}


def _as_json(job: jobs.Job) -> dict[str, Any]:
    every = {"every_seconds": int(job.every.total_seconds())} if job.every else {}
    return {"id": job.id, "due": times.format_time(job.due), "note": job.note, **every}
