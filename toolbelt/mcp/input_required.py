"""Questions of upstream servers to modern clients: the call returns the questions, and the client repeats it.

A call that waits for approval is repeated as well, without questions.

If the server keeps no state of the call, its state is sent to the client and back, signed and bound to the call. If the
server waits for the answer, as servers up to 2025-11-25 do, the call waits in the process that runs it. The repeated
call may reach any process: a process that does not run the call stores the answer, and reads the outcome of the call.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from django.core import signing

from toolbelt.core import admitting, schema
from toolbelt.mcp import elicitation, ongoing_call, protocol, results
from toolbelt.plugins.upstream import questions
from toolbelt.runtime import calls

INPUT_REQUIRED = "input_required"
# How long an answer is accepted, in seconds. A server that waits does so for less.
MAX_AGE = 3600
MAX_STATE = 200_000

_SALT = "toolbelt.mcp.input_required"
# Returns the result for the client, or raises ProtocolError.
Result = Callable[[calls.Answer], Awaitable[Mapping[str, Any]]]
# The key of the only question of a server that waits.
_KEY = "question"
# How often a client repeats a call to wait for its approval. The official clients give up after ten repetitions.
MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Required:
    """A question whose answer a call waits for, with its secret id."""

    id: str
    question: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCall:
    """The content of a repeated call: the id and the answer of the question, if a server waits for it.

    ``resumed`` is sent to a server that does not wait. ``round`` is how often it was repeated to wait for its approval.
    """

    id: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)
    resumed: Mapping[str, Any] = field(default_factory=dict)
    round: int = 0


@dataclass(eq=False, slots=True)
class ParkedCall:
    """A call that waits for its client to repeat it."""

    call: ongoing_call.OngoingCall
    task: asyncio.Task[calls.Answer]
    client: RetryingClient
    result: Result


class RetryingClient:
    """A client that repeats a call with the answers to questions."""

    takes_questions = True

    def __init__(
        self,
        open_questions: elicitation.Questions,
        call: ongoing_call.OngoingCall,
        revision: str,
        modes: frozenset[str],
        resumed: Mapping[str, Any],
        log_level: str,
        log: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.revision, self.modes, self.resumed = revision, modes, resumed
        self.log_level, self.log = log_level, log
        self.owner: Hashable = (call.head.token, call.head.agent, call.head.session, call.head.address)
        # The question that it must answer before the call continues.
        self.required: Required | None = None
        # Set when the call is parked: called when it continues for another process, or is given up.
        self.resume_elsewhere: Callable[[str], None] = lambda key: None
        self.give_up: Callable[[], object] = lambda: None
        self._open_questions, self._call = open_questions, call
        self._turn = asyncio.Lock()

    async def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the user's answer, with which the client repeats the call. One question at a time."""
        async with self._turn:
            id_ = elicitation.new_id()
            key = elicitation.key_of(self._call.head, id_)
            async with self._open_questions.opened(key, is_retried=True) as waiting:
                self.required = Required(id_, question)
                self._call.wakeup.set()
                try:
                    answer = await waiting.answered
                except asyncio.CancelledError:
                    if waiting.answered.cancelled():
                        # The process that received the repeated call refused to continue it.
                        self.give_up()
                    raise
                finally:
                    self.required = None
                if waiting.is_elsewhere:
                    self.resume_elsewhere(key)
                return answer


def read(params: Mapping[str, Any], call: ongoing_call.OngoingCall) -> RepeatedCall:
    """Return the content of a repeated call. Raise ProtocolError for a state that does not belong to this call."""
    state, responses = params.get("requestState"), params.get("inputResponses")
    if state is None:
        return RepeatedCall()
    try:
        if not isinstance(state, str) or len(state) > MAX_STATE:
            raise signing.BadSignature
        signed = signing.loads(state, salt=_SALT, max_age=MAX_AGE)
    except signing.BadSignature:
        raise not_open() from None
    if signed["call"] != _digest(call):
        raise not_open()
    answers = responses if isinstance(responses, dict) else {}
    if "round" in signed:
        return RepeatedCall(round=signed["round"])
    if "id" in signed:
        return RepeatedCall(id=signed["id"], answer=_answer(answers.get(_KEY)))
    fields: Mapping[str, Any] = signed["asked"]
    checked = {key: questions.answer(answers[key], fields[key]) for key in fields if key in answers}
    resumed: dict[str, Any] = {"inputResponses": checked}
    if signed["state"] is not None:
        resumed["requestState"] = signed["state"]
    return RepeatedCall(resumed=resumed)


def is_required(answer: calls.Answer) -> TypeGuard[calls.Result]:
    """Return whether a call returned questions."""
    return (
        isinstance(answer, calls.Result)
        and answer.mcp is not None
        and answer.mcp.get("resultType") == INPUT_REQUIRED
    )


def waiting(required: Required, call: ongoing_call.OngoingCall) -> dict[str, Any]:
    """Return the result that contains the question of a server that waits for the answer."""
    state = {"call": _digest(call), "id": required.id}
    return _result({_KEY: {"method": elicitation.METHOD, "params": dict(required.question)}}, state)


def forwarded(answer: calls.Result, call: ongoing_call.OngoingCall) -> dict[str, Any]:
    """Return the result that contains the questions of a server that does not wait."""
    result = answer.mcp or {}
    requests = result["inputRequests"]
    fields = {
        key: {
            "mode": request["params"]["mode"],
            "requestedSchema": {"properties": dict.fromkeys(_fields(request["params"]), 0)},
        }
        for key, request in requests.items()
    }
    state = {"call": _digest(call), "asked": fields, "state": result.get("requestState")}
    return _result(requests, state)


def still_pending(call: ongoing_call.OngoingCall) -> dict[str, Any]:
    """Return the result after which the client repeats a call that waits for approval, at once and without questions.

    Any process answers it: the state has only how often it was repeated.
    """
    state = {"call": _digest(call), "round": call.round + 1}
    result = _result({}, state)
    del result["inputRequests"]
    return result


async def result_of(
    task: asyncio.Task[calls.Answer], call: ongoing_call.OngoingCall, result: Result, *, is_modern: bool
) -> Mapping[str, Any]:
    """Return the result of a call that has ended, or the questions that it returned. Raise ProtocolError."""
    answer = ongoing_call.answer_of(task)
    is_pending = isinstance(answer, admitting.Refusal) and answer.is_pending
    if is_pending and is_modern and call.call.wait and call.round < MAX_ROUNDS:
        return still_pending(call)
    if not is_required(answer):
        return await result(answer)
    if is_modern:
        return forwarded(answer, call)
    # In this era, questions are only returned as an error of the server.
    pages = [request["params"] for request in (answer.mcp or {})["inputRequests"].values()]
    raise protocol.ProtocolError(
        protocol.URL_ELICITATION_REQUIRED,
        "The user has to open a page before this request can succeed.",
        data={"elicitations": pages},
    )


def not_open() -> protocol.ProtocolError:
    """Return the error for an answer to a question that is not open, or no longer open."""
    return protocol.ProtocolError(
        protocol.INVALID_PARAMS,
        "This requestState is not valid for this call, or has expired. Call without it.",
    )


def _result(requests: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    signed = signing.dumps(state, salt=_SALT, compress=True)
    return {
        **results.MODERN,
        "resultType": INPUT_REQUIRED,
        "inputRequests": requests,
        "requestState": signed,
    }


def _fields(question: Mapping[str, Any]) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = question.get("requestedSchema", {}).get("properties", {})
    return fields


def _answer(response: Any) -> Mapping[str, Any]:
    return response if isinstance(response, dict) else elicitation.CANCEL


def _digest(call: ongoing_call.OngoingCall) -> str:
    """Return a digest that identifies a call and its client: a state is valid for no other."""
    head, called = call.head, call.call
    identity = json.dumps([head.token, head.agent, head.session, called.method, called.tool])
    return hashlib.sha256((identity + schema.canonical(called.arguments)).encode()).hexdigest()
