"""The owners of connections to upstream servers: everyone, an agent, or a session of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# The key of the connection that everyone shares, and that lists the tools for operators.
EVERYBODY = ""

Scope = Literal["shared", "agent", "session"]


def agent_of(key: str) -> str:
    """Return the agent that holds the connection with this key; empty for the one that everyone shares."""
    return key.partition(" ")[2].partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOwner:
    """A caller: an agent, and its session if there is one.

    ``client`` is a digest of an MCP client's own session (its Mcp-Session-Id and token), empty for other clients.
    """

    agent: str = ""
    session: str = ""
    client: str = ""

    def key(self, scope: Scope) -> str:
        """Return the key of the connection that this owner uses with connections of this scope.

        A call without any session uses the connection of its agent.
        """
        if scope == "shared":
            return EVERYBODY
        if scope == "session" and self.session:
            return f"session {self.agent}/{self.session}"
        if scope == "session" and self.client:
            return f"client {self.agent}/{self.client}"
        return f"agent {self.agent}"
