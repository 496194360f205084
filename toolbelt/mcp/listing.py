"""The responses to ``tools/list``, ``initialize`` and ``server/discover``."""

from __future__ import annotations

import dataclasses
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
    revision: revisions.Revision,
) -> exchanges.Reply:
    """Answer ``tools/list``, from cached bytes if possible."""
    after = protocol.cursor(message)
    may_grow = not revision.is_modern
    current = await exchange.current_list(head, may_grow=may_grow)
    if current.tools.form == "start":
        current = await _of_session(exchange, head, current)
    for_apps = bool(current.tools.for_apps) and apps.is_host(head, message, revision)
    if current.tools.is_constant:
        exchange.shared.constant_lists.record(head, current.tools)
    else:
        exchange.shared.list_tracker.record(head, current.tools)
    exchange.shared.record_sent(head, current.tools, "tools", may_grow=may_grow)
    if current.is_stale:
        return exchanges.Reply(
            200,
            _framed(current.tools, after, revision, for_apps=for_apps, is_stale=True),
            exchange.bearer,
            (*exchanges.JSON, exchanges.STALE_HEADER),
            protocol.id_as_json(message.id) + b"}",
        )
    if after is None:
        context_use.add(head.agent, current.tools.tokens)
    cache_key = (revision.is_modern, for_apps)
    body = current.tools.framed.get(cache_key) if after is None else None
    if body is None:
        body = _framed(current.tools, after, revision, for_apps=for_apps)
        if after is None:
            current.tools.framed[cache_key] = body
    return exchanges.Reply(200, body, exchange.bearer, tail=protocol.id_as_json(message.id) + b"}")


async def initialize(
    exchange: exchanges.Exchange, head: request_head.RequestHead, message: protocol.Message
) -> exchanges.Reply:
    """Answer ``initialize``."""
    current = await exchange.current_list(head, may_grow=True)
    result: dict[str, Any] = {
        "protocolVersion": revisions.negotiate(message.params.get("protocolVersion")),
        "capabilities": _capabilities(current.tools),
        "serverInfo": results.SERVER,
    }
    if current.tools.instructions:
        result["instructions"] = current.tools.instructions
    # Also of a list that never changes, which is found by it.
    digests = exchanges.digests(current.tools)._replace(tools=current.tools.digest)
    capabilities = message.params.get("capabilities")
    session = list_changes.new_session(
        *digests,
        modes=elicitation.modes(capabilities),
        shows_screens=apps.shows_screens(capabilities),
    )
    if current.tools.is_constant and not current.is_stale:
        await exchange.shared.constant_lists.begin(head._replace(client_session=session), current.tools)
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
        "capabilities": _capabilities(current.tools),
    }
    if current.tools.instructions:
        result["instructions"] = current.tools.instructions
    return exchange.reply(message, result, is_stale=current.is_stale)


def _capabilities(tools: tool_lists.ToolList) -> dict[str, Any]:
    return _CAPABILITIES | {"tools": {}} if tools.is_constant else _CAPABILITIES


async def _of_session(
    exchange: exchanges.Exchange, head: request_head.RequestHead, current: tool_lists.ListAnswer
) -> tool_lists.ListAnswer:
    """Return the list with which the client's session began; without a session, the one that never has other tools."""
    if not list_changes.digest_in(head.client_session):
        return await exchange.current_list(head, may_grow=False)
    begun = await exchange.shared.constant_lists.begun(head)
    if begun is None:
        return current
    # Not framed, because the tools for apps may have changed.
    tools = dataclasses.replace(
        current.tools,
        names=tuple([tool.name for tool in begun]),
        tools=tuple([tool.json.encode() for tool in begun]),
        framed={},
    )
    return current._replace(tools=tools)


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
