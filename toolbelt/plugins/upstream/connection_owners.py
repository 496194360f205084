"""The owners of connections to upstream servers: everyone, an agent, or a session of an agent.

At a server where each person signs in, the person is a part of the owner, in the first word of its key: no other part
of the key is there, whatever clients call their sessions.
"""

from __future__ import annotations

from typing import Literal

from toolbelt.core import request_key

# The key of the connection that everyone shares, and that lists the tools for operators.
EVERYBODY = ""

Scope = Literal["shared", "agent", "session"]


def agent_of(key: str) -> str:
    """Return the agent that holds the connection with this key; empty for the one that everyone shares."""
    return key.partition(" ")[2].partition("/")[0]


def person_of(key: str) -> int | None:
    """Return the person (by primary key) for whom the connection with this key is; None if it is for anyone."""
    person = key.partition(" ")[0].partition(":")[2]
    return int(person) if person else None


def shared(person: int | None) -> str:
    """Return the key of the connection that all requests share, or all of one person."""
    return EVERYBODY if person is None else f"shared:{person} "


def key(scope: Scope, caller: request_key.RequestKey, client: str = "", *, person: int | None = None) -> str:
    """Return the key of the connection of this scope that a request uses.

    ``client`` is a digest of an MCP client's own session (its Mcp-Session-Id and token), empty for other clients. A
    request without any session uses the connection of its agent. ``person`` is for whom it is, if that matters.
    """
    if person is not None:
        if scope == "shared":
            return shared(person)
        kind, _, owner = key(scope, caller, client).partition(" ")
        return f"{kind}:{person} {owner}"
    if scope == "shared":
        return EVERYBODY
    if scope == "session" and caller.session:
        return f"session {caller.agent}/{caller.session}"
    if scope == "session" and client:
        return f"client {caller.agent}/{client}"
    return f"agent {caller.agent}"
