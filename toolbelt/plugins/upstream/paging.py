"""What does a server list, through all pages, as far as anybody reads on?

The client wants every tool of a page to be as MCP has it, or refuses the page. Whether a tool can be had is asked of
each for itself (see :mod:`importing`), so a page that is refused is asked for again, and read as it comes.
"""

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


class NoList(errors.ToolbeltError):
    """The server's owner's to put right: what it answers is no list of tools at all."""

    code = "tool-unavailable"

    def __init__(self) -> None:
        super().__init__("The server answered what is no list of tools.")


async def walk(client: mcp.Client, bounds: limits.Limits) -> importing.Answer:
    """Read page after page; one that comes again, or one too many, ends it, and so does the tool that is too much."""
    if client.server_capabilities.tools is None:
        raise NoTools
    tools: list[Mapping[str, Any]] = []
    cursor: str | None = None
    seen: set[str | None] = set()
    size, strays, is_cut = 0, 0, False
    while not is_cut:
        seen.add(cursor)
        page, following = await _page(client, cursor)
        for tool in page:
            if not isinstance(tool, Mapping):
                strays += 1
                continue
            size += len(schema.canonical(tool))
            if len(tools) >= bounds.tools or size > bounds.bytes:
                is_cut = True
                break
            tools.append(tool)
        cursor = following
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
        problems=(*([_cut(len(tools))] if is_cut else ()), *([_strays(strays)] if strays else ())),
    )


async def _page(client: mcp.Client, cursor: str | None) -> tuple[list[Any], str | None]:
    """Give what stands on a page, and where the next one is."""
    import pydantic

    try:
        page = await client.list_tools(cursor=cursor)
    except pydantic.ValidationError:
        return await _page_as_it_comes(client, cursor)
    tools = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in page.tools]
    return tools, page.next_cursor


async def _page_as_it_comes(client: mcp.Client, cursor: str | None) -> tuple[list[Any], str | None]:
    import mcp_types
    from mcp.shared import dispatcher

    request = mcp_types.ListToolsRequest(params=mcp_types.PaginatedRequestParams(cursor=cursor))
    sent = request.model_dump(by_alias=True, mode="json", exclude_none=True)
    options: dispatcher.CallOptions = {}
    # Below send_request, which holds each answer to the revision's own model whatever type it is asked for.
    client.session._stamp(sent, options)
    answer = await client.session._dispatcher.send_raw_request(sent["method"], sent.get("params"), options)
    tools, following = answer.get("tools"), answer.get("nextCursor")
    if not isinstance(tools, list) or not isinstance(following, str | None):
        raise NoList
    return tools, following


def _strays(count: int) -> errors.Problem:
    left_out = f"{count} entries that are no tools at all, and they were"
    if count == 1:
        left_out = "1 entry that is no tool at all, and it was"
    message = f"The server lists {left_out} left out."
    return errors.Problem(path="tools", message=message)


def _cut(kept: int) -> errors.Problem:
    message = f"The server lists more than can be taken: the first {kept} tools were, and none was retired."
    return errors.Problem(path="tools", message=message)
