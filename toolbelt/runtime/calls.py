"""May this call go through, as things stand now, and what does its tool answer? The gate that every call passes,
whichever shell it came by.

A refusal is an answer that the model can read, never a crash. An operator's change counts at once, also in a request
that is under way. Every call and every refusal is recorded, once.
"""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from asgiref.sync import sync_to_async

from toolbelt import conf
from toolbelt.core import budgets, calls, catalog, dispatch, errors, meta_tools
from toolbelt.plugins import contract, registry
from toolbelt.runtime import masking, places, plugins, recording, secrets, snapshots, upstreams
from toolbelt.runtime import meta_tools as own_tools

_log = structlog.get_logger(__name__)
_places = places.Places()

# What is left of a call's time when it counts as over: clocks of threads and loops differ by less.
OVER = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a call came to. A tool that answers something else than a mapping has it under ``result``.

    ``is_structured``: the tool's definition says what its answers look like.
    """

    content: Mapping[str, Any]
    is_structured: bool = False

    def document(self) -> dict[str, Any]:
        """Give the answer as a JSON document; a refusal's has ``is_error`` and a code."""
        return {"is_error": False, "content": self.content}


Answer = Result | calls.Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class _Admitted:
    """A call that may go through: who runs it, and until when (in seconds of the monotonic clock).

    ``definition`` is the tool as it is stored; ``server`` the plugin that is an upstream server, None: it is code.
    """

    tool: str
    plugin: str
    definition: catalog.Tool
    server: catalog.Plugin | None
    arguments: Mapping[str, Any]
    context: contract.CallContext
    until: float
    seconds: float

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())


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
    progress: upstreams.Progress | None = None,
    *,
    by_dispatch: bool = False,
) -> Answer:
    """Run a call of a tool or of a meta-tool, in a thread that may block.

    ``progress`` hears how far a tool of an upstream server has come, on the event loop of those servers. With
    ``by_dispatch`` the agent has ``call_tool`` instead of the meta-tools that load (see toolbelt.core.dispatch).
    Raises errors.NotFound for an unknown agent and errors.Invalid for ids that cannot be; all else is an answer.
    """
    made = recording.Recording(
        agent=agent, tool=tool, arguments=arguments, session=session, request_id=request_id
    )
    prepared = _prepare(made, subagent, by_dispatch)
    if not isinstance(prepared, _Admitted):
        return prepared
    ticket = _places.enter(prepared.plugin, conf.CALLS_PER_PLUGIN)
    try:
        ticket.result(prepared.left)
        found = _executed(prepared, progress)
    except Exception as error:
        return _refused(made, prepared, error)
    except BaseException:
        made.end("cancelled")
        raise
    finally:
        _places.leave(prepared.plugin, ticket)
    return _answered(made, found, prepared.definition)


async def arun(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
    progress: upstreams.Progress | None = None,
    *,
    by_dispatch: bool = False,
) -> Answer:
    """Do as :func:`run` does, in an event loop. Cancelling it cancels the tool, too."""
    made = recording.Recording(
        agent=agent, tool=tool, arguments=arguments, session=session, request_id=request_id
    )
    prepared = await sync_to_async(_prepare)(made, subagent, by_dispatch)
    if not isinstance(prepared, _Admitted):
        return prepared
    ticket = _places.enter(prepared.plugin, conf.CALLS_PER_PLUGIN)
    try:
        await asyncio.wait_for(asyncio.wrap_future(ticket), prepared.left)
        found = await _aexecuted(prepared, progress)
    except Exception as error:
        return await sync_to_async(_refused)(made, prepared, error)
    except asyncio.CancelledError:
        await asyncio.shield(sync_to_async(made.end)("cancelled"))
        raise
    finally:
        _places.leave(prepared.plugin, ticket)
    return await sync_to_async(_answered)(made, found, prepared.definition)


def _executed(admitted: _Admitted, progress: upstreams.Progress | None) -> Any:
    if admitted.server is not None:
        return upstreams.call(
            admitted.server,
            admitted.definition,
            admitted.arguments,
            within=admitted.left,
            progress=progress,
        )
    return plugins.registry().execute_sync(
        admitted.tool, admitted.arguments, call=admitted.context, within=admitted.left
    )


async def _aexecuted(admitted: _Admitted, progress: upstreams.Progress | None) -> Any:
    if admitted.server is not None:
        return await upstreams.acall(
            admitted.server,
            admitted.definition,
            admitted.arguments,
            within=admitted.left,
            progress=progress,
        )
    return await plugins.registry().execute(
        admitted.tool, admitted.arguments, call=admitted.context, within=admitted.left
    )


def _prepare(made: recording.Recording, subagent: str | None, by_dispatch: bool) -> Answer | _Admitted:
    """Answer a meta-tool's call and record it; admit any other, or refuse it and record that."""
    until = made.begun + conf.CALL_SECONDS
    if made.tool in meta_tools.DEFINITIONS and not by_dispatch:
        told = own_tools.call(made.agent, made.tool, made.arguments, made.session, made.request_id, subagent)
        return _refuse(made, told) if isinstance(told, calls.Refusal) else _answered(made, told.content)
    snapshot, _ = snapshots.take(made.agent, made.session, made.request_id, subagent)
    resolved = budgets.resolve(snapshot)
    admit = calls.admit
    if by_dispatch and made.tool == meta_tools.SEARCH:
        found = dispatch.search(resolved, made.arguments)
        return _refuse(made, found) if isinstance(found, calls.Refusal) else _answered(made, found.content)
    if by_dispatch and made.tool == meta_tools.CALL:
        named = dispatch.named(resolved, made.arguments)
        if isinstance(named, calls.Refusal):
            return _refuse(made, named)
        # From here on it is a call of the tool that is meant, and recorded as one.
        made.tool, made.arguments = named
        admit = functools.partial(dispatch.admit, snapshot=snapshot)
    known = snapshot.catalog.tools.get(made.tool)
    made.plugin = known.plugin if known is not None else ""
    admitted = admit(resolved, tool=made.tool, arguments=made.arguments, hide_denied=conf.HIDE_DENIED)
    if isinstance(admitted, calls.Refusal):
        return _refuse(made, admitted)
    known = snapshot.catalog.tools[made.tool]
    provider = snapshot.catalog.plugins.get(known.plugin)
    server = provider if provider is not None and provider.upstream else None
    if server is None and not plugins.serves(made.plugin, made.tool):
        plugins.report_unserved(made.plugin)
        return _refuse(made, _unavailable(made.tool), "no plugin of this process serves it")
    return _Admitted(
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
        until=until,
        seconds=conf.CALL_SECONDS,
    )


def _answered(made: recording.Recording, found: Any, definition: catalog.Tool | None = None) -> Answer:
    """Give what the tool answered, if it can be sent."""
    content = found if isinstance(found, Mapping) else {"result": found}
    try:
        # Read back, as a tuple, a key that is a number and a subclass of a text are sent as JSON says them.
        text = masking.mask_json(json.dumps(content, allow_nan=False, ensure_ascii=False)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"{made.tool} answered what cannot be sent. This was logged for an operator."
        _log.error("result is not JSON", tool=made.tool, plugin=made.plugin, error=str(error))
        return _refuse(made, calls.Refusal(code="tool-failed", message=message), f"not JSON: {error}")
    if len(text) > conf.CALL_RESULT_BYTES:
        most = conf.CALL_RESULT_BYTES
        message = (
            f"{made.tool} answered {len(text)} bytes, more than the {most} that may be sent: ask for less."
        )
        return _refuse(made, calls.Refusal(code="tool-failed", message=message))
    made.end("ok", result_bytes=len(text))
    is_structured = definition is not None and bool(definition.output_schema)
    return Result(content=json.loads(text), is_structured=is_structured)


def _refused(made: recording.Recording, admitted: _Admitted, error: Exception) -> calls.Refusal:
    """Say in an answer what kept the tool from answering, and record it."""
    tool = made.tool
    match error:
        case contract.ToolError():
            said = secrets.mask(str(error)) or f"{tool} failed."
            return _refuse(made, calls.Refusal(code="tool-failed", message=said))
        case upstreams.TooSlow():
            return _refuse(made, _late(admitted, error.within))
        case registry.TimedOut():
            return _refuse(made, _late(admitted, admitted.seconds))
        case upstreams.Unreachable():
            return _refuse(made, _unavailable(tool), str(error))
        case TimeoutError() if admitted.left < OVER:
            return _refuse(made, _late(admitted, admitted.seconds), "there was no place for it")
        case registry.Unavailable():
            plugins.report(made.plugin, error.life)
            return _refuse(made, _unavailable(tool), str(error))
        case errors.NotFound() if not plugins.serves(made.plugin, tool):
            return _refuse(made, _unavailable(tool), str(error))
    _log.error("tool failed", tool=tool, plugin=made.plugin, agent=made.agent, exc_info=error)
    message = f"{tool} failed. The error was logged for an operator."
    return _refuse(
        made, calls.Refusal(code="tool-failed", message=message), f"{type(error).__name__}: {error}"
    )


def _refuse(made: recording.Recording, refusal: calls.Refusal, because: str = "") -> calls.Refusal:
    made.end(refusal.code, error=because or refusal.without_values())
    return refusal


def _unavailable(tool: str) -> calls.Refusal:
    return calls.Refusal(
        code="tool-unavailable", message=f"{tool} is not available at present. Try something else."
    )


def _late(admitted: _Admitted, seconds: float) -> calls.Refusal:
    message = f"{admitted.tool} did not answer within {seconds:g} s."
    return calls.Refusal(code="timed-out", message=message)


def _by_plugin(resolved: budgets.Resolution) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for key in resolved.active:
        found.setdefault(resolved.standing.catalog.tools[key].plugin, []).append(key)
    return found
