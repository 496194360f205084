"""What does a server list, through all pages, as far as anybody reads on?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolbelt.core import errors, schema
from toolbelt.plugins.upstream import cleaning, importing, limits

if TYPE_CHECKING:
    import mcp


class NoTools(errors.ToolbeltError):
    """The operator's to put right: what answers there is a server of something else."""

    code = "no-tools"

    def __init__(self) -> None:
        super().__init__("The server says that it has no tools.")


async def walk(client: mcp.Client, bounds: limits.Limits) -> importing.Answer:
    """Read page after page; one that comes again, or one too many, ends it, and so does the tool that is too much."""
    if client.server_capabilities.tools is None:
        raise NoTools
    tools: list[Mapping[str, Any]] = []
    cursor: str | None = None
    seen: set[str | None] = set()
    size, is_cut = 0, False
    while not is_cut:
        seen.add(cursor)
        page = await client.list_tools(cursor=cursor)
        for listed in page.tools:
            tool = listed.model_dump(by_alias=True, mode="json", exclude_none=True)
            size += len(schema.canonical(tool))
            if len(tools) >= bounds.tools or size > bounds.bytes:
                is_cut = True
                break
            tools.append(tool)
        cursor = page.next_cursor
        if cursor is None:
            break
        is_cut = is_cut or cursor in seen or len(seen) >= bounds.pages
    said = client.server_info
    named = " ".join(filter(None, (said.name, said.version))) if said else ""
    return importing.Answer(
        tools=tuple(tools),
        is_complete=not is_cut,
        protocol=client.protocol_version,
        server=cleaning.line(named, importing.LONGEST_TITLE),
        problems=(_cut(len(tools)),) if is_cut else (),
    )


def _cut(kept: int) -> errors.Problem:
    message = f"The server lists more than can be taken: the first {kept} tools were, and none was retired."
    return errors.Problem(path="tools", message=message)
