"""What do the tests of upstream servers share? A server that is stored, lists tools, and has them looked at."""

from __future__ import annotations

from typing import Any

from tests.plugins.upstream import listing
from toolbelt.control import actors, reviews, upstreams
from toolbelt.core import catalog
from toolbelt.store import snapshots

OPERATOR = actors.Actor(name="olive", via="command")


REACHED = {"url": "https://files.example/mcp"}


READ = listing.tool("read", "Read a file.", {"path": {"type": "string"}})


WRITE = listing.tool("write", "Write a file.", {"path": {"type": "string"}})


def add(name: str = "files", **given: Any) -> None:
    upstreams.add(OPERATOR, name, REACHED, **given)


def listed(*tools: dict[str, Any], name: str = "files", **said: Any) -> upstreams.Recorded:
    return upstreams.record(OPERATOR, name, upstreams.Answer(tools=tools, **said))


def stored(key: str) -> catalog.Tool:
    return snapshots.catalog().tools[key]


def shown(name: str = "files") -> dict[str, str]:
    return {change.key: change.shown for change in upstreams.review(name).waiting}


def approve_all(name: str = "files", **given: Any) -> upstreams.Approved:
    return upstreams.approve(OPERATOR, name, shown(name), **given)


def only(name: str = "files") -> reviews.Change:
    (change,) = upstreams.review(name).changes
    return change


def told(recorded: upstreams.Recorded) -> list[str]:
    return [str(problem) for problem in recorded.problems]
