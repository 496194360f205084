"""The answers of calls, for models and for clients. Every answer, result or refusal, is recorded here, once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from toolbelt import conf
from toolbelt.core import calls, catalog, errors
from toolbelt.plugins import contract, registry
from toolbelt.runtime import gates, masking, plugins, recording, secrets, upstream_calls

_log = structlog.get_logger(__name__)

# What is left of a call's time when it counts as over: clocks of threads and loops differ by less.
OVER = 0.05


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


def answered(made: recording.Recording, returned: Any, definition: catalog.Tool | None = None) -> Answer:
    """Return what the tool answered, if it can be sent."""
    is_upstream = isinstance(returned, upstream_calls.ToolResult)
    try:
        # Read back, as a tuple, a key that is a number and a subclass of a text are sent as JSON says them.
        text = _masked(returned.result if is_upstream else _mapping(returned))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"{made.tool} returned a result that cannot be sent. This was logged for an operator."
        _log.error("result is not JSON", tool=made.tool, plugin=made.plugin, error=str(error))
        return refuse(made, calls.Refusal(code="tool-failed", message=message), f"not JSON: {error}")
    if len(text) > conf.CALL_RESULT_BYTES:
        maximum = conf.CALL_RESULT_BYTES
        message = (
            f"{made.tool} returned {len(text)} bytes, more than the {maximum} that are allowed: request less."
        )
        return refuse(made, calls.Refusal(code="tool-failed", message=message))
    made.end("ok", result_bytes=len(text))
    is_structured = definition is not None and bool(definition.output_schema)
    document = json.loads(text)
    if is_upstream:
        content = _mapping(upstream_calls.content(document))
        return Result(content=content, is_structured=is_structured, mcp=document)
    return Result(content=document, is_structured=is_structured)


def refused(made: recording.Recording, admitted: gates.Admitted, error: Exception) -> calls.Refusal:
    """Return in an answer what kept the tool from answering, and record it."""
    tool = made.tool
    match error:
        case gates.DeniedError():
            return refuse(made, error.refusal, error.because)
        case gates.UncheckedError():
            return refuse(made, unchecked(), f"It could not be checked again: {error}")
        case gates.UnauthorizedError(__cause__=Exception() as cause):
            made.end("tool-denied", error=f"The caller may no longer call: {cause}")
            raise cause
        case contract.ToolError():
            message = secrets.mask(str(error)) or f"{tool} failed."
            return refuse(made, calls.Refusal(code="tool-failed", message=message, mcp=_failure(error)))
        case upstream_calls.TooSlowError():
            return refuse(made, _late(admitted, error.within))
        case registry.TimedOutError():
            return refuse(made, _late(admitted, admitted.seconds))
        case upstream_calls.Unreachable() if (denied := gates.blocked(admitted)) is not None:
            # A server that is blocked is disconnected, which its calls may notice first.
            return refuse(made, denied.refusal, denied.because)
        case upstream_calls.TooManyError():
            message = f"{tool} is busy: all connections to its server are in use. Try again in a moment."
            return refuse(made, calls.Refusal(code="tool-unavailable", message=message), str(error))
        case upstream_calls.Unreachable():
            return refuse(made, unavailable(tool), str(error))
        case TimeoutError() if admitted.left < OVER:
            return refuse(made, _late(admitted, admitted.seconds), "there was no place for it")
        case registry.Unavailable():
            plugins.report(made.plugin, error.life)
            return refuse(made, unavailable(tool), str(error))
        case errors.NotFound() if not plugins.serves(made.plugin, tool):
            return refuse(made, unavailable(tool), str(error))
    _log.error("tool failed", tool=tool, plugin=made.plugin, agent=made.agent, exc_info=error)
    message = f"{tool} failed. The error was logged for an operator."
    return refuse(
        made, calls.Refusal(code="tool-failed", message=message), f"{type(error).__name__}: {error}"
    )


def refuse(made: recording.Recording, refusal: calls.Refusal, because: str = "") -> calls.Refusal:
    made.end(refusal.code, error=because or made.reason_text or refusal.without_values())
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


def _mapping(returned: Any) -> Mapping[str, Any]:
    return returned if isinstance(returned, Mapping) else {"result": returned}


def _masked(value: Any) -> bytes:
    """Return the value as JSON without any secret. Raises TypeError, ValueError or RecursionError if it is none."""
    return masking.mask_json(json.dumps(value, allow_nan=False, ensure_ascii=False)).encode()
