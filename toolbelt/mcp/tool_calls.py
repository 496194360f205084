"""The responses to ``tools/call``: a message, or a stream if a notification comes before the result."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Mapping
from typing import Any

from toolbelt import conf
from toolbelt.core import errors, limits, meta_tools
from toolbelt.mcp import (
    elicitation,
    exchanges,
    input_required,
    list_changes,
    logging,
    ongoing_call,
    protocol,
    request_head,
    results,
    revisions,
    streams,
    waiting_calls,
)
from toolbelt.runtime import calls, threads
from toolbelt.runtime.calls import open_questions
from toolbelt.runtime.surfaces import tool_lists

KEEP_ALIVE_SECONDS = limits.KEEP_ALIVE_SECONDS
# How long a call runs before its client's connection is watched, in seconds.
WATCH_AFTER = 0.1

_LOADING = frozenset({meta_tools.LOAD, meta_tools.UNLOAD})


async def answer(
    exchange: exchanges.Exchange,
    head: request_head.RequestHead,
    message: protocol.Message,
    revision: revisions.Revision,
    listed: request_head.RequestHead,
) -> exchanges.Reply | None:
    """Return the reply to ``tools/call``, or None if it was sent already.

    ``listed`` is the head without the session that only this request names: that of the client's lists.
    """
    tool, arguments = message.params.get("name"), message.params.get("arguments")
    if not isinstance(tool, str):
        raise protocol.ProtocolError(protocol.INVALID_PARAMS, "params.name must be the name of a tool.")
    if arguments is not None and not isinstance(arguments, dict):
        raise protocol.ProtocolError(protocol.INVALID_PARAMS, "params.arguments must be a JSON object.")
    before = await exchange.current_list(head, may_grow=not revision.is_modern)
    if before.is_stale:
        # The agent's permissions cannot be checked now.
        return exchange.reply(message, _for_revision(results.of(calls.unchecked(), tool), revision))
    call = ongoing_call.OngoingCall(
        head=head,
        bearer=before.bearer,
        call=calls.Call(
            key=head.key._replace(request_id=exchange.request_id),
            tool=tool,
            arguments=arguments or {},
            by_dispatch=before.tools.form != "list",
            keeps_call_tool=before.tools.is_constant,
            told=await exchange.shared.constant_lists.told(head) if before.tools.is_constant else frozenset(),
            by_host=True,
            wait=conf.APPROVAL_WAIT,
        ),
        progress_token=protocol.progress_token(message) if head.takes_events else None,
        contexts=exchange.shared.contexts,
        context=before.context,
    )
    result = functools.partial(
        _result, exchange=exchange, call=call, revision=revision, before=before, head=listed
    )
    return await run(exchange, message, revision, call, result)


async def run(
    exchange: exchanges.Exchange,
    message: protocol.Message,
    revision: revisions.Revision,
    call: ongoing_call.OngoingCall,
    result: input_required.Result,
) -> exchanges.Reply | None:
    """Run a call, or continue one that its client repeats. Return the reply, or None if it was sent already.

    ``result`` makes the result for the client from the answer.
    """
    repeated = (
        input_required.read(message.params, call) if revision.is_modern else input_required.RepeatedCall()
    )
    if repeated.id:
        return await _resume(exchange, message, revision, call, result, repeated)
    call.round = repeated.round
    call.client = _client(exchange, call, message, revision, repeated)
    task = exchange.shared.running.begin(call, message.id)
    return await _follow(exchange, message, revision, call, task, result)


async def _follow(
    exchange: exchanges.Exchange,
    message: protocol.Message,
    revision: revisions.Revision,
    call: ongoing_call.OngoingCall,
    task: asyncio.Task[calls.Answer],
    result: input_required.Result,
) -> exchanges.Reply | None:
    """Return the reply with the result of the call, or with the question that it waits for; None if it was sent."""
    client = call.client
    is_parked = False
    disconnected: asyncio.Task[None] | None = None
    task.add_done_callback(lambda _: call.wakeup.set())
    try:
        while not task.done():
            is_awake = await _wait(
                call.wakeup, KEEP_ALIVE_SECONDS if disconnected is not None else WATCH_AFTER
            )
            if disconnected is None and not task.done():
                disconnected = asyncio.create_task(exchanges.wait_for_disconnect(exchange.receive))
                disconnected.add_done_callback(lambda _: call.wakeup.set())
                if not is_awake:
                    continue
            if disconnected is not None and disconnected.done() and not task.done():
                if revision.is_modern or call.is_waiting:
                    # A client of this era cancels a request by disconnecting. What waits for approval has not begun,
                    # and a client that gave up calls again.
                    task.cancel()
                # Earlier clients cancel explicitly; otherwise the call continues, because its effect may matter.
                if isinstance(client, elicitation.StreamClient):
                    client.leave()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
                exchange.note(499)
                return None
            if isinstance(client, input_required.RetryingClient) and client.required is not None:
                is_parked = True
                question = waiting_calls.park(
                    exchange.shared.parked, call, task, client, client.required, result
                )
                return await _end(exchange, message, question)
            if not task.done() and call.head.takes_events:
                await exchange.send_messages(call.take_messages() or [b": still at work\n\n"])
        if call.log is not None:
            await call.log.settle()
        if messages := call.take_messages():
            await exchange.send_messages(messages)
        final_result = await input_required.result_of(task, call, result, is_modern=revision.is_modern)
        return await _end(exchange, message, final_result)
    finally:
        if disconnected is not None:
            disconnected.cancel()
        if revision.is_modern and not is_parked:
            # Its client does not read, or this server ends: no one receives the result.
            task.cancel()


async def _resume(
    exchange: exchanges.Exchange,
    message: protocol.Message,
    revision: revisions.Revision,
    call: ongoing_call.OngoingCall,
    result: input_required.Result,
    repeated: input_required.RepeatedCall,
) -> exchanges.Reply | None:
    """Continue a call that waits for this answer, in this process or in another one."""
    key = elicitation.key_of(call.head, repeated.id)
    refusal = await threads.run(call.refusal)
    # Only now: if that fails, the call keeps waiting.
    parked = exchange.shared.parked.pop(key, None)
    if refusal is not None:
        if parked is not None:
            parked.task.cancel()
        await threads.run(open_questions.remove, key)
        return exchange.reply(message, await result(refusal))
    if parked is None:
        return await waiting_calls.fetch(exchange, message, call.head, key, repeated.answer)
    parked.call.progress_token = call.progress_token
    parked.client.required = None
    parked.call.wakeup.clear()
    exchange.shared.questions.resolve(key, repeated.answer)
    return await _follow(exchange, message, revision, parked.call, parked.task, result)


def _client(
    exchange: exchanges.Exchange,
    call: ongoing_call.OngoingCall,
    message: protocol.Message,
    revision: revisions.Revision,
    repeated: input_required.RepeatedCall,
) -> ongoing_call.Client | None:
    """Return the client as a tool's server may ask and notify it; None if it can receive neither."""
    questions = exchange.shared.questions
    # The specification has no questions during a completion.
    may_ask = call.call.method != protocol.COMPLETE
    if revision.is_modern:
        modes = elicitation.modes(message.meta.get(protocol.CAPABILITIES)) if may_ask else frozenset()
        level = message.meta.get(protocol.LOG_LEVEL)
        level = logging.check_level(level) if level is not None and call.head.takes_events else ""
        if not modes and not level:
            return None
        log = call.log = logging.Log(call.head, call.notify, level)
        return input_required.RetryingClient(
            questions,
            call,
            revision.name,
            modes,
            repeated.resumed,
            level,
            log.on_message if level else _ignore,
        )
    if not call.head.takes_events:
        return None
    modes = list_changes.modes_in(call.head.client_session) if may_ask else frozenset()
    log = call.log = logging.Log(call.head, call.notify)
    return elicitation.StreamClient(questions, call.head, revision.name, modes, call.request, log.on_message)


def _ignore(message: Mapping[str, Any]) -> None:
    """Ignore a log message."""


async def _wait(wakeup: asyncio.Event, seconds: float) -> bool:
    """Wait until the event is set, and clear it. Return False after the timeout."""
    try:
        async with asyncio.timeout(seconds):
            await wakeup.wait()
    except TimeoutError:
        return False
    wakeup.clear()
    return True


async def _result(
    answer: calls.Answer,
    *,
    exchange: exchanges.Exchange,
    call: ongoing_call.OngoingCall,
    revision: revisions.Revision,
    before: tool_lists.ListAnswer,
    head: request_head.RequestHead,
) -> Mapping[str, Any]:
    """Return the result of a call, with changes that its client may not know."""
    server = exchange.shared
    is_constant = before.tools.is_constant
    if is_constant:
        # What the model was told belongs to the conversation that its call names.
        head = call.head
    try:
        state = streams.StreamState.of(head, may_grow=not revision.is_modern)
        now = (await server.current_list(state)).tools
    except (protocol.ProtocolError, errors.ToolbeltError):
        # The token has been revoked, for example, but the tool has run.
        now = before.tools
    if is_constant:
        notice = await server.constant_lists.notice(head, now) if now.is_constant else ""
        return _for_revision(results.with_notice(results.of(answer, call.tool_name), notice), revision)
    if now.digest != before.tools.digest and call.tool_name in _LOADING and not revision.is_modern:
        await _notify_of_loading(exchange, head, now)
    notice = exchange.shared.list_tracker.notice(head, now)
    return _for_revision(results.with_notice(results.of(answer, call.tool_name), notice), revision)


def _for_revision(result: Mapping[str, Any], revision: revisions.Revision) -> Mapping[str, Any]:
    if not revision.is_modern:
        # In earlier revisions, structured content must be an object.
        if isinstance(result.get("structuredContent", {}), dict):
            return result
        return {name: value for name, value in result.items() if name != "structuredContent"}
    return results.modern(result)


async def _notify_of_loading(
    exchange: exchanges.Exchange, head: request_head.RequestHead, now: tool_lists.ToolList
) -> None:
    """Notify the client that loading changed its list: on its own stream if it has one, or before the result."""
    server = exchange.shared
    state = streams.StreamState.of(head, may_grow=True)
    if server.streams.has_stream(state, head.client_session):
        await server.streams.compare_lists(head.agent)
    elif head.takes_events:
        await exchange.send_messages([protocol.notification(protocol.LIST_CHANGED)])


async def _end(
    exchange: exchanges.Exchange, message: protocol.Message, result: Mapping[str, Any]
) -> exchanges.Reply | None:
    """Return the reply with a result, or send it as the last event of a stream."""
    exchange.has_failed = bool(result.get("isError"))
    if not exchange.is_begun:
        return exchange.reply(message, result)
    await exchange.send_part(protocol.event(protocol.answer(message.id, result)), more=False)
    exchange.note(200)
    return None
