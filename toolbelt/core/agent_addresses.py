"""The paths at which MCP clients reach an agent: ``/mcp/AGENT``, and ``/mcp/AGENT/s/SESSION`` for one conversation."""

from __future__ import annotations

import re
import urllib.parse

ENDPOINT = "/mcp"

_PATH = re.compile(r"/mcp/([A-Za-z0-9_.-]{1,64})(?:/s/(.+?))?/?", re.DOTALL)


def read(path: str) -> tuple[str, str | None] | None:
    """Return the agent and the session of a path; None if no agent is there."""
    match = _PATH.fullmatch(path)
    return None if match is None else (match[1], match[2])


def agent_of(resource: str, origin: str) -> str:
    """Return the agent that a resource (RFC 8707) of this origin names; empty if it names none.

    It is compared byte for byte: another spelling of the same address is another resource.
    """
    return agent_of_any_host(resource) if resource.startswith(f"{origin}{ENDPOINT}/") else ""


def agent_of_any_host(resource: str) -> str:
    """Return the agent that a resource names whose host was checked before; empty if it names none."""
    if not resource.isascii() or not resource.isprintable() or "?" in resource or "#" in resource:
        return ""
    found = read(urllib.parse.urlsplit(resource).path)
    return found[0] if found is not None else ""
