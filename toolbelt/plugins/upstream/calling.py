"""Calls of a server's tools, and other requests, on its current connection.

A call that finds its server gone, or is refused its session after a restart, has not run: it is sent again, once.
Questions of the server to the user are answered with a repeated request, or forwarded to the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from toolbelt.core import catalog, errors
from toolbelt.core.imported import non_tool_importing
from toolbelt.plugins import background, contract
from toolbelt.plugins.upstream import client_features, last_check, live_connection, requests, results, updates

if TYPE_CHECKING:
    from toolbelt.plugins.upstream import connection


_CHANGED = "{0.plugin} no longer offers {0.name} as it was approved."
_REWORDED = "On this connection, {0.plugin} does not describe {0.name} as it was approved."


class Progress(Protocol):
    """Called with the progress of a call, on the connections' event loop; the total and the message are optional."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call of the tool with the server's own ``name``, or another request of MCP.

    With another ``method``, ``arguments`` are the parameters of that request (see :mod:`requests`). ``version`` is the
    approved version of the entry of this ``kind`` and ``key``, in the ``namespace`` of the ``plugin``; empty: any. With
    ``any_description``, the server may list another one than the approved ``description``.
    ``caller`` is the agent, or the session, that may have state in the server's sessions.
    ``check`` is awaited directly before the request is written: over HTTP once there is a TCP or TLS connection, for a
    process when the message is passed to the pipe. ``features`` are those of the client of the call.
    """

    plugin: str = ""
    namespace: str = ""
    kind: catalog.Kind = "tool"
    name: str
    key: str = ""
    version: str = ""
    description: str = ""
    any_description: bool = False
    method: str = results.CALL
    arguments: Mapping[str, Any]
    progress: Progress | None = None
    check: background.Check | None = None
    features: client_features.ClientFeatures | None = None
    caller: str = ""


async def run(server: connection.Server, call: Request) -> Mapping[str, Any]:
    """Return MCP's result of a request; one of type ``input_required`` is for a client that repeats the call.

    The server's time limit restarts with each progress notification; the caller limits the whole call. Following a
    resource lasts as long as the connection, and ``progress`` is called with each update.

    Raise what ``check`` raises, UnreachableError, also if the server lists another version, TimeoutError with what the
    server wrote meanwhile that is not MCP, and contract.ToolError if the server refuses.
    """
    if call.method == requests.FOLLOW:
        await _follow(server, call)
        return {}
    if call.method == requests.CAN_FOLLOW:
        live = await _connected(server, call)
        return {"follows": await updates.are_sent(live, call.arguments["uri"], server.limits)}
    features = call.features
    more: Mapping[str, Any] = features.resumed if features is not None else {}
    for _ in range(client_features.MAX_ROUNDS):
        try:
            result = await _attempted(server, call, more)
        except client_features.PagesRequiredError as error:
            return await _forward_questions(error, features)
        if result.get("resultType") != results.INPUT_REQUIRED:
            return result
        if features is None or not client_features.is_input_required(result):
            break
        try:
            if (forwarded := await features.forward_questions(result)) is not None:
                return forwarded
            more = await client_features.answers(result, features)
        except client_features.RefusedError:
            break
    raise contract.ToolError("The server asks for input that is not available here.")


async def _attempted(server: connection.Server, call: Request, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result of a call, or of its second attempt if it has not run.

    If the server has lost a session since the caller's last call, the result or the error says so.
    """
    known = server.known_losses(call.caller)
    if known is None and call.method == results.CALL:
        server.note_known_losses(call.caller)
    try:
        try:
            result = await _attempt(server, call, more)
        except live_connection.NotRunError:
            # As MCP requires, a new session begins; it is listed and checked again. If the server is still unreachable,
            # the reason is reported.
            result = await _attempt(server, call, more)
    except contract.ToolError as error:
        if call.method == results.CALL and _has_lost(server, call, known):
            raise contract.ToolError(f"{error} {results.NEW_SESSION}") from error
        raise
    if call.method == results.CALL and _has_lost(server, call, known):
        return results.in_new_session(result)
    return result


def _has_lost(server: connection.Server, call: Request, known: int | None) -> bool:
    """Return whether a session was lost in which the caller may have state; it learns that now."""
    losses = server.note_known_losses(call.caller)
    return known is not None and known < losses


async def _follow(server: connection.Server, call: Request) -> None:
    """Call the call's ``progress`` at each update of the resource, until the connection ends."""
    live = await _connected(server, call)
    if call.check is not None:
        await call.check()
    news = asyncio.Event()

    async def notify() -> None:
        """Call ``progress`` after updates, once for all that arrived meanwhile."""
        while True:
            await news.wait()
            news.clear()
            if call.progress is not None:
                await call.progress(0.0, None, None)
            await server.sleep(server.limits.update_pause)

    notifying = asyncio.ensure_future(notify())
    try:
        await updates.follow(live, server.followers, call.arguments["uri"], news.set, server.limits)
    finally:
        notifying.cancel()


async def _forward_questions(
    error: client_features.PagesRequiredError, features: client_features.ClientFeatures | None
) -> Mapping[str, Any]:
    """Return the questions of an error for the client; raise the error without them if it may not be asked."""
    if features is not None:
        with contextlib.suppress(client_features.RefusedError):
            if (forwarded := await features.forward_questions(error.required, is_error=True)) is not None:
                return forwarded
    raise error.refusal from error


async def _connected(server: connection.Server, call: Request) -> live_connection.LiveConnection:
    """Return the current connection. Raise UnreachableError if it lists another version than the approved one."""
    live, listed = await server.connected(), server.listed
    if listed is None or not call.version:
        return live
    identity = call.kind, call.name, call.namespace, call.key
    if call.version not in non_tool_importing.versions(listed, *identity):
        is_reworded = call.version in non_tool_importing.versions(listed, *identity, call.description)
        if not (is_reworded and call.any_description):
            # It changed without a notification. The new version is recorded for review.
            server.on_change(listed)
            raise live_connection.UnreachableError(
                _REWORDED.format(call) if is_reworded else _CHANGED.format(call)
            )
    return live


async def _attempt(server: connection.Server, call: Request, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Send the request once, with ``more`` parameters, and return MCP's result.

    It must come within the server's time limit after the last notification of progress.
    """
    live = await _connected(server, call)
    written = live.output.count
    request, validate = _request(call, more)
    last, seconds = last_check.LastCheck(call.check), server.settings.timeout
    if server.settings.command:
        await last.make()
    try:
        async with asyncio.timeout(seconds) as limit:
            running_call = client_features.RunningCall(features=call.features, limit=limit, seconds=seconds)
            with live.used(), last.current(), live.running_calls.entered(running_call):
                # Not with the client's call_tool, which checks the result against the server's schema: its patterns
                # can take very long, on the event loop that all servers share. And unchanged: the client's own type
                # drops unknown fields, and writes 1 as 1.0.
                result: Mapping[str, Any] = await live.at_hand().session.send_request(
                    request, _unchanged(), progress_callback=_extending(running_call, call.progress)
                )
        if last.has_not_run:
            raise live_connection.UnreachableError("The server no longer knows the session.")
        validate(result, by_name=False)
    except TimeoutError:
        server.note_late(live)
        # It may be why there is no answer, such as a traceback.
        raise TimeoutError(live.output.last() if live.output.count > written else "") from None
    except Exception as error:
        if last.refusal is not None:
            is_for_it_alone = isinstance(last.refusal, live_connection.ScopesNeededError)
            if isinstance(last.refusal, live_connection.UnreachableError) and not is_for_it_alone:
                # There is no token for it. The next call begins a connection, and so a pause if there is none then.
                server.retire(live)
            raise last.refusal from None
        if last.has_not_run:
            reason = live.why(error, server.settings, last)
            server.note_session_end(live)
            raise live_connection.NotRunError(reason) from error
        if isinstance(error, ValueError):
            # A result that is not valid, or nested too deeply.
            raise contract.ToolError("The server's answer is not a valid result.") from error
        refusal = _refusal(error, live, call, server, last)
        if isinstance(refusal, live_connection.UnreachableError):
            server.end(live)
        raise refusal from error
    server.note_in_time()
    return result


def _request(call: Request, more: Mapping[str, Any]) -> tuple[Any, Callable[..., Any]]:
    """Return the request for the official client, and the function that checks its result."""
    arguments = call.arguments
    if call.method == results.CALL:
        arguments = {"name": call.name, "arguments": arguments}
    request, result_type = requests.build(call.method, arguments)
    if call.features is not None and (call.features.modes or call.features.log_level):
        client_features.prepare(request.params, call.features, more)
        return request, client_features.result_type(result_type).validate_python
    return request, result_type.model_validate


def _refusal(
    error: Exception,
    live: live_connection.LiveConnection,
    call: Request,
    server: connection.Server,
    last: last_check.LastCheck,
) -> errors.ToolbeltError:
    """Return the exception for a failed request. Raise PagesRequiredError if the user has to open pages first."""
    from mcp.shared.exceptions import MCPError

    if not isinstance(error, MCPError):
        return live.unreachable(error, server.settings, last)
    refusal = live.refusal(error, server.settings, last)
    if call.method != results.CALL and not isinstance(refusal, live_connection.UnreachableError):
        refusal = requests.RequestFailedError(str(refusal), error.code)
    if (pages := client_features.required_pages(error, call.features)) is not None:
        raise client_features.PagesRequiredError(pages, refusal) from error
    if call.features is not None and client_features.requires_elicitation(error):
        call.features.report_would_ask()
    return refusal


def _extending(running_call: client_features.RunningCall, caller: Progress | None) -> Progress:
    """Return a progress callback that restarts the time limit, and calls the caller's."""

    async def extend(progress: float, total: float | None, message: str | None) -> None:
        running_call.restart_limit()
        if caller is not None:
            await caller(progress, total, message)

    return extend


@functools.cache
def _unchanged() -> Any:
    """Return the type of an answer that is kept unchanged."""
    import pydantic

    return pydantic.TypeAdapter(dict[str, Any])
