"""What does an agent ask over HTTP? For its surface, for a call, for what it could have; and operators, why."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse
from django.utils import cache
from ninja import params

from toolbelt.api import auth, problems, schemas, surfaces
from toolbelt.core import questions, reasons, schema
from toolbelt.runtime import access, calls, documents, explain, toolkits
from toolbelt.runtime import surfaces as agents_door

router = ninja.Router(tags=["agents: ask and call"])


class Asked(schemas.Query):
    """Which request of which session asks."""

    session: surfaces.Session = None
    request_id: surfaces.Request = None
    subagent: surfaces.Subagent = None


class AskedForSurface(Asked):
    """Which surface is asked for."""

    format: surfaces.Format = None


class AskedWithMessage(schemas.Body):
    """Which surface is asked for, for which message, by whom that was given which tools."""

    session: surfaces.Session = None
    request_id: surfaces.Request = None
    subagent: surfaces.Subagent = None
    format: surfaces.Format = None
    message: Annotated[
        str | None, pydantic.Field(description="The user's, with the first step of a request only.")
    ] = None
    declared: Annotated[
        dict[str, str] | None,
        pydantic.Field(description="What the model was given: name and hash, as `declared` said."),
    ] = None


class Call(schemas.Body):
    """One call of a tool, or of one of Toolbelt's own."""

    session: surfaces.Session = None
    request_id: surfaces.Request = None
    subagent: surfaces.Subagent = None
    tool: Annotated[str, pydantic.Field(max_length=200)]
    arguments: Annotated[Any, pydantic.Field(description="An object that fits the tool's schema.")] = {}


class Called(ninja.Schema):
    """What a call came to: its `content`, or `is_error` with a `code` and what the model may read about it."""

    is_error: bool
    content: dict[str, Any] | None = None
    code: str | None = None
    message: str | None = None
    errors: list[schemas.Wrong] | None = None


class KnownToolkit(ninja.Schema):
    """What a client may know of a toolkit; `state` is on, loadable, unavailable or off."""

    key: str
    title: str
    description: str
    members: list[str]
    default: bool
    state: str


class KnownToolkits(ninja.Schema):
    """The toolkits that the agent's client may know, in their order."""

    items: list[KnownToolkit]


class Origin(ninja.Schema):
    """The one rule that decided."""

    kind: str
    name: str
    detail: str


class Said(ninja.Schema):
    """What a question answered."""

    state: str
    code: str
    origin: Origin


class Step(ninja.Schema):
    """One of the eleven questions; `answer` is null where it does not apply."""

    question: int
    asks: str
    answer: Said | None


class Why(ninja.Schema):
    """The decision for one tool, in words too, and what each question says on the way."""

    agent: str
    tool: str
    state: str
    code: str
    because: str
    origin: Origin
    question: int
    trace: list[Step]


@router.get(
    "/agents/{agent}/surface",
    auth=auth.agent,
    response={200: surfaces.Surface, 304: None, **problems.answers(409)},
)
def get_surface(request: HttpRequest, agent: str, asked: params.Query[AskedForSurface]) -> HttpResponse:
    """Ask for the surface of a request.

    The ETag is the fingerprint: send it back as If-None-Match, and 304 says that nothing has changed that the model
    would see. A question never writes.
    """
    return _surface(request, agent, asked, None, None)


@router.post(
    "/agents/{agent}/surface",
    auth=auth.agent,
    response={200: surfaces.Surface, **problems.answers(409)},
)
def ask_for_surface(request: HttpRequest, agent: str, body: AskedWithMessage) -> HttpResponse:
    """Ask for the surface of a request with the user's message, or with what the model was given before."""
    return _surface(request, agent, body, body.message, body.declared)


@router.post(
    "/agents/{agent}/calls",
    auth=auth.acting,
    response={200: Called, **problems.answers(409)},
)
def call_tool(request: HttpRequest, agent: str, body: Call) -> HttpResponse:
    """Call a tool, or one of Toolbelt's own: list_toolkits, load_tools, unload_tools, search_tools.

    A refusal is an answer, too: 200, with is_error and a code.
    """
    access.check_subagent(auth.bearer(request), agent, body.subagent)
    answer = calls.run(
        agent,
        body.tool,
        body.arguments,
        session=body.session,
        request_id=body.request_id,
        subagent=body.subagent,
        may_call=functools.partial(auth.check_acting, request),
    )
    return _canonical(answer.document())


@router.get("/agents/{agent}/toolkits", auth=auth.agent, response=KnownToolkits)
def list_agent_toolkits(request: HttpRequest, agent: str, asked: params.Query[Asked]) -> Any:
    """List the toolkits that an application may show for this agent, and how each stands."""
    access.check_subagent(auth.bearer(request), agent, asked.subagent)
    known = toolkits.known(agent, asked.session, asked.request_id, asked.subagent)
    return {"items": [dataclasses.asdict(one) for one in known]}


@router.get("/agents/{agent}/tools/{tool}/why", auth=auth.reading(), response=Why)
def explain_tool(request: HttpRequest, agent: str, tool: str, asked: params.Query[Asked]) -> Any:
    """Say why an agent has a tool, or why not."""
    told = explain.why(agent, tool, asked.session, asked.request_id, asked.subagent)
    decision = told.decision
    return {
        "agent": told.agent,
        "tool": decision.tool,
        "state": decision.state,
        "code": decision.code,
        "because": reasons.in_words(decision),
        "origin": decision.origin._asdict(),
        "question": decision.question,
        "trace": [
            {"question": step.question, "asks": step.asks, "answer": _answered(step.answer)}
            for step in told.trace
        ],
    }


def _surface(
    request: HttpRequest,
    agent: str,
    asked: AskedForSurface | AskedWithMessage,
    message: str | None,
    declared: dict[str, str] | None,
) -> HttpResponse:
    access.check_subagent(auth.bearer(request), agent, asked.subagent)
    answer = agents_door.ask(agent, asked.session, asked.request_id, message, asked.subagent)
    etag = f'"{documents.fingerprint(answer, asked.format)}"'
    response: Any = None
    if request.method == "GET":
        # Answers 304 without putting together what would not be sent.
        response = cache.get_conditional_response(request, etag=etag)
    if response is None:
        response = _canonical(documents.of(answer, asked.format, declared))
    response.headers["ETag"] = etag
    # A flip counts at once: what is kept is asked about again, each time.
    response.headers["Cache-Control"] = "private, no-cache"
    cache.patch_vary_headers(response, ["Authorization"])
    sent: HttpResponse = response
    return sent


def _canonical(document: Any) -> HttpResponse:
    return HttpResponse(schema.canonical(document), content_type="application/json")


def _answered(answer: questions.Answer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {"state": answer.state, "code": answer.code, "origin": answer.origin._asdict()}
