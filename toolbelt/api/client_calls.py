"""Calls that the agent's own program runs: their admission, and the report of their outcome."""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse

from toolbelt.api import auth, call_approvals, names, problems, schemas, surfaces
from toolbelt.core import schema
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions
from toolbelt.runtime.surfaces import request_contexts

router = ninja.Router(tags=["agents: surfaces and calls"])

MAX_CALLS = 32
MAX_DURATION_MS, MAX_RESULT_BYTES = 2**31 - 1, 2**53
MAX_SECONDS_AGO = 7 * 24 * 60 * 60


def _without_point(value: Any) -> Any:
    """Return a number such as 7.0, which is whole in JSON, as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = pydantic.BeforeValidator(_without_point)
# Whole numbers, and neither text nor booleans that could be converted to one. The limits come before the validator:
# after it, the API's schema would not state them.
_Milliseconds = Annotated[int, pydantic.Field(strict=True, ge=0, le=MAX_DURATION_MS), _WHOLE]
_Bytes = Annotated[int, pydantic.Field(strict=True, ge=0, le=MAX_RESULT_BYTES), _WHOLE]
_Seconds = Annotated[int, pydantic.Field(strict=True, ge=0, le=MAX_SECONDS_AGO), _WHOLE]


class ToolCall(schemas.Body):
    """A tool with its arguments."""

    tool: Annotated[str, pydantic.Field(max_length=200, description="The tool's name, as in the surface.")]
    arguments: Annotated[
        Any, pydantic.Field(description="The arguments, an object that matches the tool's input schema.")
    ] = {}


class CallToAdmit(ToolCall):
    """A tool with its arguments, in the version that the program has."""

    version: Annotated[
        str,
        pydantic.Field(
            max_length=admissions.MAX_VERSION_LENGTH,
            description="The tool's version in `versions` of the program's declaration. Default: the version that"
            " agents have.",
        ),
    ] = ""


class AdmissionRequest(surfaces.OfRequest, schemas.Body):
    """The calls that the agent's program is about to run."""

    calls: Annotated[
        list[CallToAdmit],
        pydantic.Field(min_length=1, max_length=MAX_CALLS, description="The calls, each checked on its own."),
    ]
    conversation: Annotated[
        surfaces.OfConversation | None,
        pydantic.Field(
            description="The conversation that the calls are made in. A refusal is then worded as its model needs it."
        ),
    ] = None


class AdmittedCall(ninja.Schema):
    """An admitted call, or a refusal that the model can read."""

    is_error: Annotated[
        bool, pydantic.Field(description="Whether the call was refused. It may not run then.")
    ]
    call_id: Annotated[
        str | None, pydantic.Field(description="The id to report the outcome under, once.")
    ] = None
    tool: Annotated[str | None, pydantic.Field(description="The tool's key.")] = None
    options: Annotated[
        dict[str, Any] | None,
        pydantic.Field(description="The tool's options for this agent, which are not among the arguments."),
    ] = None
    report_by: Annotated[
        str | None,
        pydantic.Field(description="Without a report by then, the call counts as `unreported`."),
    ] = None
    code: Annotated[str | None, pydantic.Field(description="The error code, if `is_error`.")] = None
    message: Annotated[str | None, pydantic.Field(description="The error message, for the model.")] = None
    errors: Annotated[
        list[schemas.ErrorDetail] | None, pydantic.Field(description="The invalid arguments, by path.")
    ] = None
    approval: Annotated[
        call_approvals.ApprovalRef | None,
        pydantic.Field(description="The approval that the call waits for, if `code` is `approval-pending`."),
    ] = None


class Admissions(ninja.Schema):
    """The answers, in the order of the calls."""

    calls: list[AdmittedCall]


class Report(schemas.Body):
    """The outcome of an admitted call. What the tool returned stays in the agent's program."""

    outcome: Annotated[admissions.Outcome, pydantic.Field(description="`ok`, or how the call failed.")]
    error: Annotated[
        str,
        pydantic.Field(
            max_length=2000, description="Why it failed, for operators. Known secrets are removed."
        ),
    ] = ""
    duration_ms: Annotated[
        _Milliseconds | None,
        pydantic.Field(
            description="How long the tool ran, in milliseconds. Default: the time since the admission.",
        ),
    ] = None
    result_bytes: Annotated[_Bytes, pydantic.Field(description="The size of the tool's result.")] = 0


class UnadmittedCall(ToolCall, Report):
    """A call that ran without an admission."""

    duration_ms: Annotated[
        _Milliseconds | None,
        pydantic.Field(description="How long the tool ran, in milliseconds. Default: 0."),
    ] = None
    seconds_ago: Annotated[_Seconds, pydantic.Field(description="How long ago it began, in seconds.")] = 0


class UnadmittedCalls(surfaces.OfRequest, schemas.Body):
    """Calls that the agent's program ran while it could not reach Toolbelt."""

    calls: Annotated[list[UnadmittedCall], pydantic.Field(min_length=1, max_length=MAX_CALLS)]


@router.post("/agents/{agent}/calls/admit", auth=auth.agent_writing, response=Admissions)
def admit_calls(request: HttpRequest, agent: str, body: AdmissionRequest) -> HttpResponse:
    """Have calls admitted that the agent's own program is about to run.

    An admission passes the same checks as a call. Run the tool only if `is_error` is false, and then report the outcome
    once. A refusal is also a 200 response, so that the model can read it. Tools that Toolbelt runs are refused with the
    code `run-by-toolbelt`: call those. With the header `Prefer: wait=20`, a call that waits for approval is answered
    once it is decided, or after that time; of several calls, the first.
    """
    bearer, key, wait = auth.bearer(request), body.key(agent), call_approvals.preferred_wait(request)
    request_contexts.check_subagent(bearer, key)
    token = (body.conversation.token if body.conversation else None) or ""
    answers = [
        admissions.admit(
            calls.Call(
                key=key,
                tool=call.tool,
                arguments=call.arguments,
                version=call.version,
                conversation=token,
                # Of several, only the first waits.
                wait=wait if index == 0 else 0.0,
            ),
            bearer.kind,
            auth.caller(request),
        )
        for index, call in enumerate(body.calls)
    ]
    return HttpResponse(document(answers), content_type="application/json")


@router.post(
    "/agents/{agent}/calls/{call_id}/outcome",
    auth=auth.agent_writing,
    response={204: None, **problems.documented(409)},
)
def report_outcome(request: HttpRequest, agent: str, call_id: names.Name, body: Report) -> Any:
    """Report the outcome of an admitted call, once: a second report returns 409 `refused`.

    Only the same kind of token that the call was admitted with can report it. A report is recorded even if the tool was
    denied or blocked meanwhile, because it has run.
    """
    admissions.report(
        agent,
        call_id,
        body.outcome,
        error=body.error,
        duration_ms=body.duration_ms,
        result_bytes=body.result_bytes,
        sender=auth.bearer(request).kind,
    )
    return ninja.Status(204, None)


@router.post("/agents/{agent}/calls/record", auth=auth.agent_writing, response={204: None})
def record_calls(request: HttpRequest, agent: str, body: UnadmittedCalls) -> Any:
    """Record calls that the agent's own program ran without an admission, because it could not reach Toolbelt.

    Their records say so. Toolbelt only checks that agents' programs run these tools. Calls of other tools are not
    recorded; with an agent's token, the response does not tell which these are.
    """
    bearer, key = auth.bearer(request), body.key(agent)
    request_contexts.check_subagent(bearer, key)
    for call in body.calls:
        try:
            admissions.record(
                calls.Call(key=key, tool=call.tool, arguments=call.arguments),
                call.outcome,
                seconds_ago=call.seconds_ago,
                error=call.error,
                duration_ms=call.duration_ms or 0,
                result_bytes=call.result_bytes,
            )
        except admissions.NotRunByClientError:
            # An agent must not find out which tools exist, and a call that it was denied since is still recorded.
            if bearer.kind == "operator":
                raise
    return ninja.Status(204, None)


def document(answers: list[admissions.Answer]) -> str:
    """Return the response to a request for admission."""
    return schema.canonical({"calls": [answer.document() for answer in answers]})
