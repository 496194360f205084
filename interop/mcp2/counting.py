"""A server built with the official SDK. ``python counting.py PORT`` serves it at /mcp."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("counting")
calls: list[int] = []


@server.tool()
def count() -> int:
    """Count the calls of this process."""
    calls.append(1)
    return len(calls)


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[1]))
