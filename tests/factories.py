"""Factories of minimal valid rows for tests, which bypass `toolbelt.control`."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from toolbelt import models
from toolbelt.core import tool_versions
from toolbelt.store import snapshots


def plugin(name: str = "git", **columns: Any) -> models.Plugin:
    return models.Plugin.objects.create(name=name, **columns)


def tool(key: str = "run", **columns: Any) -> models.Tool:
    return models.Tool.objects.create(key=key, **columns)


def toolkit(key: str = "dev", *members: models.Tool, **columns: Any) -> models.Toolkit:
    row = models.Toolkit.objects.create(key=key, **columns)
    for position, member in enumerate(members):
        models.Member.objects.create(toolkit=row, tool=member, position=position)
    return row


def loadout(name: str = "house", **columns: Any) -> models.Loadout:
    return models.Loadout.objects.create(name=name, **columns)


def agent(key: str = "ada", **columns: Any) -> models.Agent:
    return models.Agent.objects.create(key=key, **columns)


def sub_app(
    key: str = "chat", *, tools: tuple[models.Tool, ...] = (), agents: tuple[models.Agent, ...] = ()
) -> models.SubApp:
    row = models.SubApp.objects.create(key=key)
    for position, bound in enumerate(tools):
        models.SubAppTool.objects.create(sub_app=row, tool=bound, position=position)
    for position, embedded in enumerate(agents):
        models.SubAppAgent.objects.create(sub_app=row, agent=embedded, position=position)
    return row


def call(tool: str = "shell", *, days_ago: int = 0, **columns: Any) -> models.CallRecord:
    fields = {"agent": "ada", "outcome": "ok", "duration_ms": 120, **columns}
    at = timezone.now() - dt.timedelta(days=days_ago)
    return models.CallRecord.objects.create(tool=tool, at=at, **fields)


def facts(tool: str) -> dict[str, Any]:
    """Return what a record of a call has that can be replayed: of a tool in its present version, without a session."""
    version = tool_versions.version(snapshots.catalog().tools[tool])
    return {"state": "", "subagent": "", "dispatched": False, "definition": tool_versions.short(version)}


def everything() -> models.Agent:
    """Create at least one row of every kind of configuration, and return the agent that refers to them."""
    models.Category.objects.create(name="crm")
    status = tool("git__status", plugin=plugin("git", namespace="git"), description="Shows the tree.")
    run = tool("run", annotations={"destructiveHint": True}, output_schema={"type": "object"})
    dev = toolkit(
        "dev", status, run, tool_notes={"run": "Take care."}, triggers=[{"name": "x", "any": ["y"]}]
    )
    models.Member.objects.filter(tool=run).update(options={"shell": "sh"})
    loadout("house", parent="minimal", plugins=["git"])
    ada = agent("ada", kind="plan", max_tools=5, session_loadouts=["house"])
    models.AgentTool.objects.create(agent=ada, tool=run, options={"shell": "sh"})
    models.AgentToolkit.objects.create(agent=ada, toolkit=dev, initial=True)
    models.ToolkitSwitch.objects.create(agent=ada, toolkit=dev, on=True)
    models.ToolOverride.objects.create(agent=ada, tool=status, on=False)
    sub_app("chat", tools=(run,), agents=(ada,))
    return ada
