"""A server built with FastMCP. ``python counting.py PORT`` serves it at /mcp."""

import sys

from fastmcp import FastMCP

server = FastMCP("counting")
calls: list[int] = []


@server.tool()
def count() -> int:
    """Count the calls of this process."""
    calls.append(1)
    return len(calls)


if __name__ == "__main__":
    server.run("http", port=int(sys.argv[1]), show_banner=False)
