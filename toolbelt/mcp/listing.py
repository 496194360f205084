"""The responses to ``tools/list``, ``initialize`` and ``server/discover``."""

from __future__ import annotations

from typing import Any

from toolbelt.mcp import (
    apps,
    elicitation,
    exchanges,
    list_changes,
    protocol,
    request_head,
    results,
    revisions,
)
from toolbelt.runtime.records import context_use
from toolbelt.runtime.surfaces import tool_lists

_CAPABILITIES: dict[str, Any] = {
    "logging": {},
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
}


async def tools(
    exchange: exchanges.Exchange,
    head: request_head.RequestHead,
    message: protocol.Message,
    id_: protocol.Id,
    revision: revisions.Revision,
) -> exchanges.Reply:
    """Answer ``tools/list``, from cached bytes if possible."""
    after = protocol.cursor(message)
    may_grow = not revision.is_modern
    current = await exchange.current_list(head, may_grow=may_grow)
    for_apps = bool(current.tools.for_apps) and apps.is_host(head, message, revision)
    exchange.shared.list_tracker.record(head, current.tools)
    exchange.shared.record_sent(head, current.tools, "tools", may_grow=may_grow)
    if current.is_stale:
        return exchanges.Reply(
            200,
            _framed(current.tools, after, revision, for_apps=for_apps, is_stale=True),
            exchange.bearer,
            (*exchanges.JSON, exchanges.STALE_HEADER),
            protocol.id_as_json(id_) + b"}",
        )
    if after is None:
        context_use.add(head.agent, current.tools.tokens)
    cache_key = (revision.is_modern, for_apps)
    body = current.tools.framed.get(cache_key) if after is None else None
    if body is None:
        body = _framed(current.tools, after, revision, for_apps=for_apps)
        if after is None:
            current.tools.framed[cache_key] = body
    return exchanges.Reply(200, body, exchange.bearer, tail=protocol.id_as_json(id_) + b"}")


async def initialize(
    exchange: exchanges.Exchange, head: request_head.RequestHead, message: protocol.Message
) -> exchanges.Reply:
    """Answer ``initialize``."""
    current = await exchange.current_list(head, may_grow=True)
    result: dict[str, Any] = {
        "protocolVersion": revisions.negotiate(message.params.get("protocolVersion")),
        "capabilities": _CAPABILITIES,
        "serverInfo": results.SERVER,
    }
    if current.tools.instructions:
        result["instructions"] = current.tools.instructions
    digests = exchanges.digests(current.tools)
    capabilities = message.params.get("capabilities")
    session = list_changes.new_session(
        *digests,
        modes=elicitation.modes(capabilities),
        shows_screens=apps.shows_screens(capabilities),
    )
    reply = exchange.reply(message, result, is_stale=current.is_stale)
    return reply._replace(headers=(*reply.headers, (b"mcp-session-id", session.encode())))


async def discover(
    exchange: exchanges.Exchange, head: request_head.RequestHead, message: protocol.Message
) -> exchanges.Reply:
    """Answer ``server/discover``."""
    current = await exchange.current_list(head, may_grow=False)
    result: dict[str, Any] = {
        **results.MODERN_LIST,
        "supportedVersions": list(revisions.SUPPORTED),
        "capabilities": _CAPABILITIES,
    }
    if current.tools.instructions:
        result["instructions"] = current.tools.instructions
    return exchange.reply(message, result, is_stale=current.is_stale)


def _framed(
    tools: tool_lists.ToolList,
    after: str | None,
    revision: revisions.Revision,
    *,
    for_apps: bool = False,
    is_stale: bool = False,
) -> bytes:
    """Return the response with a page of the list, up to the request's id."""
    page, last = tools.page(after, for_apps=for_apps)
    more = b"" if last is None else b',"nextCursor":"%s"' % protocol.cursor_after(last).encode()
    begin, end = _LIST_AROUND[revision.is_modern, is_stale]
    return b"".join((begin, page, more, end))


def _around(is_modern: bool, is_stale: bool) -> tuple[bytes, bytes]:
    """Return the parts of the response before the tools, and after them up to the request's id."""
    more: dict[str, Any] = {**results.MODERN_LIST} if is_modern else {}
    if is_stale:
        more["_meta"] = {**more.get("_meta", {}), **exchanges.STALE}
    response = protocol.answer(None, {**more, "tools": []})
    head, _, tail = response.partition(b'"tools":[]')
    begin = head.replace(b'"id":null,', b"") + b'"tools":'
    return begin, tail.removesuffix(b"}") + b',"id":'


_LIST_AROUND = {
    (is_modern, is_stale): _around(is_modern, is_stale)
    for is_modern in (True, False)
    for is_stale in (True, False)
}
