"""Reading of a server's lists, through all pages up to a limit.

The official client refuses a page if one of its tools is not valid. Whether a tool can be imported is checked for each
tool (see :mod:`importing`), so of a refused page, what the server sent is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolbelt.core import catalog, errors, schema
from toolbelt.core.imported import cleaning, importing
from toolbelt.plugins.upstream import limits

if TYPE_CHECKING:
    import mcp


METHOD_NOT_FOUND = -32601
MAX_REASON_LENGTH = 300
# After how many entries other tasks get their turn on the event loop: about every 5 ms.
YIELD_EVERY = 50
# By kind: the field of the answer that holds the list.
_NON_TOOLS: Mapping[catalog.Kind, str] = {
    "prompt": "prompts",
    "resource": "resources",
    "template": "resourceTemplates",
}
_METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
_WORDS = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resourceTemplates": "resource templates",
}
# Why a list is read no further.
_TOO_MANY = "The server lists too many {}"
_TOO_MANY_PAGES = "The server lists its {{}} on more than {} pages"
_LOOP = "The server's list of {} does not end, because a page names an earlier one as the next"
_NO_TEXT = "The server's list of {} continues at a cursor that is no text"


class NoToolsError(errors.ToolbeltError):
    """For an operator to fix: the server is not what was meant."""

    code = "no-tools"

    def __init__(self) -> None:
        super().__init__("The server says that it has no tools, prompts or resources.")


class NoListError(errors.ToolbeltError):
    """For the server's owner to fix: its answer is not a list of tools, prompts and so on."""

    code = "tool-unavailable"

    def __init__(self, words: str = "tools") -> None:
        super().__init__(f"The server did not return a list of {words}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The entries of a list that were read. ``truncation`` is why there may be more; empty if there are none.
    ``invalid_entries`` counts the elements that are not objects.
    """

    entries: tuple[Mapping[str, Any], ...] = ()
    truncation: str = ""
    invalid_entries: int = 0


# The entries of a page, and the cursor of the next one, which is not checked.
Page = Callable[[str | None], Awaitable[tuple[Iterable[Any], Any]]]
# The last answers of a server to each method that lists, as it sent them.
Sent = dict[str, Mapping[str, Any]]


async def read_lists(client: mcp.Client, sent: Sent, bounds: limits.Limits) -> importing.ServerListing:
    """Return the server's tools, prompts, resources and templates. Raise NoToolsError if it has no tools."""
    offered = client.server_capabilities
    if offered.tools is None and offered.prompts is None and offered.resources is None:
        raise NoToolsError
    tools = Listed()
    if offered.tools is not None:
        tools = await _read_pages(functools.partial(_tools, client, sent), bounds.tools, bounds)
    problems = [
        *([_truncated(tools)] if tools.truncation else ()),
        *_invalid_entries("tools", tools.invalid_entries),
    ]
    non_tools: dict[catalog.Kind, tuple[Mapping[str, Any], ...]] = {}
    truncated: set[catalog.Kind] = set()
    for kind, listed in zip(
        _NON_TOOLS,
        await asyncio.gather(*(_listed_kind(client, sent, kind, bounds) for kind in _NON_TOOLS)),
        strict=True,
    ):
        section = _NON_TOOLS[kind]
        if isinstance(listed, errors.Problem):
            problems.append(listed)
            continue
        non_tools[kind] = listed.entries
        problems += _invalid_entries(section, listed.invalid_entries)
        if listed.truncation:
            truncated.add(kind)
            problems.append(_truncated(listed, section))
    info = client.server_info
    name = " ".join(filter(None, (info.name, info.version))) if info else ""
    return importing.ServerListing(
        tools=tools.entries,
        non_tools=non_tools,
        truncated_kinds=frozenset(truncated),
        is_complete=not tools.truncation,
        protocol=client.protocol_version,
        server=cleaning.line(name, importing.MAX_TITLE_LENGTH),
        problems=tuple(problems),
    )


async def _listed_kind(
    client: mcp.Client, sent: Sent, kind: catalog.Kind, bounds: limits.Limits
) -> Listed | errors.Problem:
    """Return the prompts, resources or templates of a server, or a problem if it does not list them: its tools are
    imported anyway.
    """
    from mcp.shared.exceptions import MCPError

    offered = client.server_capabilities
    if (offered.prompts if kind == "prompt" else offered.resources) is None:
        return Listed()
    section = _NON_TOOLS[kind]
    try:
        async with asyncio.timeout(bounds.listing):
            page = functools.partial(_non_tools, client, sent, section)
            return await _read_pages(page, bounds.non_tools, bounds)
    except TimeoutError:
        return _not_listed(section, f"no answer within {bounds.listing:g} s")
    except NoListError as error:
        return _not_listed(section, str(error))
    except MCPError as error:
        # A server with resources need not have templates.
        return Listed() if error.code == METHOD_NOT_FOUND else _not_listed(section, error.message)


async def _read_pages(page_at: Page, maximum: int, bounds: limits.Limits) -> Listed:
    """Read all pages, until one repeats or a limit of pages, entries or bytes is reached."""
    entries: list[Mapping[str, Any]] = []
    cursor: str | None = None
    cursors: set[str | None] = set()
    size, invalid_entries, truncation = 0, 0, ""
    while not truncation:
        cursors.add(cursor)
        page, following = await page_at(cursor)
        for number, entry in enumerate(page, 1):
            if not number % YIELD_EVERY:
                # The event loop may be the ASGI server's.
                await asyncio.sleep(0)
            if not isinstance(entry, Mapping):
                invalid_entries += 1
                continue
            size += len(schema.canonical(entry))
            if len(entries) >= maximum or size > bounds.bytes:
                truncation = _TOO_MANY
                break
            entries.append(entry)
        if following is None or following is False:
            break
        if not isinstance(following, str):
            truncation = truncation or _NO_TEXT
        elif following in cursors:
            truncation = truncation or _LOOP
        elif len(cursors) >= bounds.pages:
            truncation = truncation or _TOO_MANY_PAGES.format(bounds.pages)
        cursor = following
    return Listed(entries=tuple(entries), truncation=truncation, invalid_entries=invalid_entries)


async def _tools(client: mcp.Client, sent: Sent, cursor: str | None) -> tuple[Iterable[Any], Any]:
    """Return the tools of a page, and the cursor of the next one."""
    try:
        page = await client.list_tools(cursor=cursor)
    except ValueError:
        # Not valid, or nested too deeply.
        return _sent(sent, "tools")
    sent.pop(_METHODS["tools"], None)
    return (
        tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in page.tools
    ), page.next_cursor


async def _non_tools(
    client: mcp.Client, sent: Sent, section: str, cursor: str | None
) -> tuple[Iterable[Any], Any]:
    lists = {
        "prompts": client.list_prompts,
        "resources": client.list_resources,
        "resourceTemplates": client.list_resource_templates,
    }
    with contextlib.suppress(ValueError):
        await lists[section](cursor=cursor)
    return _sent(sent, section)


def _sent(sent: Sent, section: str) -> tuple[list[Any], Any]:
    """Return the entries of the last page that the server sent, and the cursor of the next one."""
    answer = sent.pop(_METHODS[section], {})
    entries, following = answer.get(section), answer.get("nextCursor")
    if not isinstance(entries, list):
        raise NoListError(_WORDS[section])
    return entries, following


def _invalid_entries(section: str, count: int) -> Iterator[errors.Problem]:
    if not count:
        return
    words = _WORDS[section]
    invalid = f"{count} entries that are not {words}; they were"
    if count == 1:
        invalid = f"1 entry that is not a {words.removesuffix('s')}; it was"
    yield errors.Problem(path=section, message=f"The server's list contains {invalid} ignored.")


def _truncated(listed: Listed, section: str = "tools") -> errors.Problem:
    imported = f"only the first {len(listed.entries)} were imported, and none was retired."
    return errors.Problem(path=section, message=f"{listed.truncation.format(_WORDS[section])}: {imported}")


def _not_listed(section: str, reason: str) -> errors.Problem:
    words = _WORDS[section]
    reason = cleaning.line(reason, MAX_REASON_LENGTH)
    message = f"The server did not list its {words}; the stored ones were kept: {reason}"
    return errors.Problem(path=section, message=message)
