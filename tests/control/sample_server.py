"""An upstream server for tests: store it, record the tools that it lists, and approve them."""

from __future__ import annotations

from typing import Any

from tests.plugins.upstream import listing
from toolbelt.control import writing
from toolbelt.control.servers import approvals, decisions, upstream_servers
from toolbelt.core import catalog
from toolbelt.store import snapshots

OPERATOR = writing.by("olive", via="command")


CONNECTION = {"url": "https://files.example/mcp"}


READ = listing.tool("read", "Read a file.", {"path": {"type": "string"}})


WRITE = listing.tool("write", "Write a file.", {"path": {"type": "string"}})


def add(name: str = "files", **options: Any) -> None:
    upstream_servers.add(OPERATOR, name, CONNECTION, **options)


def record(*tools: dict[str, Any], name: str = "files", **answer: Any) -> upstream_servers.RecordedTools:
    return upstream_servers.record(OPERATOR, name, upstream_servers.ServerListing(tools=tools, **answer))


def stored_tool(key: str) -> catalog.Tool:
    return snapshots.catalog().tools[key]


def shown_digests(name: str = "files") -> dict[str, str]:
    return {change.key: change.version_hash for change in upstream_servers.review(name).to_review}


def approve_all(name: str = "files", **options: Any) -> decisions.Approved:
    return decisions.approve(OPERATOR, shown_digests(name), **options, plugin=name)


def only_change(name: str = "files") -> approvals.Change:
    (change,) = upstream_servers.review(name).changes
    return change


def problem_messages(recorded: upstream_servers.RecordedTools) -> list[str]:
    return [str(problem) for problem in recorded.problems]
