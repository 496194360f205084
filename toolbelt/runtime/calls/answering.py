"""The answers of calls, for models and for clients. Every answer, result or refusal, is recorded here, once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from toolbelt import conf
from toolbelt.core import admitting, call_approvals, catalog, connections, declared_versions, errors
from toolbelt.plugins import contract, registry
from toolbelt.runtime import environ, masking, plugins, secrets
from toolbelt.runtime.calls import gates, last_checks, on_servers
from toolbelt.runtime.records import recordings

_log = structlog.get_logger(__name__)

# A call with less remaining time, in seconds, has timed out: the clocks of threads and event loops differ by less.
MIN_REMAINING_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a call. A value that is not a mapping is under ``result``.

    ``output_schema`` is that of the tool; empty if it has none. ``mcp`` is the complete MCP result of an upstream
    server's tool, for MCP clients. ``notice`` is what the model has to know beside it.
    """

    content: Mapping[str, Any]
    output_schema: str = ""
    mcp: Mapping[str, Any] | None = None
    notice: str = ""

    def document(self) -> dict[str, Any]:
        """Return the answer as a JSON document; a refusal's has ``is_error`` and a code."""
        notice = {"notice": self.notice} if self.notice else {}
        return {"is_error": False, "content": self.content, **notice}


Answer = Result | admitting.Refusal


def notice(approval: call_approvals.Approval) -> str:
    """Return what the model has to know of the approval by which its call ran; empty for nothing."""
    return secrets.mask(approval.notice)


def record_result(
    recording: recordings.Recording,
    returned: Any,
    definition: catalog.Tool | None = None,
    server: catalog.Plugin | None = None,
) -> Answer:
    """Return and record the result of a tool, or a refusal if the result cannot be sent.

    ``server`` is the upstream server that returned it, if one did.
    """
    is_upstream = isinstance(returned, on_servers.ToolResult)
    try:
        # Read back below, so that tuples, number keys and subclasses of str are sent as JSON represents them.
        text = _masked(returned.result if is_upstream else _mapping(returned))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"{recording.tool} returned a result that cannot be sent. This was logged for an operator."
        _log.error("result is not JSON", tool=recording.tool, plugin=recording.plugin, error=str(error))
        return refuse(recording, admitting.Refusal(code="tool-failed", message=message), f"not JSON: {error}")
    is_resource = definition is not None and definition.kind in ("resource", "template")
    maximum = _max_bytes(server, is_resource=is_resource)
    if len(text) > maximum:
        way_out = "an operator can raise the limit of its server" if is_resource else "request less"
        message = f"{recording.tool} returned {len(text)} bytes, more than the {maximum} that are allowed: {way_out}."
        return refuse(recording, admitting.Refusal(code="tool-failed", message=message))
    recording.end("ok", result_bytes=len(text))
    output_schema = "" if definition is None else declared_versions.offered(definition).output_schema
    document = json.loads(text)
    if is_upstream:
        content = _mapping(on_servers.content(document))
        return Result(content=content, output_schema=output_schema, mcp=document)
    return Result(content=document, output_schema=output_schema)


def record_failure(admitted: gates.Admitted, error: Exception) -> admitting.Refusal:
    """Return and record the refusal for a tool's exception."""
    recording = admitted.gate.recording
    tool = recording.tool
    match error:
        case last_checks.DeniedError():
            return refuse(recording, error.refusal, error.operator_reason)
        case last_checks.UncheckedError():
            return refuse(recording, unchecked(), f"It could not be checked again: {error}")
        case last_checks.UnauthorizedError(__cause__=Exception() as cause):
            recording.end("tool-denied", error=f"The caller may no longer call: {cause}")
            raise cause
        case contract.ToolError():
            message = secrets.mask(str(error)) or f"{tool} failed."
            return refuse(
                recording, admitting.Refusal(code="tool-failed", message=message, mcp=_failure(error))
            )
        case on_servers.TooSlowError():
            late = _late(admitted, error.within)
            # The model's own message does not have it: it may be anything.
            reason = (
                secrets.mask(f"{late.message} The server wrote last: {error.wrote}") if error.wrote else ""
            )
            return refuse(recording, late, reason)
        case registry.TimedOutError():
            return refuse(recording, _late(admitted, admitted.gate.call.seconds))
        case on_servers.Unreachable() if (denied := last_checks.blocked(admitted)) is not None:
            # A server that is blocked is disconnected, which its calls may notice first.
            return refuse(recording, denied.refusal, denied.operator_reason)
        case on_servers.TooManyError():
            message = f"{tool} is busy: all connections to its server are in use. Try again in a moment."
            return refuse(recording, admitting.Refusal(code="tool-unavailable", message=message), str(error))
        case on_servers.SignInNeeded():
            lacks_scopes = isinstance(error, on_servers.ScopesNeeded)
            return refuse(recording, _needing_sign_in(admitted, lacks_scopes=lacks_scopes), str(error))
        case on_servers.Unreachable():
            return refuse(recording, unavailable(tool), str(error))
        case TimeoutError() if admitted.left < MIN_REMAINING_SECONDS:
            return refuse(recording, _late(admitted, admitted.gate.call.seconds), "there was no place for it")
        case registry.Unavailable():
            plugins.report(recording.plugin, error.status)
            return refuse(recording, unavailable(tool), str(error))
        case environ.OptionUnset():
            return refuse(recording, unavailable(tool), str(error))
        case errors.NotFound() if not plugins.serves(recording.plugin, tool):
            return refuse(recording, unavailable(tool), str(error))
    _log.error("tool failed", tool=tool, plugin=recording.plugin, agent=recording.key.agent, exc_info=error)
    message = f"{tool} failed. The error was logged for an operator."
    return refuse(
        recording, admitting.Refusal(code="tool-failed", message=message), f"{type(error).__name__}: {error}"
    )


def _needing_sign_in(admitted: gates.Admitted, *, lacks_scopes: bool) -> admitting.Refusal:
    """Refuse a call whose server wants a sign-in, or one with more scopes: the person of the call can sign in where
    each person does, otherwise an operator.
    """
    server, again = admitted.server, " again" if lacks_scopes else ""
    why = "its server demands more than the sign-in allows. " if lacks_scopes else ""
    settings = connections.read(server.upstream) if server is not None else None
    if server is None or settings is None or settings.sign_in != "person":
        code, way_out = "tool-unavailable", f"An operator has to sign in at its server{again}."
    elif admitted.gate.caller.person is None:
        code = "sign-in-needed"
        way_out = (
            "Each person signs in at its server, so it works only in a client that signed in with OAuth, and not with"
            " a token."
        )
    else:
        code = "sign-in-needed"
        way_out = f"Ask the user to sign in at {server.name}{again}, on the page Account of Toolbelt."
    message = f"{admitted.tool} is not available: {why}{way_out} Try something else."
    return admitting.Refusal(code=code, message=message)


def refuse(
    recording: recordings.Recording, refusal: admitting.Refusal, operator_reason: str = ""
) -> admitting.Refusal:
    recording.end(refusal.code, error=operator_reason or recording.reason_text or refusal.without_values())
    return refusal


def too_many(tool: str) -> admitting.Refusal:
    """Return the refusal of a call of an agent that has too many waiting ones already."""
    message = f"{tool} was not called: too many of your calls wait already. Try again once some have ended."
    return admitting.Refusal(code="tool-unavailable", message=message)


def unavailable(tool: str) -> admitting.Refusal:
    """Refuse a call because the provider of its tool is unavailable."""
    return admitting.Refusal(
        code="tool-unavailable", message=f"{tool} is not available at the moment. Try something else."
    )


def unchecked() -> admitting.Refusal:
    """Refuse a call because the database is unavailable, so that it cannot be checked. Nothing has run."""
    return admitting.Refusal(
        code="tool-unavailable",
        message="The tool was not run: whether this call is allowed cannot be checked at the moment."
        " Try again in a few seconds.",
    )


def _late(admitted: gates.Admitted, seconds: float) -> admitting.Refusal:
    message = f"{admitted.tool} did not answer within {seconds:g} s."
    return admitting.Refusal(code="timed-out", message=message)


def _failure(error: contract.ToolError) -> Mapping[str, Any] | None:
    """Return the MCP result of an upstream server's tool that failed, if it can be sent; for another request, the code
    of the server's error.
    """
    if isinstance(error, on_servers.RequestFailedError):
        return {"code": error.error_code}
    if not isinstance(error, on_servers.ToolFailed):
        return None
    try:
        text = _masked(error.result)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= conf.CALL_RESULT_BYTES else None


def _max_bytes(server: catalog.Plugin | None, *, is_resource: bool) -> int:
    """Return the largest result that is allowed, as JSON."""
    settings = connections.read(server.upstream) if server is not None else None
    own = 0
    if settings is not None:
        own = settings.resource_bytes if is_resource else settings.result_bytes
    return own or (conf.RESOURCE_BYTES if is_resource else conf.CALL_RESULT_BYTES)


def _mapping(returned: Any) -> Mapping[str, Any]:
    return returned if isinstance(returned, Mapping) else {"result": returned}


def _masked(value: Any) -> bytes:
    """Return the value as JSON without secrets. Raise TypeError, ValueError or RecursionError if it is not JSON."""
    return masking.mask_json(json.dumps(value, allow_nan=False, ensure_ascii=False)).encode()
