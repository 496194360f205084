"""Which tools does the scheduler offer, and what does each answer?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from toolbelt import RuntimeAPI, ToolDefinition, ToolError, ToolPlugin
from toolbelt.plugins.builtin.scheduler import jobs, times, toolkit


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


TOOLS = (
    ToolDefinition(
        name=toolkit.SCHEDULE,
        title="Schedule a note",
        description="Have a note delivered to you later: once, or again and again.",
        input_schema={
            "type": "object",
            "properties": {
                "when": {
                    "type": "string",
                    "minLength": 1,
                    "description": "ISO 8601 with a zone, such as 2030-05-01T09:00:00+02:00, or 'in 10 minutes'.",
                },
                "note": {
                    "type": "string",
                    "minLength": 1,
                    "description": "What to be told, in words that stand alone.",
                },
                "every": {
                    "type": "string",
                    "minLength": 1,
                    "description": "Again after each such interval, from one minute to 366 days: '1 day', '2 weeks'.",
                },
            },
            "required": ["when", "note"],
            "additionalProperties": False,
        },
        annotations={
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": False,
        },
    ),
    ToolDefinition(
        name=toolkit.LIST,
        title="List schedules",
        description="List what is scheduled, the next first, and the time that it is now.",
        input_schema={"type": "object", "properties": {}, "additionalProperties": False},
        annotations={"readOnlyHint": True, "openWorldHint": False},
    ),
    ToolDefinition(
        name=toolkit.CANCEL,
        title="Cancel a schedule",
        description="Cancel one schedule for good.",
        input_schema={
            "type": "object",
            "properties": {"id": {"type": "string", "minLength": 1, "maxLength": 64}},
            "required": ["id"],
            "additionalProperties": False,
        },
        annotations={
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": False,
        },
    ),
)


class Scheduler(ToolPlugin):
    """Notes with a time, per agent. A worker calls ``worker.run_due`` to deliver them."""

    name = "scheduler"
    namespace = "scheduler"
    title = "Scheduler"
    description = "Notes that an agent is told later, once or again and again."
    category = "scheduling"
    tools = TOOLS
    toolkits = (toolkit.Reminders(),)

    def __init__(self, now: Callable[[], dt.datetime] = _now) -> None:
        self._now = now

    async def initialize(self, runtime: RuntimeAPI) -> None:
        self._runtime = runtime

    async def execute(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        diary, now = jobs.Diary(self._runtime), self._now()
        match tool_name:
            case toolkit.SCHEDULE:
                every = times.interval(args["every"]) if "every" in args else None
                return _told(await diary.add(args["note"], times.when(args["when"], now), every))
            case toolkit.LIST:
                return {"now": times.written(now), "schedules": [_told(job) for job in await diary.all()]}
            case toolkit.CANCEL:
                await diary.cancel(args["id"])
                return {"id": args["id"], "cancelled": True}
        raise ToolError(f"scheduler has no tool {tool_name!r}.")


def _told(job: jobs.Job) -> dict[str, Any]:
    every = {"every_seconds": int(job.every.total_seconds())} if job.every else {}
    return {"id": job.id, "due": times.written(job.due), "note": job.note, **every}
