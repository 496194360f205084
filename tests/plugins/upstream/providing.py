"""A real MCP server over stdio (the official SDK's) with prompts, resources and templates, run as a program.

``python providing.py DIRECTORY`` writes each request for content to the file ``asked`` in the directory, one per line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

PIXEL = bytes.fromhex("89504e470d0a1a0a")


def made(directory: Path) -> MCPServer:
    server = MCPServer("providing", version="3")

    def log_request(*fields: Any) -> None:
        with (directory / "asked").open("a") as asked:
            asked.write(json.dumps(fields) + "\n")

    @server.tool()
    def echo(text: str) -> str:
        """Return the text."""
        return text

    @server.tool()
    async def announce(ctx: Context[Any]) -> str:
        """Add a prompt and a resource, and notify the client."""

        @server.prompt(name="fresh", description="Is new.")
        def fresh() -> str:
            return "new"

        @server.resource("note://fresh", name="fresh")
        def fresh_note() -> str:
            return "new"

        await ctx.notify_prompts_changed()
        await ctx.notify_resources_changed()
        return "announced"

    @server.tool()
    async def touch(uri: str, ctx: Context[Any]) -> str:
        """Notify the client that a resource was updated."""
        await ctx.notify_resource_updated(uri)
        return "touched"

    @server.prompt(description="Sums something up.")
    def summarize(topic: str, length: str = "short") -> str:
        log_request("prompt", topic, length)
        return f"Sum up {topic}, {length}."

    @server.resource("note://readme", name="readme", mime_type="text/plain", description="What to read.")
    def readme() -> str:
        log_request("resource", "note://readme")
        return "Read me."

    @server.resource("note://pixel", name="pixel", mime_type="image/png")
    def pixel() -> bytes:
        return PIXEL

    @server.resource("db://users/{user_id}", name="user", mime_type="application/json")
    def user(user_id: str) -> str:
        log_request("template", user_id)
        return json.dumps({"id": user_id})

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(ref: Any, argument: Any, context: Any) -> Any:
        import mcp_types

        log_request("complete", argument.name, argument.value)
        return mcp_types.Completion(values=[f"{argument.value}!"], total=1, has_more=False)

    return server


if __name__ == "__main__":
    made(Path(sys.argv[1])).run()
