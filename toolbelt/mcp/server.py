"""Who answers an MCP client? An ASGI application: one request, one answer or one stream of events.

The list of tools is answered from bytes that are kept, after one look at the database; everything that has to ask more
goes through a thread. What comes of it is logged and counted by whoever mounted this (`exchanges.Surroundings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from toolbelt.core import errors, strict_json
from toolbelt.mcp import exchanges, heads, listening, listing, protocol, resources, revisions, tool_calls
from toolbelt.runtime import availability, ready

# A larger body is read only for those whose token opens something.
MOST_FOR_STRANGERS = 100_000

_log = structlog.get_logger(__name__)


class Server:
    """The endpoint of one server process, for one event loop."""

    def __init__(self, answers: ready.Answers | None, around: exchanges.Surroundings) -> None:
        self._shared = exchanges.Shared(answers, around)
        self.streams = self._shared.streams

    async def __call__(
        self, scope: Mapping[str, Any], receive: exchanges.Receive, send: exchanges.Send
    ) -> None:
        """Answer a request that is for here."""
        exchange = exchanges.Exchange(self._shared, scope, receive, send)
        try:
            reply = await _answered(exchange)
        except protocol.Fault as refusal:
            reply = await exchange.refused(refusal)
        except errors.ToolbeltError as error:
            # What only the database knows to be wrong: an agent that is not there, for one.
            reply = await exchange.refused(_of(error))
        except exchanges.Stalled:
            # Whoever serves this closes the connection.
            exchange.note(499)
            return
        except Exception as error:
            if (unavailable := availability.classify(error)) is not None:
                fault = _of(unavailable)
            else:
                _log.exception("MCP request failed", request=f"{scope['method']} {scope['path']}")
                fault = protocol.Fault(protocol.INTERNAL_ERROR, "It was logged for an operator.", status=500)
            reply = await exchange.refused(fault)
        if reply is not None:
            await exchange.send_whole(reply)


async def _answered(exchange: exchanges.Exchange) -> exchanges.Reply | None:
    """Answer; None where that was sent already."""
    head = exchange.shared.heads.read(exchange.scope)
    match head.method:
        case "GET":
            return await listening.open_stream(exchange, head)
        case "DELETE":
            return await _leave(exchange, head)
    if head.length is None or head.length > MOST_FOR_STRANGERS:
        await exchange.admitted(head)
    body = await exchange.read(head)
    try:
        document = strict_json.read(body, exchange.shared.depth)
    except strict_json.Unreadable as error:
        raise protocol.Fault(protocol.PARSE_ERROR, str(error)) from error
    message = exchange.message = protocol.read(document)
    revision = exchange.revision = protocol.revision(message, head.about)
    if message.id is None:
        return await _noticed(exchange, head, message)
    if message.method not in revision.requests:
        raise protocol.Fault(protocol.METHOD_NOT_FOUND, f"There is no {message.method[:100]} here.")
    match message.method:
        case "tools/list":
            return await listing.tools(exchange, head, message, message.id, revision)
        case "tools/call":
            return await tool_calls.answer(exchange, head, message, message.id, revision)
        case "subscriptions/listen":
            return await listening.subscribe(exchange, head, message, message.id)
        case "initialize":
            return await listing.shake_hands(exchange, head, message)
        case "server/discover":
            return await listing.discover(exchange, head, message)
    if message.method.startswith("resources/"):
        return await resources.answer(exchange, head, message, revision)
    await exchange.admitted(head)
    return exchange.reply(message, {})


async def _noticed(
    exchange: exchanges.Exchange, head: heads.Head, message: protocol.Message
) -> exchanges.Reply:
    """Take a notification, or an answer to what nobody asked."""
    await exchange.admitted(head)
    if (
        message.method == protocol.CANCELLED_BY_CLIENT
        and exchange.revision
        and not exchange.revision.is_modern
    ):
        await exchange.shared.running.cancel(head, message.params.get("requestId"))
    return exchanges.Reply(202, b"", exchange.bearer, ())


async def _leave(exchange: exchanges.Exchange, head: heads.Head) -> exchanges.Reply:
    await exchange.admitted(head)
    if head.about.version in revisions.MODERN:
        raise protocol.Fault(
            protocol.INVALID_REQUEST,
            "This revision has no sessions.",
            status=405,
            headers=heads.ALLOW_POST,
        )
    exchange.shared.streams.leave(head.token, head.agent, head.client_session)
    exchange.shared.told.forget(head)
    # Its id would go on working, which after any other answer it must not.
    raise protocol.Fault(
        protocol.INVALID_REQUEST,
        "Nothing is kept of a session here: there is nothing to end.",
        status=405,
        headers=heads.ALLOW,
    )


def _of(error: errors.ToolbeltError) -> protocol.Fault:
    if isinstance(error, errors.NotFound):
        return protocol.Fault(protocol.INVALID_REQUEST, str(error), status=404)
    if isinstance(error, errors.Unavailable):
        return protocol.Fault(
            protocol.INTERNAL_ERROR,
            str(error),
            status=error.status,
            data={"code": error.code, "retryAfter": error.retry_after},
            headers=((b"retry-after", b"%d" % error.retry_after),),
        )
    return protocol.Fault(protocol.INVALID_PARAMS, str(error))
