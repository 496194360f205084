"""Forwarding of calls to the process that holds the connection.

A forwarded call contains the server, the owner of the connection, the server's own name of the tool, the arguments,
and the approved version. The other process asks back directly before it writes to the server, so that a call that was
denied meanwhile does not run. It also sends progress, and the server's questions to the user.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any

from toolbelt.plugins import contract
from toolbelt.plugins.upstream import calling, client_features, live_connection, relay, requests
from toolbelt.store import upstream_connections

CALL = "tools/call"
CLOSE = "connections/close"
# The fields of a call that are sent as they are.
_SENT = (
    *("plugin", "namespace", "kind", "name", "key", "version", "method", "arguments"),
    *("description", "any_description", "caller"),
)
# Before the code of an error that a server answered.
_REQUEST_FAILED = "request-failed:"

Event = Callable[[Any], Awaitable[Any]]


class NotHeldError(Exception):
    """The process does not hold the connection: the call has not run."""


class CallerCheck:
    """The check that the calling process runs. Keeps the exception, which cannot be sent."""

    def __init__(self, check: Callable[[], Awaitable[None]] | None) -> None:
        self._check = check
        self.is_checked = False
        self.refusal: Exception | None = None

    async def answer(self, data: Any) -> None:
        """Run the check, and raise its exceptions."""
        self.is_checked = True
        if self._check is None:
            return
        try:
            await self._check()
        except Exception as error:
            self.refusal = error
            raise


async def call(
    claim: upstream_connections.Claim, digest: str, request: calling.Request, trace: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the result of a call that the process with this claim makes, on a connection of this configuration.

    Raise NotHeldError if that process cannot make it and the call has not run, and otherwise the same exceptions as a
    call in this process.
    """
    caller_check = CallerCheck(request.check)
    sent = {name: getattr(request, name) for name in _SENT} | {
        "owner": claim.owner,
        "digest": digest,
        "trace": trace,
        "progress": request.progress is not None,
        "features": _offered(request.features) if request.features is not None else None,
    }
    events = {"check": caller_check.answer, **_events(request)}
    try:
        result: Mapping[str, Any] = await relay.request(claim.address, CALL, sent, events)
    except relay.UnreachableError as error:
        raise NotHeldError from error
    except relay.BusyError as error:
        # It may still hold the connection, so no other process takes it.
        raise live_connection.UnreachableError(
            f"The process that holds the connection cannot be asked: {error}"
        ) from error
    except relay.LostError as error:
        if not caller_check.is_checked:
            raise NotHeldError from error
        raise live_connection.UnreachableError(
            "The process that held the connection ended before the tool answered."
        ) from error
    except relay.RemoteError as error:
        if error.kind == "refused" and caller_check.refusal is not None:
            raise caller_check.refusal from None
        raise _raised(error) from error
    return result


def _events(request: calling.Request) -> Mapping[str, Event]:
    """Return what the other process may report and ask while it makes the call, by the names of the events."""
    events: dict[str, Event] = {}
    if (progress := request.progress) is not None:

        async def notify(data: Any) -> None:
            await progress(*data)

        events["progress"] = notify
    if (features := request.features) is not None:

        async def report_would_ask(_: Any) -> None:
            features.report_would_ask()

        async def forward_questions(data: Any) -> Any:
            return await features.forward_questions(data["required"], is_error=data["is_error"])

        events |= {"elicit": features.elicit, "forward_questions": forward_questions, "log": features.log}
        events["wanted"] = report_would_ask
    return events


def _offered(features: client_features.ClientFeatures) -> Mapping[str, Any]:
    """Return what :class:`RemoteFeatures` reads in the other process."""
    owner = features.owner
    return {
        "owner": list(owner) if isinstance(owner, tuple) else None,
        "modes": sorted(features.modes),
        "log_level": features.log_level,
        "resumed": features.resumed,
    }


def kind(error: Exception) -> tuple[str, str]:
    """Return the kind and the message that stand for an error between processes."""
    match error:
        case relay.RefusedError():
            return "refused", ""
        case NotHeldError():
            return "not-held", ""
        case requests.RequestFailedError():
            return f"{_REQUEST_FAILED}{error.error_code}", str(error)
        case contract.ToolError():
            return "tool-error", str(error)
        case live_connection.ScopesNeededError():
            return "scopes-needed", str(error)
        case live_connection.SignInNeededError():
            return "sign-in-needed", str(error)
        case live_connection.UnreachableError():
            return "unreachable", str(error)
        case TimeoutError():
            return "timed-out", str(error)
    return "failed", f"{type(error).__name__}: {error}"


def _raised(error: relay.RemoteError) -> Exception:
    if error.kind.startswith(_REQUEST_FAILED):
        return requests.RequestFailedError(error.message, int(error.kind.removeprefix(_REQUEST_FAILED)))
    match error.kind:
        case "not-held":
            return NotHeldError()
        case "tool-error":
            return contract.ToolError(error.message)
        case "scopes-needed":
            return live_connection.ScopesNeededError(error.message)
        case "sign-in-needed":
            return live_connection.SignInNeededError(error.message)
        case "unreachable":
            return live_connection.UnreachableError(error.message)
        case "timed-out":
            return TimeoutError(error.message)
    return RuntimeError(error.message)


def received(params: Mapping[str, Any], exchange: relay.Exchange) -> calling.Request:
    """Return a forwarded call, whose check asks its caller, and which notifies its caller of progress."""

    async def notify(progress: float, total: float | None, message: str | None) -> None:
        exchange.send_event("progress", [progress, total, message])

    features = params["features"]
    return calling.Request(
        # During a rolling upgrade, a process of the previous version sends fewer.
        **{name: params[name] for name in _SENT if name in params},
        progress=notify if params["progress"] else None,
        check=functools.partial(exchange.ask, "check"),
        features=RemoteFeatures(features, exchange) if features else None,
    )


class RemoteFeatures:
    """The features of the client of a forwarded call, which is connected to another process."""

    def __init__(self, offered: Mapping[str, Any], exchange: relay.Exchange) -> None:
        owner = offered["owner"]
        self.owner: Hashable = _hashable(owner) if owner is not None else self
        self.modes = frozenset(offered["modes"])
        self.log_level: str = offered["log_level"]
        self.resumed: Mapping[str, Any] = offered["resumed"]
        self._exchange = exchange

    async def elicit(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the user's answer to a question. Raise client_features.RefusedError if the user is not asked."""
        answer: Mapping[str, Any] = await self._ask("elicit", params)
        return answer

    async def forward_questions(
        self, required: Mapping[str, Any], *, is_error: bool = False
    ) -> Mapping[str, Any] | None:
        """Return the questions that the client receives instead of the result, and repeats the call with answers."""
        data = {"required": required, "is_error": is_error}
        answer: Mapping[str, Any] | None = await self._ask("forward_questions", data)
        return answer

    def report_would_ask(self) -> None:
        """Pass on that the server would ask the user if it could."""
        self._exchange.send_event("wanted", None)

    async def log(self, params: Mapping[str, Any]) -> None:
        """Pass on a log message of the server."""
        self._exchange.send_event("log", params)

    async def _ask(self, event: str, data: Any) -> Any:
        try:
            return await self._exchange.ask(event, data)
        except relay.RefusedError:
            raise client_features.RefusedError from None


def _hashable(value: Any) -> Hashable:
    """Return the value with tuples instead of JSON's lists."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
