"""The owners of connections to upstream servers: everyone, an agent, or a session of an agent."""

from __future__ import annotations

from typing import Literal

from toolbelt.core import request_key

# The key of the connection that everyone shares, and that lists the tools for operators.
EVERYBODY = ""

Scope = Literal["shared", "agent", "session"]


def agent_of(key: str) -> str:
    """Return the agent that holds the connection with this key; empty for the one that everyone shares."""
    return key.partition(" ")[2].partition("/")[0]


def key(scope: Scope, caller: request_key.RequestKey, client: str = "") -> str:
    """Return the key of the connection of this scope that a request uses.

    ``client`` is a digest of an MCP client's own session (its Mcp-Session-Id and token), empty for other clients. A
    request without any session uses the connection of its agent.
    """
    if scope == "shared":
        return EVERYBODY
    if scope == "session" and caller.session:
        return f"session {caller.agent}/{caller.session}"
    if scope == "session" and client:
        return f"client {caller.agent}/{client}"
    return f"agent {caller.agent}"
