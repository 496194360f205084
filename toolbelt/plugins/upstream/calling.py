"""Calls of a server's tools, and other requests, on its current connection.

A call that finds its server gone, or is refused its session after a restart, has not run: it is sent again, once.
Questions of the server to the user are answered with a repeated request, or forwarded to the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from toolbelt.core import errors
from toolbelt.core.imported import importing
from toolbelt.plugins import background, contract
from toolbelt.plugins.upstream import client_features, last_check, live_connection, requests, results, updates

if TYPE_CHECKING:
    from toolbelt.plugins.upstream import connection


class Progress(Protocol):
    """Called with the progress of a call, on the connections' event loop; the total and the message are optional."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of the tool with this name, or another request of MCP, as in :meth:`connection.Server.call`."""

    name: str
    arguments: Mapping[str, Any]
    progress: Progress | None
    check: background.Check | None
    expected: Callable[[importing.ServerListing], object]
    features: client_features.ClientFeatures | None
    method: str


async def run(server: connection.Server, call: Call) -> Mapping[str, Any]:
    """Return MCP's result of a call. Raise as :meth:`connection.Server.call` does."""
    features = call.features
    more: Mapping[str, Any] = features.resumed if features is not None else {}
    for _ in range(client_features.MAX_ROUNDS):
        try:
            try:
                result = await _attempt(server, call, more)
            except live_connection.NotRunError:
                # As MCP requires, a new session begins; it is listed and checked again. If the server is still
                # unreachable, the reason is reported.
                result = await _attempt(server, call, more)
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


async def follow(
    server: connection.Server,
    call: Call,
    followers: updates.Followers,
    sleep: Callable[[float], Awaitable[object]],
) -> None:
    """Call the call's ``progress`` at each update of the resource, until the connection ends."""
    live = await server.connected()
    if server.listed is not None:
        call.expected(server.listed)
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
            await sleep(server.limits.update_pause)

    notifying = asyncio.ensure_future(notify())
    try:
        await updates.follow(live, followers, call.arguments["uri"], news.set, server.limits)
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


async def _attempt(server: connection.Server, call: Call, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Send the request once, with ``more`` parameters, and return MCP's result."""
    live = await server.connected()
    if server.listed is not None:
        call.expected(server.listed)
    import pydantic

    request, validate = _request(call, more)
    last = last_check.LastCheck(call.check)
    if server.settings.command:
        await last.make()
    try:
        with live.used(), last.current():
            result = await _send(live, call, request, server.settings.timeout)
        validate(result, by_name=False)
    except TimeoutError:
        server.note_late(live)
        raise
    except pydantic.ValidationError as error:
        raise contract.ToolError("The server's answer is not a valid result.") from error
    except Exception as error:
        if last.refusal is not None:
            raise last.refusal from None
        if last.has_not_run:
            server.retire(live)
            raise live_connection.NotRunError(live.why(error, server.settings)) from error
        refusal = _refusal(error, live, call, server)
        if isinstance(refusal, live_connection.UnreachableError):
            server.end(live)
        raise refusal from error
    server.note_in_time()
    return result


def _request(call: Call, more: Mapping[str, Any]) -> tuple[Any, Callable[..., Any]]:
    """Return the request for the official client, and the function that checks its result."""
    arguments = call.arguments
    if call.method == results.CALL:
        arguments = {"name": call.name, "arguments": arguments}
    request, result_type = requests.build(call.method, arguments)
    if call.features is not None and (call.features.modes or call.features.log_level):
        client_features.prepare(request.params, call.features, more)
        return request, client_features.result_type(result_type).validate_python
    return request, result_type.model_validate


async def _send(
    live: live_connection.LiveConnection, call: Call, request: Any, seconds: float
) -> Mapping[str, Any]:
    """Return the result, which must come within these seconds of the last notification of progress."""
    async with asyncio.timeout(seconds) as limit:
        # Not with the client's call_tool, which checks the result against the server's schema: its patterns can take
        # very long, on the event loop that all servers share.
        running_call = client_features.RunningCall(features=call.features, limit=limit, seconds=seconds)
        with live.running_calls.entered(running_call):
            # Unchanged: the client's own type drops unknown fields, and writes 1 as 1.0.
            result: Mapping[str, Any] = await live.at_hand().session.send_request(
                request, _unchanged(), progress_callback=_extending(running_call, call.progress)
            )
            return result


def _refusal(
    error: Exception, live: live_connection.LiveConnection, call: Call, server: connection.Server
) -> errors.ToolbeltError:
    """Return the exception for a failed request. Raise PagesRequiredError if the user has to open pages first."""
    from mcp.shared.exceptions import MCPError

    if not isinstance(error, MCPError):
        return live_connection.UnreachableError(live.why(error, server.settings))
    refusal = live.refusal(error, server.settings)
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
