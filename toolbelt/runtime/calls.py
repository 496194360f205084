"""May this call go through, as things stand now, and what does its tool answer? The gate that every call passes,
whichever shell it came by.

A refusal is an answer that the model can read, never a crash. An operator's change counts at once, also in a request
that is under way. Every call and every refusal is recorded, once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import structlog
from asgiref.sync import async_to_sync

from toolbelt import conf
from toolbelt.core import budgets, calls, catalog, dispatch, errors, meta_tools, resolution, schema
from toolbelt.plugins import contract, registry
from toolbelt.runtime import (
    admissions,
    call_slots,
    elicitation,
    feed,
    gates,
    masking,
    plugins,
    record_writer,
    recording,
    secrets,
    snapshots,
    upstream_calls,
    upstream_connections,
)
from toolbelt.runtime import meta_tools as own_tools
from toolbelt.store import databases

# Has a call admitted that the agent's own program runs, and reports its outcome.
admitted = admissions.admitted

_log = structlog.get_logger(__name__)
_places = call_slots.CallSlots()
_META_TOOLS = frozenset(meta_tools.SCHEMAS)

# What is left of a call's time when it counts as over: clocks of threads and loops differ by less.
OVER = 0.05
# How long a call runs, in seconds, before changes are watched on its behalf.
WATCH_AFTER = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a call came to. A tool that answers something else than a mapping has it under ``result``.

    ``is_structured``: the tool's definition says what its answers look like. ``mcp`` is the whole answer of an upstream
    server's tool, as MCP has it, for clients that speak it.
    """

    content: Mapping[str, Any]
    is_structured: bool = False
    mcp: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """Return the answer as a JSON document; a refusal's has ``is_error`` and a code."""
        return {"is_error": False, "content": self.content}


Answer = Result | calls.Refusal


def admit(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
) -> calls.Admission | calls.Refusal:
    """Admit or refuse a call of a tool (not of a meta-tool) against the surface as it is now, without running it."""
    snapshot, _ = snapshots.take(agent, session, request_id, subagent)
    return calls.admit(budgets.resolve(snapshot), tool, arguments, hide_denied=conf.HIDE_DENIED)


def run(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
    progress: upstream_calls.Progress | None = None,
    *,
    by_dispatch: bool = False,
    may_call: Callable[[], object] = lambda: None,
) -> Answer:
    """Run a call of a tool or of a meta-tool, in a thread that may block.

    ``progress`` is called with the progress of an upstream server's tool, on the event loop of those servers. With
    ``by_dispatch``, the agent has ``call_tool`` instead of the meta-tools that load (see toolbelt.core.dispatch).
    ``may_call`` is called directly before the tool runs, in a thread that may block, and raises an error if the caller
    may no longer call, for example because its token was revoked. The error is recorded, and raised here.

    Raise errors.NotFound for an unknown agent and errors.Invalid for malformed ids; anything else is an answer.
    """
    made = recording.Recording(
        agent=agent, tool=tool, arguments=arguments, session=session, request_id=request_id
    )
    prepared = _prepare(gates.Gate(made, subagent, by_dispatch, may_call))
    if not isinstance(prepared, gates.Admitted):
        return prepared
    return async_to_sync(carry_out)(made, prepared, progress)


async def arun(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
    progress: upstream_calls.Progress | None = None,
    *,
    by_dispatch: bool = False,
    may_call: Callable[[], object] = lambda: None,
    look: gates.Look | None = None,
    client: elicitation.Client | None = None,
    client_session: str = "",
) -> Answer:
    """Run a call as :func:`run` does, in an event loop. Cancelling it cancels the tool, too.

    ``client`` is the client behind the call, whose user a tool of an upstream server may have questions for.
    ``client_session`` is a digest of the session that an MCP client has of its own: without a ``session``, the state
    that an upstream server keeps for a connection is that client's.

    With ``look`` the state is looked at from the loop, token included, and threads are taken only for what is not known
    in this process, or takes long.
    """
    made = recording.Recording(
        agent=agent, tool=tool, arguments=arguments, session=session, request_id=request_id
    )
    gate = gates.Gate(made, subagent, by_dispatch, may_call, look)
    await gate.look()
    prepared = _judge_at_once(gate)
    if prepared is None:
        prepared = await gate.in_thread(_prepare, gate)
    if not isinstance(prepared, gates.Admitted):
        return prepared
    return await carry_out(made, prepared, progress, client, client_session)


def judge_again(
    agent: str, tool: str, arguments: Any, session: str | None = None, *, by_dispatch: bool = False
) -> calls.Refusal | None:
    """Return why a call that waited for its user may not go on, as things stand now; in a thread that may block."""
    made = recording.Recording(agent=agent, tool=tool, arguments=arguments, session=session)
    gate = gates.Gate(made, None, by_dispatch, lambda: None)
    try:
        snapshot, resolved, _ = gate.resolve()
        if by_dispatch and tool == meta_tools.CALL:
            named = dispatch.parse_call(resolved, arguments)
            if isinstance(named, calls.Refusal):
                return named
            made.tool, made.arguments = named
            gate.is_dispatched = True
        judged = gate.admit(resolved, snapshot)
        return judged if isinstance(judged, calls.Refusal) else None
    finally:
        databases.release()


async def carry_out(
    made: recording.Recording,
    admitted: gates.Admitted,
    progress: upstream_calls.Progress | None,
    client: elicitation.Client | None = None,
    client_session: str = "",
) -> Answer:
    """Run an admitted call once there is a place for it, and record what it came to."""
    gate = admitted.gate
    ticket = _places.enter(admitted.plugin, conf.CALLS_PER_PLUGIN)
    try:
        if not ticket.done():
            await asyncio.wait_for(asyncio.wrap_future(ticket), admitted.left)
        found = await _unless_blocked(admitted, _execute(admitted, progress, client, client_session))
    except Exception as error:
        return await gate.in_thread(_refused, made, admitted, error)
    except asyncio.CancelledError:
        await asyncio.shield(gate.in_thread(made.end, "cancelled"))
        raise
    finally:
        _places.leave(admitted.plugin, ticket)
    if gate.is_asked_on_a_loop and record_writer.has_room():
        # Nothing of it waits for the database.
        return _answered(made, found, admitted.definition)
    return await gate.in_thread(_answered, made, found, admitted.definition)


async def _execute(
    admitted: gates.Admitted,
    progress: upstream_calls.Progress | None,
    client: elicitation.Client | None,
    client_session: str,
) -> Any:
    check = last_check(admitted)
    if admitted.server is not None:
        context = admitted.context
        features = elicitation.Features(admitted, admitted.server, client)
        if client is not None and client.resumed:
            await features.check_answers()
        return await upstream_calls.call(
            admitted.server,
            admitted.definition,
            admitted.arguments,
            left=features.left,
            holder=upstream_calls.Holder(agent=context.agent, session=context.session, client=client_session),
            in_thread=admitted.gate.in_thread,
            progress=progress,
            check=check,
            features=features,
            method=admitted.method,
        )
    return await plugins.registry().execute(
        admitted.tool, admitted.arguments, call=admitted.context, within=admitted.left, check=check
    )


def last_check(admitted: gates.Admitted) -> Callable[[], Awaitable[None]]:
    """Return what asks the gate again, from the event loop on which the tool is about to run.

    A call may have waited for a place, for a plugin to get ready or for a server to connect. The question goes back to
    the loop that carries the call out: its threads are those in which the database is read for this caller.
    """
    loop = asyncio.get_running_loop()

    async def ask() -> None:
        if not await admitted.gate.is_unchanged():
            await admitted.gate.in_thread(gates.check_again, admitted)

    async def check() -> None:
        if asyncio.get_running_loop() is loop:
            await ask()
            return
        asked = ask()
        try:
            answer = asyncio.run_coroutine_threadsafe(asked, loop)
        except RuntimeError:
            # The caller's loop is closed: no caller waits for the answer, and the tool does not run.
            asked.close()
            raise
        await asyncio.wrap_future(answer)

    return check


async def _unless_blocked(admitted: gates.Admitted, running: Coroutine[Any, Any, Any]) -> Any:
    """Return what ``running`` returns; cancel it and raise gates.DeniedError if its tool is blocked for everyone.

    Like asyncio.timeout this cancels the current task, which costs less than a task for each call.
    """
    loop, caller = asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())
    before = caller.cancelling()
    watching: list[asyncio.Task[gates.DeniedError]] = []
    is_stopped = is_over = False

    def stop(watch: asyncio.Task[gates.DeniedError]) -> None:
        nonlocal is_stopped
        if not watch.cancelled() and not is_over:
            is_stopped = True
            caller.cancel()

    def begin() -> None:
        watching.append(loop.create_task(_wait_until_blocked(admitted)))
        watching[0].add_done_callback(stop)

    # Most calls are over before anybody watches, and cost nothing more.
    later = loop.call_later(WATCH_AFTER, begin)
    try:
        return await running
    except asyncio.CancelledError:
        # It may have been cancelled for another reason as well.
        if not is_stopped or caller.cancelling() > before + 1:
            raise
        raise watching[0].result() from None
    finally:
        is_over = True
        later.cancel()
        if is_stopped:
            caller.uncancel()
        if watching:
            watching[0].cancel()
            await asyncio.wait(watching)


async def _wait_until_blocked(admitted: gates.Admitted) -> gates.DeniedError:
    """Return why the call has to end, as soon as an operator blocks its tool, plugin or a toolkit over it."""
    async with feed.changes(admitted.context.agent) as changes:
        while True:
            try:
                denied = await admitted.gate.in_thread(gates.blocked, admitted)
            except Exception:
                # The database cannot be read, say. It is asked again with the next change.
                _log.exception("running call not judged", tool=admitted.tool)
                denied = None
            if denied is not None:
                return denied
            try:
                await anext(changes)
            except StopAsyncIteration:
                # The server is shutting down, which ends the call in its own way.
                await asyncio.Future()


def _judge_at_once(gate: gates.Gate) -> Answer | gates.Admitted | None:
    """Judge the call of an upstream server's tool on the event loop; None where that takes long, or a thread."""
    known = gate.known()
    if known is None or gate.made.tool in _META_TOOLS or not record_writer.has_room():
        return None
    stored = known[0].catalog
    tool = stored.tools.get(gate.made.tool)
    if tool is None or not schema.is_ready(tool.input_schema):
        return None
    plugin = stored.plugins.get(tool.plugin)
    if plugin is None or not plugin.upstream or upstream_connections.is_left_alone(plugin):
        return None
    try:
        return _judge_tool(gate, *known, is_quick=True)
    except schema.TooComplex:
        return None


def _prepare(gate: gates.Gate) -> Answer | gates.Admitted:
    """Answer a meta-tool's call and record it; admit any other, or refuse it and record that.

    Returns the database connection to the pool: what is admitted may wait for long, and run for long.
    """
    try:
        return _judge(gate)
    finally:
        databases.release()


def _judge(gate: gates.Gate) -> Answer | gates.Admitted:
    made, by_dispatch, subagent = gate.made, gate.by_dispatch, gate.subagent
    if made.tool in meta_tools.DEFINITIONS and not by_dispatch:
        return _call_own(made, subagent)
    snapshot, resolved, state = gate.resolve()
    if by_dispatch and made.tool == meta_tools.SEARCH:
        found = dispatch.search_tools(resolved, made.arguments, has_session=made.session is not None)
        return _refuse(made, found) if isinstance(found, calls.Refusal) else _answered(made, found.content)
    if by_dispatch and made.tool == meta_tools.CALL:
        named = dispatch.parse_call(resolved, made.arguments)
        if isinstance(named, calls.Refusal):
            return _refuse(made, named)
        # From here on it is a call of the tool that is meant, and recorded as one.
        made.tool, made.arguments = named
        if made.tool in dispatch.LOADING and made.session is not None:
            return _call_own(made, subagent)
        gate.is_dispatched = True
    return _judge_tool(gate, snapshot, resolved, state)


def _call_own(made: recording.Recording, subagent: str | None) -> Answer:
    """Answer the call of a meta-tool that lists or loads."""
    told = own_tools.call(made.agent, made.tool, made.arguments, made.session, made.request_id, subagent)
    return _refuse(made, told) if isinstance(told, calls.Refusal) else _answered(made, told.content)


def _judge_tool(
    gate: gates.Gate,
    snapshot: resolution.Snapshot,
    resolved: budgets.Resolution,
    state: Hashable,
    *,
    is_quick: bool = False,
) -> Answer | gates.Admitted:
    made = gate.made
    known = snapshot.catalog.tools.get(made.tool)
    if known is not None:
        made.plugin = known.plugin
        made.arguments = calls.filled(snapshot.catalog, made.tool, made.arguments)
    admitted = gate.admit(resolved, snapshot, is_quick=is_quick)
    if isinstance(admitted, calls.Refusal):
        return _refuse(made, admitted)
    known = snapshot.catalog.tools[made.tool]
    provider = snapshot.catalog.plugins.get(known.plugin)
    server = provider if provider is not None and provider.upstream else None
    if server is None and not plugins.serves(made.plugin, made.tool):
        if snapshot.catalog.runner(known) == "client" and not plugins.is_loaded(made.plugin):
            return _refuse(made, calls.run_by_client(made.tool))
        plugins.report_unserved(made.plugin)
        return _refuse(made, unavailable(made.tool), "no plugin of this process serves it")
    if server is not None:
        upstream_connections.note_answers_elsewhere(server)
    return gates.Admitted(
        tool=made.tool,
        plugin=made.plugin,
        definition=known,
        server=server,
        arguments=made.arguments,
        context=contract.CallContext(
            agent=made.agent,
            session=made.session or "",
            request_id=made.request_id or "",
            options=admitted.options,
            active_tools=_by_plugin(resolved),
        ),
        until=made.begun + conf.CALL_SECONDS,
        seconds=conf.CALL_SECONDS,
        gate=gate,
        state=state,
        may_ask=server is not None and elicitation.is_granted(resolved, server),
    )


def _answered(made: recording.Recording, found: Any, definition: catalog.Tool | None = None) -> Answer:
    """Return what the tool answered, if it can be sent."""
    is_upstream = isinstance(found, upstream_calls.ToolResult)
    try:
        # Read back, as a tuple, a key that is a number and a subclass of a text are sent as JSON says them.
        text = _masked(found.result if is_upstream else _mapping(found))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"{made.tool} returned a result that cannot be sent. This was logged for an operator."
        _log.error("result is not JSON", tool=made.tool, plugin=made.plugin, error=str(error))
        return _refuse(made, calls.Refusal(code="tool-failed", message=message), f"not JSON: {error}")
    if len(text) > conf.CALL_RESULT_BYTES:
        most = conf.CALL_RESULT_BYTES
        message = (
            f"{made.tool} returned {len(text)} bytes, more than the {most} that are allowed: request less."
        )
        return _refuse(made, calls.Refusal(code="tool-failed", message=message))
    made.end("ok", result_bytes=len(text))
    is_structured = definition is not None and bool(definition.output_schema)
    document = json.loads(text)
    if is_upstream:
        content = _mapping(upstream_calls.content(document))
        return Result(content=content, is_structured=is_structured, mcp=document)
    return Result(content=document, is_structured=is_structured)


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {"result": found}


def _masked(value: Any) -> bytes:
    """Return the value as JSON without any secret. Raises TypeError, ValueError or RecursionError if it is none."""
    return masking.mask_json(json.dumps(value, allow_nan=False, ensure_ascii=False)).encode()


def _failure(error: contract.ToolError) -> Mapping[str, Any] | None:
    """Return what an upstream server's tool answered as it failed, as MCP has it, if that can be sent; of another
    request the code of the server's error.
    """
    if isinstance(error, upstream_calls.RequestFailedError):
        return {"code": error.error_code}
    if not isinstance(error, upstream_calls.ToolFailed):
        return None
    try:
        text = _masked(error.result)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= conf.CALL_RESULT_BYTES else None


def _refused(made: recording.Recording, admitted: gates.Admitted, error: Exception) -> calls.Refusal:
    """Return in an answer what kept the tool from answering, and record it."""
    tool = made.tool
    match error:
        case gates.DeniedError():
            return _refuse(made, error.refusal, error.because)
        case gates.UncheckedError():
            return _refuse(made, unchecked(), f"It could not be checked again: {error}")
        case gates.UnauthorizedError(__cause__=Exception() as cause):
            made.end("tool-denied", error=f"The caller may no longer call: {cause}")
            raise cause
        case contract.ToolError():
            said = secrets.mask(str(error)) or f"{tool} failed."
            return _refuse(made, calls.Refusal(code="tool-failed", message=said, mcp=_failure(error)))
        case upstream_calls.TooSlowError():
            return _refuse(made, _late(admitted, error.within))
        case registry.TimedOutError():
            return _refuse(made, _late(admitted, admitted.seconds))
        case upstream_calls.Unreachable() if (denied := gates.blocked(admitted)) is not None:
            # A server that is blocked is disconnected, which its calls may notice first.
            return _refuse(made, denied.refusal, denied.because)
        case upstream_calls.TooManyError():
            message = f"{tool} is busy: all connections to its server are in use. Try again in a moment."
            return _refuse(made, calls.Refusal(code="tool-unavailable", message=message), str(error))
        case upstream_calls.Unreachable():
            return _refuse(made, unavailable(tool), str(error))
        case TimeoutError() if admitted.left < OVER:
            return _refuse(made, _late(admitted, admitted.seconds), "there was no place for it")
        case registry.Unavailable():
            plugins.report(made.plugin, error.life)
            return _refuse(made, unavailable(tool), str(error))
        case errors.NotFound() if not plugins.serves(made.plugin, tool):
            return _refuse(made, unavailable(tool), str(error))
    _log.error("tool failed", tool=tool, plugin=made.plugin, agent=made.agent, exc_info=error)
    message = f"{tool} failed. The error was logged for an operator."
    return _refuse(
        made, calls.Refusal(code="tool-failed", message=message), f"{type(error).__name__}: {error}"
    )


def _refuse(made: recording.Recording, refusal: calls.Refusal, because: str = "") -> calls.Refusal:
    made.end(refusal.code, error=because or made.because or refusal.without_values())
    return refusal


def unavailable(tool: str) -> calls.Refusal:
    """Refuse a call because what provides the tool is not there."""
    return calls.Refusal(
        code="tool-unavailable", message=f"{tool} is not available at the moment. Try something else."
    )


def unchecked() -> calls.Refusal:
    """Refuse a call because the database is unavailable, so that it cannot be checked. Nothing has run."""
    return calls.Refusal(
        code="tool-unavailable",
        message="The tool was not run: whether this call is allowed cannot be checked at the moment."
        " Try again in a few seconds.",
    )


def _late(admitted: gates.Admitted, seconds: float) -> calls.Refusal:
    message = f"{admitted.tool} did not answer within {seconds:g} s."
    return calls.Refusal(code="timed-out", message=message)


def _by_plugin(resolved: budgets.Resolution) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for key in resolved.active:
        found.setdefault(resolved.context.catalog.tools[key].plugin, []).append(key)
    return found
