"""An upstream server for tests: it is stored, lists tools, and has them reviewed."""

from __future__ import annotations

from typing import Any

from tests.plugins.upstream import listing
from toolbelt.control import writing
from toolbelt.control.servers import approvals, decisions, upstream_servers
from toolbelt.core import catalog
from toolbelt.store import snapshots

OPERATOR = writing.by("olive", via="command")


REACHED = {"url": "https://files.example/mcp"}


READ = listing.tool("read", "Read a file.", {"path": {"type": "string"}})


WRITE = listing.tool("write", "Write a file.", {"path": {"type": "string"}})


def add(name: str = "files", **given: Any) -> None:
    upstream_servers.add(OPERATOR.actor, name, REACHED, **given)


def listed(*tools: dict[str, Any], name: str = "files", **said: Any) -> upstream_servers.RecordedTools:
    return upstream_servers.record(OPERATOR.actor, name, upstream_servers.Answer(tools=tools, **said))


def stored(key: str) -> catalog.Tool:
    return snapshots.catalog().tools[key]


def shown(name: str = "files") -> dict[str, str]:
    return {change.key: change.shown for change in upstream_servers.review(name).waiting}


def approve_all(name: str = "files", **given: Any) -> decisions.Approved:
    return decisions.approve(OPERATOR.actor, name, shown(name), **given)


def only(name: str = "files") -> approvals.Change:
    (change,) = upstream_servers.review(name).changes
    return change


def told(recorded: upstream_servers.RecordedTools) -> list[str]:
    return [str(problem) for problem in recorded.problems]
