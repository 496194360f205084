"""The first steps of setting up an installation, computed from its content: they are not stored."""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.control.config import installation
from toolbelt.control.reports import queries
from toolbelt.core import tool_versions
from toolbelt.store import call_records, credentials, snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSteps:
    """The steps that are done: a server was added, its tools are reviewed, there is a toolkit, there is an agent
    (``agent`` is the key of the first), and it has connected. ``is_empty``: nothing at all is configured, so the demo
    can be loaded. docs/first-hour.md walks the same steps.
    """

    has_server: bool
    is_reviewed: bool
    has_toolkit: bool
    agent: str
    is_connected: bool
    is_empty: bool


def load() -> FirstSteps | None:
    """Return the first steps, or None if an agent has called a tool, because nothing is left to do then."""
    if call_records.are_any():
        return None
    stored, agents = snapshots.catalog(), queries.agent_keys()
    servers = {plugin.name for plugin in stored.plugins.values() if plugin.runner != "code"}
    tools = [tool for tool in stored.tools.values() if tool.plugin in servers and not tool.retired]
    return FirstSteps(
        has_server=bool(servers),
        is_reviewed=bool(tools) and not any(map(tool_versions.awaits_review, tools)),
        has_toolkit=bool(stored.toolkits),
        agent=agents[0] if agents else "",
        is_connected=credentials.is_any_agent_connected(),
        is_empty=not installation.is_configured(),
    )
