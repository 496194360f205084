"""A server that counts its calls. ``python counting.py LIBRARY PORT`` serves it at /mcp, built with that library."""

import sys
from typing import Any

library, port = sys.argv[1], int(sys.argv[2])
options: dict[str, Any]
if library == "mcp1":  # the official SDK's 1.x line
    from mcp.server.fastmcp import FastMCP

    server, options = FastMCP("counting", port=port), {"transport": "streamable-http"}
elif library == "mcp2":  # the official SDK
    from mcp.server.mcpserver import MCPServer

    server, options = MCPServer("counting"), {"transport": "streamable-http", "port": port}
elif library == "fastmcp":
    from fastmcp import FastMCP

    server, options = FastMCP("counting"), {"transport": "http", "port": port, "show_banner": False}
else:
    sys.exit(f"unknown library: {library}")

calls: list[int] = []


@server.tool()
def count() -> int:
    """Count the calls of this process."""
    calls.append(1)
    return len(calls)


if __name__ == "__main__":
    server.run(**options)
