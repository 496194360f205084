"""The lists with which sessions of MCP clients began, where those never change.

Any process finds a list by the digest in the id of its session. It is stored when a session begins, and shared by all
that begin with the same list.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from toolbelt.core import schema
from toolbelt.runtime import availability
from toolbelt.runtime.surfaces import tool_lists
from toolbelt.store import first_lists as stored_lists


class FirstTool(NamedTuple):
    """A tool of a list: its name, its definition's digest (empty for meta-tools), and its JSON."""

    name: str
    digest: str
    json: str


FirstList = tuple[FirstTool, ...]


def key(agent: str, digest: str) -> str:
    """Return where a list is kept: only clients of the agent that it was made for find it."""
    return hashlib.sha256(schema.canonical([agent, digest]).encode()).hexdigest()


@availability.raised_as_unavailable()
def put(key: str, tools: tool_lists.ToolList) -> FirstList:
    """Keep a list, and return it. Raise errors.Unavailable."""
    digests = {name: digest.hex() for name, digest in tools.callable.items()}
    first = tuple(
        FirstTool(name, digests.get(name, ""), encoded.decode())
        for name, encoded in zip(tools.names, tools.tools, strict=True)
    )
    stored_lists.put(key, schema.canonical(first))
    return first


@availability.raised_as_unavailable()
def get(key: str) -> FirstList | None:
    """Return the list; None if it is no longer kept. Raise errors.Unavailable."""
    stored = stored_lists.get(key)
    return None if stored is None else tuple(FirstTool(*tool) for tool in json.loads(stored))
