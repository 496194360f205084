"""How is ``tools/call`` answered? With one message, or with a stream as soon as there is something to tell before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from toolbelt.core import errors, meta_tools
from toolbelt.mcp import calling, exchanges, heads, protocol, results, revisions, streams
from toolbelt.runtime import availability, calls, tool_lists

# How often a call that takes long says that it is still at work, in seconds.
PING = 15.0

_LOADING = frozenset({meta_tools.LOAD, meta_tools.UNLOAD})


async def answer(
    exchange: exchanges.Exchange,
    head: heads.Head,
    message: protocol.Message,
    id_: protocol.Id,
    revision: revisions.Revision,
) -> exchanges.Reply | None:
    """Run the call, and answer with what it comes to; None where that was sent already."""
    tool, arguments = message.params.get("name"), message.params.get("arguments")
    if not isinstance(tool, str):
        raise protocol.Fault(protocol.INVALID_PARAMS, "params.name is the name of a tool.")
    if arguments is not None and not isinstance(arguments, dict):
        raise protocol.Fault(protocol.INVALID_PARAMS, "params.arguments is a JSON object.")
    before = await exchange.found(head, may_grow=not revision.is_modern)
    if before.is_stale:
        # What the agent may call cannot be checked now.
        return exchange.reply(message, _with_about(results.of(calls.unchecked(), tool), revision))
    call = calling.Call(
        head=head,
        bearer=before.bearer,
        request_id=exchange.request_id,
        tool=tool,
        arguments=arguments or {},
        by_dispatch=before.tools.form == "dispatch",
        progress_token=protocol.progress_token(message) if head.takes_events else None,
        known=exchange.shared.standings,
    )
    task = exchange.shared.running.begin(call, id_)
    gone = asyncio.create_task(exchanges.gone(exchange.receive))
    try:
        while not task.done():
            await _wait(call, {task, gone})
            if gone.done() and not task.done():
                if revision.is_modern:
                    # That is how a client of this era takes a request back.
                    task.cancel()
                # An earlier one says so; without that the call goes on, for what it does may count.
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
                exchange.note(499)
                return None
            if not task.done() and head.takes_events:
                await exchange.tell(call.heard() or [b": still at work\n\n"])
        for said in call.heard():
            await exchange.tell([said])
        return await _end(exchange, message, await _outcome(exchange, call, task, revision, before))
    finally:
        gone.cancel()
        if revision.is_modern:
            # Its client does not read, or this server ends: nobody gets the answer.
            task.cancel()


async def _wait(call: calling.Call, until: set[asyncio.Task[Any]]) -> None:
    """Wait until the call is over, its client is gone, there is progress to tell, or a sign of life is due."""
    news = asyncio.create_task(call.news.wait())
    try:
        await asyncio.wait({*until, news}, timeout=PING, return_when=asyncio.FIRST_COMPLETED)
    finally:
        news.cancel()


async def _outcome(
    exchange: exchanges.Exchange,
    call: calling.Call,
    task: asyncio.Task[calls.Answer],
    revision: revisions.Revision,
    before: tool_lists.Found,
) -> Mapping[str, Any] | protocol.Fault:
    """Give the result of a call that is over, with what its client may not know yet."""
    head, server = call.head, exchange.shared
    try:
        answer = task.result()
    except asyncio.CancelledError:
        return protocol.Fault(protocol.CANCELLED, "The request was cancelled.")
    except protocol.Fault as fault:
        return fault
    except Exception as error:
        if availability.classify(error) is None:
            raise
        # Only what comes before the tool runs asks the database: the tool has not run.
        answer = calls.unchecked()
    try:
        now = (await server.found(head, may_grow=not revision.is_modern)).tools
    except (protocol.Fault, errors.ToolbeltError):
        # It opens nothing any more; but what was called has run.
        now = before.tools
    if now.digest != before.tools.digest and call.tool in _LOADING and not revision.is_modern:
        await _tell_of_loading(exchange, head, now)
    news = exchange.shared.told.news(head, now)
    try:
        result = results.with_news(results.of(answer, call.named), news)
    except protocol.Fault as fault:
        return protocol.Fault(fault.code, f"{fault.message} {news}".strip())
    return _with_about(result, revision)


def _with_about(result: Mapping[str, Any], revision: revisions.Revision) -> Mapping[str, Any]:
    if not revision.is_modern:
        # Earlier revisions know structures that are objects, and no others.
        if isinstance(result.get("structuredContent", {}), dict):
            return result
        return {name: value for name, value in result.items() if name != "structuredContent"}
    return {**result, **exchanges.MODERN, "_meta": {**result.get("_meta", {}), **exchanges.ABOUT}}


async def _tell_of_loading(exchange: exchanges.Exchange, head: heads.Head, now: tool_lists.ToolList) -> None:
    """Tell that a list grew or shrank by loading: over the client's own stream, or else ahead of the result."""
    server = exchange.shared
    seen = streams.Seen(head.token, head.agent, head.session, True)
    if server.streams.reach(seen, head.client_session):
        await server.streams.look(head.agent)
    elif head.takes_events:
        await exchange.tell([protocol.event(protocol.notification(protocol.LIST_CHANGED))], as_is=True)


async def _end(
    exchange: exchanges.Exchange, message: protocol.Message, outcome: Mapping[str, Any] | protocol.Fault
) -> exchanges.Reply | None:
    """Answer with what a call came to: as the last event, if there is a stream."""
    if isinstance(outcome, protocol.Fault):
        return await exchange.refused(outcome)
    if not exchange.is_begun:
        return exchange.reply(message, outcome)
    await exchange.say(protocol.event(protocol.answer(message.id, outcome)), more=False)
    exchange.note(200)
    return None
