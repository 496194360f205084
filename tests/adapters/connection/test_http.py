"""Tests of the HTTP connection: its requests, when it repeats them, and the errors it raises.

Every test runs from an event loop and from a thread that may block.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from toolbelt.adapters.connection import http, protocol
from toolbelt.core import errors

RUN = protocol.Run(session="s1", request_id="r1")
SURFACE = {"active_tools": ["a"], "fingerprint": "sha256:1"}


class Server:
    """Returns the given answers in order, the last one repeatedly, and records the requests."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.requests = list(answers), []  # type: tuple[list[Any], list[httpx.Request]]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


def surface(**headers: str) -> httpx.Response:
    return httpx.Response(200, json=SURFACE, headers=headers)


def problem(status: int, code: str, **more: Any) -> httpx.Response:
    document = {"status": status, "code": code, "detail": "So it is.", **more}
    return httpx.Response(status, json=document, headers={"Content-Type": "application/problem+json"})


class Blocking:
    """Sends requests from a thread."""

    def __init__(self, server: Server, address: str = "http://tb.example/") -> None:
        self.connection = http.BlockingHttp(
            address, "ada", "tb_secret", transport=httpx.MockTransport(server), pauses=(0, 0)
        )

    def surface(self, run: protocol.Run = RUN, **options: Any) -> protocol.Document:
        return self.connection.surface(run, **options)

    def call(self, tool: str, arguments: Any) -> protocol.Document:
        return self.connection.call(RUN, tool, arguments)

    def request(self, method: str, *args: Any) -> Any:
        return getattr(self.connection, method)(*args)


class Async:
    """Sends requests from an event loop."""

    def __init__(self, server: Server, address: str = "http://tb.example/") -> None:
        self.connection = http.Http(
            address, "ada", "tb_secret", transport=httpx.MockTransport(server), pauses=(0, 0)
        )

    def surface(self, run: protocol.Run = RUN, **options: Any) -> protocol.Document:
        return asyncio.run(self.connection.surface(run, **options))

    def call(self, tool: str, arguments: Any) -> protocol.Document:
        return asyncio.run(self.connection.call(RUN, tool, arguments))

    def request(self, method: str, *args: Any) -> Any:
        return asyncio.run(getattr(self.connection, method)(*args))


Connect = Callable[..., Any]


@pytest.fixture(params=[Blocking, Async])
def connect(request: pytest.FixtureRequest) -> Connect:
    kind: Connect = request.param
    return kind


def test_each_run_has_its_own_request_id() -> None:
    first, second = protocol.Run.begin("s1"), protocol.Run.begin("s1")
    assert first.session == second.session
    assert first.request_id != second.request_id
    assert protocol.Run(request_id="r").document() == {"request_id": "r"}


def test_each_step_has_its_own_request_id_unless_loads_apply_from_the_next_run() -> None:
    run = protocol.Run(session="s1", request_id="r", subagent="explore")
    assert run.at(2).document() == {"session": "s1", "request_id": "r.2", "subagent": "explore"}
    assert run.at(2, "run") == run


def test_a_surface_request_contains_the_run_the_format_and_the_token(connect: Connect) -> None:
    server = Server(surface())
    assert connect(server).surface(form="gemini") == SURFACE
    (request,) = server.requests
    assert str(request.url) == (
        "http://tb.example/api/v1/agents/ada/surface?session=s1&request_id=r1&format=gemini"
    )
    assert (request.method, request.headers["Authorization"]) == ("GET", "Bearer tb_secret")


def test_the_message_and_declared_tools_are_sent_in_the_body(connect: Connect) -> None:
    server = Server(surface())
    connection = connect(server)
    connection.surface(message="Hi?")
    connection.surface(declared={})
    assert [request.method for request in server.requests] == ["POST", "POST"]
    bodies = [json.loads(request.content) for request in server.requests]
    assert bodies[0] == {"session": "s1", "request_id": "r1", "message": "Hi?"}
    assert bodies[1] == {"session": "s1", "request_id": "r1", "declared": {}}


def test_an_unchanged_surface_is_not_sent_again(connect: Connect) -> None:
    server = Server(surface(ETag='"one"'), httpx.Response(304), surface(ETag='"two"'), httpx.Response(304))
    connection = connect(server)
    assert [connection.surface() for _ in range(4)] == [SURFACE] * 4
    etags = [request.headers.get("If-None-Match") for request in server.requests]
    assert etags == [None, '"one"', '"one"', '"two"']


def test_an_etag_is_not_reused_for_another_run_format_or_message(connect: Connect) -> None:
    server = Server(surface(ETag='"one"'))
    connection = connect(server)
    connection.surface()
    connection.surface(protocol.Run(session="s1", request_id="r2"))
    connection.surface(form="mcp")
    connection.surface(message="Hi?")
    assert ["If-None-Match" in request.headers for request in server.requests] == [False] * 4


def test_a_refused_call_returns_the_refusal(connect: Connect) -> None:
    refused = {"is_error": True, "code": "tool-denied", "message": "No."}
    server = Server(httpx.Response(200, json=refused))
    assert connect(server).call("kb__find", {"q": "x"}) == refused
    (request,) = server.requests
    # A person may have to approve it.
    assert request.headers["Prefer"] == "wait=20"
    assert request.url.path == "/api/v1/agents/ada/calls"
    assert json.loads(request.content) == {
        "session": "s1",
        "request_id": "r1",
        "tool": "kb__find",
        "arguments": {"q": "x"},
    }


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), httpx.Response(503, text="Restarting.")])
def test_a_surface_request_that_was_not_accepted_is_repeated(connect: Connect, failure: Any) -> None:
    server = Server(failure, failure, surface())
    assert connect(server).surface() == SURFACE
    assert len(server.requests) == 3


def test_a_reason_that_ends_with_a_full_stop_gets_no_second_full_stop(connect: Connect) -> None:
    with pytest.raises(protocol.Unreachable, match=r": No protocol\.$"):
        connect(Server(httpx.ConnectError("No protocol."))).surface()


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), httpx.Response(503, text="Restarting.")])
def test_a_surface_request_is_repeated_at_most_twice(connect: Connect, failure: Any) -> None:
    server = Server(failure)
    with pytest.raises(protocol.Unreachable, match=r"http://tb\.example/api/v1/agents/ada"):
        connect(server).surface()
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("failure", "consequence"),
    [
        (httpx.ConnectError("refused"), "It was not sent."),
        (httpx.ReadTimeout("slow"), "It may have run."),
        (httpx.ReadError("cut"), "It may have run."),
    ],
)
def test_a_failed_call_is_not_repeated_and_the_error_says_whether_it_may_have_run(
    connect: Connect, failure: Exception, consequence: str
) -> None:
    server = Server(failure)
    with pytest.raises(protocol.Unreachable) as raised:
        connect(server).call("run", {})
    assert str(raised.value).endswith(consequence)
    assert len(server.requests) == 1


def test_a_call_to_a_restarting_server_is_not_repeated(connect: Connect) -> None:
    server = Server(httpx.Response(503, text="Restarting."))
    with pytest.raises(protocol.Unreachable):
        connect(server).call("run", {})
    assert len(server.requests) == 1


def test_a_surface_request_that_timed_out_is_not_repeated(connect: Connect) -> None:
    server = Server(httpx.ReadTimeout("slow"))
    with pytest.raises(protocol.Unreachable, match="slow"):
        connect(server).surface()
    assert len(server.requests) == 1


def test_validation_errors_include_their_paths(connect: Connect) -> None:
    errors_ = [{"path": "session", "message": "too long"}]
    with pytest.raises(errors.Invalid) as raised:
        connect(Server(problem(422, "invalid", errors=errors_))).surface()
    assert raised.value.problems == (errors.Problem(path="session", message="too long"),)


def test_a_provider_limit_error_names_the_limit(connect: Connect) -> None:
    errors_ = [{"path": "tools", "message": "129 tools are active"}]
    with pytest.raises(errors.ProviderLimit, match="129 tools are active"):
        connect(Server(problem(409, "provider-limit", errors=errors_))).surface(form="openai_chat")


def test_an_unknown_agent_raises_not_found_with_the_nearest_name(connect: Connect) -> None:
    with pytest.raises(errors.NotFound, match=r"There is no agent named 'ada'\. Did you mean adam\?"):
        connect(Server(problem(404, "not-found", nearest=["adam"], detail=""))).surface()


def test_another_agents_token_raises_not_found_with_both_possible_reasons(connect: Connect) -> None:
    detail = str(errors.NotYourAgent("ada"))
    with pytest.raises(errors.NotFound, match="or this token belongs to another agent"):
        connect(Server(problem(404, "not-found", detail=detail))).surface()


@pytest.mark.parametrize(("status", "code"), [(401, "unauthenticated"), (403, "forbidden")])
def test_a_rejected_token_is_reported_without_showing_it(connect: Connect, status: int, code: str) -> None:
    with pytest.raises(protocol.NotAllowed, match="So it is") as raised:
        connect(Server(problem(status, code))).surface()
    assert raised.value.code == code
    assert "tb_secret" not in repr(raised.value)


def test_too_many_requests_are_reported_with_the_time_to_wait(connect: Connect) -> None:
    answer = problem(429, "too-many-requests")
    answer.headers["Retry-After"] = "7"
    with pytest.raises(protocol.TooMany) as raised:
        connect(Server(answer)).surface()
    assert raised.value.retry_after == 7


def test_any_other_problem_keeps_its_code(connect: Connect) -> None:
    with pytest.raises(protocol.Unanswered) as raised:
        connect(Server(problem(500, "internal"))).surface()
    assert raised.value.code == "internal"


@pytest.mark.parametrize(
    "answer", [httpx.Response(200, text="<html>"), httpx.Response(404, json={}), httpx.Response(200, json=[])]
)
def test_an_answer_of_another_server_suggests_checking_the_address(
    connect: Connect, answer: httpx.Response
) -> None:
    with pytest.raises(protocol.Unreachable, match="Check the address"):
        connect(Server(answer)).surface()


@pytest.mark.parametrize("arguments", [{"x": float("nan")}, {"x": object()}])
def test_arguments_that_are_not_json_are_not_sent(connect: Connect, arguments: Any) -> None:
    server = Server(surface())
    with pytest.raises(errors.Invalid, match="arguments: not JSON"):
        connect(server).call("run", arguments)
    assert server.requests == []


def test_a_connection_can_be_used_by_several_event_loops_in_turn() -> None:
    """Frameworks that are called from a thread run a new event loop for each call."""
    server = Server(surface())
    connection = http.Http("http://tb.example/", "ada", "tb_secret", transport=httpx.MockTransport(server))
    for number in range(2):
        run = protocol.Run(request_id=f"r{number}")
        assert asyncio.run(connection.surface(run)) == SURFACE
    assert len(server.requests) == 2


def test_the_blocking_connection_is_given_or_created_once() -> None:
    given = Blocking(Server(surface())).connection
    assert http.Http("http://tb.example/", "ada", "tb_secret", blocking=given).blocking() is given
    connection = http.Http("http://tb.example/", "ada", "tb_secret")
    assert connection.blocking() is connection.blocking()
    connection.blocking().close()


def test_closing_also_closes_the_blocking_connection() -> None:
    given = Blocking(Server(surface())).connection

    async def request_and_close() -> None:
        transport = httpx.MockTransport(Server(surface()))
        async with http.Http(
            "http://tb.example/", "ada", "t", transport=transport, blocking=given
        ) as connection:
            await connection.surface(RUN)

    asyncio.run(request_and_close())
    with pytest.raises(RuntimeError, match="closed"):
        given.surface(RUN)


OUTCOME = protocol.Outcome(code="tool-failed", error="e" * 3000, duration_ms=5, result_bytes=2)


def test_a_declaration_is_sent_to_the_plugin_and_repeated_until_accepted(connect: Connect) -> None:
    server = Server(httpx.ConnectError("refused"), httpx.Response(200, json={"keys": {"find": "kb__find"}}))
    declared = connect(server).request("declare", "my kb", [{"name": "find"}])
    assert declared["keys"] == {"find": "kb__find"}
    request = server.requests[-1]
    assert (request.method, request.url.raw_path) == ("PUT", b"/api/v1/client-plugins/my%20kb/tools")
    assert json.loads(request.content) == {"tools": [{"name": "find"}]}


def test_an_unknown_client_plugin_is_named_in_the_error(connect: Connect) -> None:
    with pytest.raises(errors.NotFound, match="no client plugin named 'kb'"):
        connect(Server(problem(404, "not-found"))).request("declare", "kb", [])


def test_an_admission_request_contains_one_call_of_the_run(connect: Connect) -> None:
    admission = {"is_error": False, "call_id": "c1", "options": None}
    server = Server(httpx.Response(200, json={"calls": [admission]}))
    assert connect(server).request("admit", RUN, "kb__find", {"q": "x"}) == admission
    assert server.requests[0].headers["Prefer"] == "wait=20"
    assert json.loads(server.requests[0].content) == {
        "session": "s1",
        "request_id": "r1",
        "calls": [{"tool": "kb__find", "arguments": {"q": "x"}}],
    }


def test_a_check_is_repeated_until_accepted_and_asks_people_only_if_told_to(connect: Connect) -> None:
    server = Server(httpx.ConnectError("refused"), httpx.Response(200, json={"would": "wait"}))
    connection = connect(server)
    assert connection.request("check", RUN, "kb__find", {"q": "x"}) == {"would": "wait"}
    connection.request("check", RUN, "kb__find", {"q": "x"}, "v2", "token")
    assert {request.url.path for request in server.requests} == {"/api/v1/agents/ada/calls/check"}
    call = {"session": "s1", "request_id": "r1", "tool": "kb__find", "arguments": {"q": "x"}}
    assert [json.loads(request.content) for request in server.requests[1:]] == [
        call,
        {**call, "version": "v2", "conversation": {"token": "token"}},
    ]


def test_an_outcome_is_reported_until_a_response_arrives(connect: Connect) -> None:
    server = Server(httpx.ReadError("cut"), problem(409, "refused"))
    connect(server).request("report", "c1", OUTCOME)
    assert [request.url.path for request in server.requests] == ["/api/v1/agents/ada/calls/c1/outcome"] * 2
    sent = json.loads(server.requests[0].content)
    assert (sent["outcome"], len(sent["error"]), sent["duration_ms"], sent["result_bytes"]) == (
        "tool-failed",
        2000,
        5,
        2,
    )


def test_a_call_that_ran_without_an_admission_is_recorded_with_its_age(connect: Connect) -> None:
    server = Server(httpx.Response(204))
    connect(server).request("record", RUN, "kb__find", {}, protocol.Outcome(), 12.4)
    [call] = json.loads(server.requests[0].content)["calls"]
    assert (call["tool"], call["outcome"], call["seconds_ago"]) == ("kb__find", "ok", 12)


def test_an_unavailable_database_is_reported_as_unreachable(connect: Connect) -> None:
    with pytest.raises(protocol.Unreachable) as raised:
        connect(Server(problem(503, "database-unavailable"))).surface()
    assert raised.value.code == "database-unavailable"
