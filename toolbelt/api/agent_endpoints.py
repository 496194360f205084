"""The endpoints that agents use: surfaces, tool calls, available toolkits; and the explanation of a decision."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse
from django.utils import cache
from ninja import params

from toolbelt.api import auth, call_approvals, problems, schemas, surfaces
from toolbelt.core import gate_rules, rules, schema
from toolbelt.core.rules import reasons
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions, preflight
from toolbelt.runtime.surfaces import explain, prepared_answers, request_contexts, toolkits

router = ninja.Router(tags=["agents: surfaces and calls"])


class SurfaceQuery(surfaces.OfRequest, schemas.Query):
    """The session and the request that a surface is for."""


class SurfaceRequest(SurfaceQuery):
    """The session, the request and the format of a surface."""

    format: surfaces.Format = None
    model: surfaces.Model = None


class SurfaceRequestWithMessage(surfaces.OfRequest, schemas.Body):
    """A surface request with the user's message, or with the tools that the model already has."""

    format: surfaces.Format = None
    model: surfaces.Model = None
    message: Annotated[
        str | None,
        pydantic.Field(description="The user's message. Send it only with the first step of a request."),
    ] = None
    declared: Annotated[
        dict[str, str] | None,
        pydantic.Field(
            description="The tools that the model already has: the `declared` of the surface it received."
            " The response then contains `delta`."
        ),
    ] = None
    conversation: Annotated[
        surfaces.Conversation | None,
        pydantic.Field(
            description="The conversation that the request continues, or begins. Requires `format`. The response then"
            " contains `append`, instead of `provider`."
        ),
    ] = None


class CallRequest(surfaces.OfRequest, schemas.Body):
    """A call of a tool or a meta-tool."""

    tool: Annotated[str, pydantic.Field(max_length=200, description="The tool's name, as in the surface.")]
    arguments: Annotated[
        Any, pydantic.Field(description="The arguments, an object that matches the tool's input schema.")
    ] = {}
    conversation: Annotated[
        surfaces.OfConversation | None,
        pydantic.Field(
            description="The conversation that the call is made in. A refusal is then worded as its model needs it."
        ),
    ] = None


class CallResult(ninja.Schema):
    """The result of a call: `content`, or an error that the model can read."""

    is_error: Annotated[bool, pydantic.Field(description="Whether the call failed or was refused.")]
    content: Annotated[dict[str, Any] | None, pydantic.Field(description="The tool's result.")] = None
    code: Annotated[str | None, pydantic.Field(description="The error code, if `is_error`.")] = None
    message: Annotated[str | None, pydantic.Field(description="The error message, for the model.")] = None
    errors: Annotated[
        list[schemas.ErrorDetail] | None, pydantic.Field(description="The invalid arguments, by path.")
    ] = None
    approval: Annotated[
        call_approvals.ApprovalRef | None,
        pydantic.Field(description="The approval that the call waits for, if `code` is `approval-pending`."),
    ] = None
    notice: Annotated[
        str | None,
        pydantic.Field(
            description="What the model has to know beside the result: that an operator changed its arguments."
        ),
    ] = None


class CheckRequest(CallRequest):
    """A call that might be made, of a tool that Toolbelt or the agent's own program runs."""

    version: Annotated[
        str,
        pydantic.Field(
            max_length=admissions.MAX_VERSION_LENGTH,
            description="Of a tool of the agent's own program: its version in the program's declaration.",
        ),
    ] = ""
    ask: Annotated[
        bool,
        pydantic.Field(
            description="Whether to ask people to approve the call now, if it would wait for them. By default, the call"
            " itself asks."
        ),
    ] = False


class CallCheck(ninja.Schema):
    """What would happen to a call with exactly these arguments, as things are now."""

    would: Annotated[
        preflight.Would,
        pydantic.Field(
            description="`run`; `wait` for people to approve it; `refuse`, with a `code`; or `unknown`: what runs the"
            " tool is not available at the moment."
        ),
    ]
    code: Annotated[str | None, pydantic.Field(description="The error code, unless it would run.")] = None
    message: Annotated[str | None, pydantic.Field(description="The error message, for the model.")] = None
    errors: Annotated[
        list[schemas.ErrorDetail] | None, pydantic.Field(description="The invalid arguments, by path.")
    ] = None
    rule: Annotated[
        str | None, pydantic.Field(description="The gate rule that denies it, if it says so.")
    ] = None
    approval: Annotated[
        call_approvals.ApprovalRef | None,
        pydantic.Field(description="The approval that it waits for. Null: people have not been asked yet."),
    ] = None
    notice: Annotated[
        str | None,
        pydantic.Field(description="What an operator changed in the arguments, if it would run with others."),
    ] = None


class AgentToolkit(ninja.Schema):
    """A toolkit, as an application may show it to the agent's user."""

    key: str
    title: str
    description: str
    members: Annotated[list[str], pydantic.Field(description="The keys of its tools.")]
    default: Annotated[bool, pydantic.Field(description="Whether it is active without being loaded.")]
    state: Annotated[str, pydantic.Field(description="on, loadable, unavailable or off.")]


class AgentToolkits(ninja.Schema):
    """The toolkits that an application may show for an agent, in stored order."""

    items: list[AgentToolkit]


class Origin(ninja.Schema):
    """Where a decision comes from, such as a switch, a loadout or a default."""

    kind: str
    name: str
    detail: str


class RuleAnswer(ninja.Schema):
    """What one rule decides."""

    state: str
    code: str
    origin: Origin


class ExplanationStep(ninja.Schema):
    """One of the rules, in the order in which they are evaluated."""

    question: Annotated[int, pydantic.Field(description="The rule's number.")]
    asks: Annotated[str, pydantic.Field(description="What the rule checks.")]
    answer: Annotated[RuleAnswer | None, pydantic.Field(description="Null if the rule does not apply.")]


class GateStep(ninja.Schema):
    """A gate rule that concerns calls of the tool by the agent."""

    rule: Annotated[str, pydantic.Field(description="The rule's key.")]
    does: Annotated[str, pydantic.Field(description="What it does: `denies when amount > 500`.")]
    observed: Annotated[bool, pydantic.Field(description="Whether what it does is only recorded.")]
    answer: Annotated[
        str,
        pydantic.Field(
            description="`applies`, `does not apply` (it has ended), or `depends` (on the arguments)."
        ),
    ]
    depends_on: Annotated[list[str], pydantic.Field(description="The arguments that it reads.")]


class Explanation(ninja.Schema):
    """The decision for one tool, its reason, and the result of every rule."""

    agent: str
    tool: str
    state: str
    code: str
    because: Annotated[str, pydantic.Field(description="The reason, as a sentence.")]
    origin: Origin
    question: Annotated[int, pydantic.Field(description="The number of the rule that decided.")]
    runner: Annotated[
        str,
        pydantic.Field(
            description="Who runs the tool: `code` (a plugin in Toolbelt), `upstream` (an MCP server) or `client` (the"
            " agent's own program; MCP clients do not see the tool)."
        ),
    ]
    trace: Annotated[list[ExplanationStep], pydantic.Field(description="All rules, in order.")]
    at_the_gate: Annotated[
        list[GateStep], pydantic.Field(description="The gate rules that concern calls of the tool.")
    ]
    rollout: Annotated[
        str,
        pydantic.Field(
            description="The title of the draft that this session has because it is rolled out; empty: none."
        ),
    ]


@router.get(
    "/agents/{agent}/surface",
    auth=auth.agent,
    response={200: surfaces.Surface, 304: None, **problems.documented(409)},
)
def get_surface(request: HttpRequest, agent: str, query: params.Query[SurfaceRequest]) -> HttpResponse:
    """Retrieve the surface of a request: the tools, the policy and everything else that the model receives.

    The response's ETag is the surface's fingerprint. Send it as If-None-Match: 304 means that nothing the model sees
    has changed. Retrieving a surface never writes anything.
    """
    return _surface(request, agent, query)


@router.post(
    "/agents/{agent}/surface",
    auth=auth.agent,
    response={200: surfaces.Surface, **problems.documented(409)},
)
def ask_for_surface(request: HttpRequest, agent: str, body: SurfaceRequestWithMessage) -> HttpResponse:
    """Retrieve the surface of a request that contains the user's message, or the tools that the model already has."""
    conversation = body.conversation and body.conversation.value()
    return _surface(
        request, agent, body, message=body.message, declared=body.declared, conversation=conversation
    )


@router.post(
    "/agents/{agent}/calls",
    auth=auth.agent_writing,
    response={200: CallResult, **problems.documented(409)},
)
def call_tool(request: HttpRequest, agent: str, body: CallRequest) -> HttpResponse:
    """Call a tool or a meta-tool: `list_toolkits`, `load_tools`, `unload_tools` or `search_tools`.

    A refused or failed call is also a 200 response, with `is_error` and a `code`, so that the model can read it. With
    the header `Prefer: wait=20`, a call that waits for approval is answered once it is decided, or after that time.
    """
    key = body.key(agent)
    request_contexts.check_subagent(auth.bearer(request), key)
    token = body.conversation.token if body.conversation else None
    call = calls.Call(
        key=key,
        tool=body.tool,
        arguments=body.arguments,
        conversation=token or "",
        wait=call_approvals.preferred_wait(request),
    )
    answer = calls.answer_blocking(call, auth.caller(request))
    return HttpResponse(schema.canonical(answer.document()), content_type="application/json")


@router.post(
    "/agents/{agent}/calls/check",
    auth=auth.agent_writing,
    response={200: CallCheck, **problems.documented(409)},
)
def check_call(request: HttpRequest, agent: str, body: CheckRequest) -> HttpResponse:
    """Check what would happen to a call, before it is made.

    Nothing runs, no call is recorded, and no approval is spent. The call itself is checked again: it may be refused
    although this says `run`, after a change for example, and the tool may fail.
    """
    key = body.key(agent)
    request_contexts.check_subagent(auth.bearer(request), key)
    token = body.conversation.token if body.conversation else None
    call = calls.Call(
        key=key, tool=body.tool, arguments=body.arguments, version=body.version, conversation=token or ""
    )
    checked = calls.check(call, auth.caller(request), ask=body.ask)
    return HttpResponse(schema.canonical(checked.document()), content_type="application/json")


@router.get("/agents/{agent}/toolkits", auth=auth.agent, response=AgentToolkits)
def list_agent_toolkits(request: HttpRequest, agent: str, query: params.Query[SurfaceQuery]) -> Any:
    """List the toolkits that an application may show for this agent, with their state."""
    key = query.key(agent)
    request_contexts.check_subagent(auth.bearer(request), key)
    toolkit_list = toolkits.list_visible(key)
    return {"items": [dataclasses.asdict(toolkit) for toolkit in toolkit_list]}


@router.get("/agents/{agent}/tools/{tool}/why", auth=auth.reading(), response=Explanation)
def explain_tool(request: HttpRequest, agent: str, tool: str, query: params.Query[SurfaceQuery]) -> Any:
    """Explain why an agent has a tool, or why it does not."""
    explanation = explain.why(query.key(agent), tool)
    decision = explanation.decision
    return {
        "agent": explanation.agent,
        "tool": decision.tool,
        "state": decision.state,
        "code": decision.code,
        "because": reasons.explain(decision),
        "origin": decision.origin._asdict(),
        "question": decision.rule_number,
        "runner": explanation.runner,
        "rollout": explanation.rollout,
        "trace": [
            {"question": step.rule_number, "asks": step.rule, "answer": _rule_answer(step.answer)}
            for step in explanation.trace
        ],
        "at_the_gate": [
            {
                "rule": step.rule.key,
                "does": gate_rules.in_words(step.rule),
                "observed": step.rule.observed,
                "answer": step.answer,
                "depends_on": step.depends_on,
            }
            for step in explanation.at_the_gate
        ],
    }


def _surface(
    request: HttpRequest, agent: str, requested: SurfaceRequest | SurfaceRequestWithMessage, **more: Any
) -> HttpResponse:
    """Answer what the application in front leaves to Django, or all requests under WSGI."""
    surface_request = prepared_answers.SurfaceRequest(
        requested.key(agent), form=requested.format, model=requested.model, **more
    )
    answer = prepared_answers.answer(auth.bearer(request), surface_request)
    response: Any = None
    if request.method == "GET":
        response = cache.get_conditional_response(request, etag=answer.etag)
    if response is None:
        response = HttpResponse(answer.body(), content_type="application/json")
    for name, value in answer.headers(response.status_code):
        response.headers[name.decode()] = value.decode()
    result: HttpResponse = response
    return result


def _rule_answer(answer: rules.Answer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {"state": answer.state, "code": answer.code, "origin": answer.origin._asdict()}
