"""The ASGI application of the MCP endpoint: each request gets a response or a stream of events.

The list of tools is answered from cached bytes, after one query; everything that needs more queries runs in a thread.
Requests are logged and counted through `exchanges.ServerContext`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from toolbelt.core import errors, limits, request_key, strict_json
from toolbelt.mcp import (
    exchanges,
    listening,
    listing,
    logging,
    named_sessions,
    ongoing_call,
    prompts_and_resources,
    protocol,
    request_head,
    resources,
    revisions,
    tool_calls,
)
from toolbelt.plugins.upstream import connection_owners
from toolbelt.runtime import availability, telemetry
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import process_connections

_log = structlog.get_logger(__name__)


class Server:
    """The endpoint of one server process, for one event loop."""

    def __init__(
        self, answers: prepared_answers.PreparedAnswers | None, server_context: exchanges.ServerContext
    ) -> None:
        self._shared = exchanges.Shared(answers, server_context)
        self.streams = self._shared.streams

    async def __call__(
        self, scope: Mapping[str, Any], receive: exchanges.Receive, send: exchanges.Send
    ) -> None:
        """Answer a request to the endpoint."""
        exchange = exchanges.Exchange(self._shared, scope, receive, send)
        try:
            reply = await _answered(exchange)
        except protocol.ProtocolError as refusal:
            reply = await exchange.refused(refusal)
        except errors.ToolbeltError as error:
            # Errors that only the database reveals, such as an agent that does not exist.
            reply = await exchange.refused(_as_protocol_error(error))
        except exchanges.StalledError:
            # The server closes the connection.
            exchange.note(499)
            return
        except Exception as error:
            if (unavailable := availability.classify(error)) is not None:
                fault = _as_protocol_error(unavailable)
            else:
                _log.exception("MCP request failed", request=f"{scope['method']} {scope['path']}")
                fault = protocol.ProtocolError(
                    protocol.INTERNAL_ERROR, "It was logged for an operator.", status=500
                )
            reply = await exchange.refused(fault)
        if reply is not None:
            await exchange.send_whole(reply)


async def _answered(exchange: exchanges.Exchange) -> exchanges.Reply | None:
    """Return the reply, or None if it was sent already."""
    head = exchange.shared.heads.read(exchange.scope)
    match head.method:
        case "GET":
            return await listening.open_stream(exchange, head)
        case "DELETE":
            return await _leave(exchange, head)
    message = exchange.message = await _read(exchange, head)
    revision = exchange.revision = protocol.revision(message, head.protocol_headers)
    if message.id is None:
        return await _handle_notification(exchange, head, message)
    if message.method not in revision.requests:
        raise protocol.ProtocolError(
            protocol.METHOD_NOT_FOUND, f"The method {message.method[:100]} is not supported."
        )
    listed, head = head, named_sessions.with_session(head, message) if revision.is_modern else head
    with telemetry.mcp_request(message.method, _target(message), message.meta) as fail:
        match message.method.partition("/"):
            case "tools", _, "call":
                reply = await tool_calls.answer(exchange, head, message, revision, listed)
            case "tools", _, _:
                reply = await listing.tools(exchange, head, message, revision)
            case "subscriptions", _, _:
                reply = await listening.subscribe(exchange, head, message)
            case "resources", _, _:
                reply = await resources.answer(exchange, head, message, revision)
            case "prompts" | "completion", _, _:
                reply = await prompts_and_resources.answer(exchange, head, message, revision)
            case _:
                reply = await _answer_of_connection(exchange, head, message)
        if exchange.has_failed:
            fail("tool_error")
        return reply


async def _read(exchange: exchanges.Exchange, head: request_head.RequestHead) -> protocol.Message:
    """Return the message in the body. Raise ProtocolError."""
    if head.length is None or head.length > limits.UNAUTHENTICATED_BODY_BYTES:
        await exchange.admitted(head)
    try:
        return protocol.read(strict_json.read(await exchange.read(head), exchange.shared.depth))
    except strict_json.UnreadableError as error:
        raise protocol.ProtocolError(protocol.PARSE_ERROR, str(error)) from error


async def _answer_of_connection(
    exchange: exchanges.Exchange, head: request_head.RequestHead, message: protocol.Message
) -> exchanges.Reply:
    """Return the reply to a request that is about the connection itself."""
    match message.method:
        case "initialize":
            return await listing.initialize(exchange, head, message)
        case "server/discover":
            return await listing.discover(exchange, head, message)
        case "logging/setLevel":
            await exchange.admitted(head)
            await logging.set_level(head, message.params.get("level"))
            return exchange.reply(message, {})
        case "ping":
            await exchange.admitted(head)
            return exchange.reply(message, {})
    raise NotImplementedError(
        f"{message.method} is among the requests of a revision, but has no answer here."
    )


def _target(message: protocol.Message) -> str:
    """Return the tool or prompt that a request names, for its trace."""
    name = message.params.get("name")
    return name if isinstance(name, str) else ""


async def _handle_notification(
    exchange: exchanges.Exchange, head: request_head.RequestHead, message: protocol.Message
) -> exchanges.Reply:
    """Process a notification, or the answer to a question."""
    await exchange.admitted(head)
    if exchange.revision is not None and not exchange.revision.is_modern:
        if message.method == protocol.CANCELLED_BY_CLIENT:
            await exchange.shared.running.cancel(head, message.params.get("requestId"))
        elif not message.method:
            await exchange.shared.questions.answer(head, message.params)
    return exchanges.Reply(202, b"", exchange.bearer, ())


async def _leave(exchange: exchanges.Exchange, head: request_head.RequestHead) -> exchanges.Reply:
    """End a session (DELETE)."""
    await exchange.admitted(head)
    if head.protocol_headers.version in revisions.MODERN:
        raise protocol.ProtocolError(
            protocol.INVALID_REQUEST,
            "This revision has no sessions.",
            status=405,
            headers=request_head.ALLOW_POST,
        )
    exchange.shared.streams.leave(head.token, head.agent, head.client_session)
    exchange.shared.list_tracker.forget(head)
    exchange.shared.constant_lists.forget(head)
    if client := ongoing_call.client_session(head):
        await process_connections.end_owner(
            connection_owners.key("session", request_key.RequestKey(head.agent), client)
        )
    # The session's id would keep working, which it must not after a successful response.
    raise protocol.ProtocolError(
        protocol.INVALID_REQUEST,
        "The connections of this session to upstream servers are closed. The server stores nothing else of a session.",
        status=405,
        headers=request_head.ALLOW,
    )


def _as_protocol_error(error: errors.ToolbeltError) -> protocol.ProtocolError:
    if isinstance(error, errors.NotFound):
        return protocol.ProtocolError(protocol.INVALID_REQUEST, str(error), status=404)
    if isinstance(error, errors.Unavailable):
        return protocol.ProtocolError(
            protocol.INTERNAL_ERROR,
            str(error),
            status=error.status,
            data={"code": error.code, "retryAfter": error.retry_after},
            headers=((b"retry-after", b"%d" % error.retry_after),),
        )
    return protocol.ProtocolError(protocol.INVALID_PARAMS, str(error))
