"""A server built with the official SDK's 1.x line. ``python counting.py PORT`` serves it at /mcp."""

import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("counting", port=int(sys.argv[1]))
calls: list[int] = []


@server.tool()
def count() -> int:
    """Count the calls of this process."""
    calls.append(1)
    return len(calls)


if __name__ == "__main__":
    server.run("streamable-http")
