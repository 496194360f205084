"""Calls that wait until their client repeats them with an answer, which may arrive in any process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import structlog

from toolbelt import conf
from toolbelt.core import limits
from toolbelt.mcp import elicitation, exchanges, input_required, ongoing_call, protocol, request_head
from toolbelt.runtime import calls, threads
from toolbelt.runtime.calls import open_questions

# How long the outcome of an ended call is kept for its client to fetch, in seconds.
OUTCOME_TTL = 60.0
# How often a call that continues for another process checks whether its client is gone, and that process for its end.
POLL_SECONDS = 0.25
KEEP_ALIVE_SECONDS = limits.KEEP_ALIVE_SECONDS
# How long after the call's time limit its outcome may arrive, in seconds.
LATE_SECONDS = 10.0

_log = structlog.get_logger(__name__)
# Keeps references to tasks that nothing else references.
_delivering: set[asyncio.Task[None]] = set()


def park(
    parked_calls: dict[str, input_required.ParkedCall],
    call: ongoing_call.OngoingCall,
    task: asyncio.Task[calls.Answer],
    client: input_required.RetryingClient,
    required: input_required.Required,
    result: input_required.Result,
) -> dict[str, Any]:
    """Keep a call until its client repeats it, and return the result that contains the question."""
    key = elicitation.key_of(call.head, required.id)
    parked = parked_calls[key] = input_required.ParkedCall(call, task, client, result)
    loop = asyncio.get_running_loop()
    task.add_done_callback(lambda _: loop.call_later(OUTCOME_TTL, parked_calls.pop, key, None))

    def resume_elsewhere(key: str) -> None:
        if parked_calls.pop(key, None) is not None:
            delivery = asyncio.create_task(_deliver(parked_calls, parked, key))
            _delivering.add(delivery)
            delivery.add_done_callback(_delivering.discard)

    client.resume_elsewhere, client.give_up = resume_elsewhere, task.cancel
    return input_required.waiting(required, call)


async def fetch(
    exchange: exchanges.Exchange,
    message: protocol.Message,
    head: request_head.RequestHead,
    key: str,
    answer: Mapping[str, Any],
) -> exchanges.Reply | None:
    """Answer a question that another process waits for, and return the result of the call there."""
    if not await elicitation.answer_elsewhere(key, answer):
        raise input_required.not_open()
    disconnected = asyncio.create_task(exchanges.wait_for_disconnect(exchange.receive))
    end = time.monotonic() + conf.CALL_SECONDS + LATE_SECONDS
    last_sent = time.monotonic()
    try:
        while not (text := await threads.run(open_questions.outcome, key)):
            if text is None or time.monotonic() > end:
                fault = protocol.ProtocolError(
                    protocol.INTERNAL_ERROR, "The process that ran this call has ended."
                )
                return await exchange.refused(fault)
            if head.takes_events and time.monotonic() > last_sent + KEEP_ALIVE_SECONDS:
                last_sent = time.monotonic()
                await exchange.send_messages([b": still at work\n\n"])
            await asyncio.wait({disconnected}, timeout=POLL_SECONDS)
            if disconnected.done():
                exchange.note(499)
                return None
    finally:
        disconnected.cancel()
        # The process that runs the call sees that no client waits for it.
        await asyncio.shield(threads.run(open_questions.remove, key))
    outcome = json.loads(text)
    if "error" in outcome:
        error = outcome["error"]
        return await exchange.refused(
            protocol.ProtocolError(error["code"], error["message"], data=error["data"])
        )
    if not exchange.is_begun:
        return exchange.reply(message, outcome["result"])
    await exchange.send_part(protocol.event(protocol.answer(message.id, outcome["result"])), more=False)
    exchange.note(200)
    return None


async def _deliver(
    parked_calls: dict[str, input_required.ParkedCall], parked: input_required.ParkedCall, key: str
) -> None:
    """Store the outcome of a call for the process that received the answer, as long as that process waits for it."""
    call, task, client = parked.call, parked.task, parked.client
    try:
        while not task.done() and client.required is None:
            await asyncio.wait({task}, timeout=POLL_SECONDS)
            if not task.done() and await threads.run(open_questions.outcome, key) is None:
                task.cancel()
                return
        if client.required is not None:
            question = park(parked_calls, call, task, client, client.required, parked.result)
            outcome: dict[str, Any] = {"result": question}
        else:
            outcome = await _outcome(parked)
        await threads.run(open_questions.set_outcome, key, json.dumps(outcome))
    except Exception:
        task.cancel()
        _log.exception("outcome of a call not handed on", tool=call.call.tool)


async def _outcome(parked: input_required.ParkedCall) -> dict[str, Any]:
    try:
        result = await input_required.result_of(parked.task, parked.call, parked.result, is_modern=True)
    except protocol.ProtocolError as fault:
        return {"error": {"code": fault.code, "message": fault.message, "data": fault.data}}
    return {"result": result}
