"""Requests are sent as the API expects, repeated only where that is safe, and problems become errors.

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
    """Answers with one thing after the other, the last again and again, and keeps what it was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.asked = list(answers), []  # type: tuple[list[Any], list[httpx.Request]]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


def surface(**headers: str) -> httpx.Response:
    return httpx.Response(200, json=SURFACE, headers=headers)


def problem(status: int, code: str, **more: Any) -> httpx.Response:
    said = {"status": status, "code": code, "detail": "So it is.", **more}
    return httpx.Response(status, json=said, headers={"Content-Type": "application/problem+json"})


class Blocking:
    """Asks from a thread."""

    def __init__(self, server: Server, address: str = "http://tb.example/") -> None:
        self.connection = http.BlockingHttp(
            address, "ada", "tb_secret", transport=httpx.MockTransport(server), pauses=(0, 0)
        )

    def surface(self, run: protocol.Run = RUN, **asked: Any) -> protocol.Document:
        return self.connection.surface(run, **asked)

    def call(self, tool: str, arguments: Any) -> protocol.Document:
        return self.connection.call(RUN, tool, arguments)

    def ask(self, method: str, *args: Any) -> Any:
        return getattr(self.connection, method)(*args)


class Looping:
    """Asks from an event loop."""

    def __init__(self, server: Server, address: str = "http://tb.example/") -> None:
        self.connection = http.Http(
            address, "ada", "tb_secret", transport=httpx.MockTransport(server), pauses=(0, 0)
        )

    def surface(self, run: protocol.Run = RUN, **asked: Any) -> protocol.Document:
        return asyncio.run(self.connection.surface(run, **asked))

    def call(self, tool: str, arguments: Any) -> protocol.Document:
        return asyncio.run(self.connection.call(RUN, tool, arguments))

    def ask(self, method: str, *args: Any) -> Any:
        return asyncio.run(getattr(self.connection, method)(*args))


Connect = Callable[..., Any]


@pytest.fixture(params=[Blocking, Looping])
def connect(request: pytest.FixtureRequest) -> Connect:
    kind: Connect = request.param
    return kind


def test_a_run_has_one_request_and_another_run_another() -> None:
    one, other = protocol.Run.begin("s1"), protocol.Run.begin("s1")
    assert one.session == other.session
    assert one.request_id != other.request_id
    assert protocol.Run(request_id="r").document() == {"request_id": "r"}


def test_each_step_of_a_run_is_a_request_unless_loads_wait_for_the_next_run() -> None:
    run = protocol.Run(session="s1", request_id="r", subagent="explore")
    assert run.at(2).document() == {"session": "s1", "request_id": "r.2", "subagent": "explore"}
    assert run.at(2, "run") == run


def test_a_question_names_the_run_and_the_format_and_carries_the_token(connect: Connect) -> None:
    server = Server(surface())
    assert connect(server).surface(form="gemini") == SURFACE
    (asked,) = server.asked
    assert str(asked.url) == (
        "http://tb.example/api/v1/agents/ada/surface?session=s1&request_id=r1&format=gemini"
    )
    assert (asked.method, asked.headers["Authorization"]) == ("GET", "Bearer tb_secret")


def test_a_message_and_what_was_declared_go_into_the_body(connect: Connect) -> None:
    server = Server(surface())
    connection = connect(server)
    connection.surface(message="Hi?")
    connection.surface(declared={})
    assert [request.method for request in server.asked] == ["POST", "POST"]
    said = [json.loads(request.content) for request in server.asked]
    assert said[0] == {"session": "s1", "request_id": "r1", "message": "Hi?"}
    assert said[1] == {"session": "s1", "request_id": "r1", "declared": {}}


def test_what_still_holds_is_not_sent_again(connect: Connect) -> None:
    server = Server(surface(ETag='"one"'), httpx.Response(304), surface(ETag='"two"'), httpx.Response(304))
    connection = connect(server)
    assert [connection.surface() for _ in range(4)] == [SURFACE] * 4
    seen = [request.headers.get("If-None-Match") for request in server.asked]
    assert seen == [None, '"one"', '"one"', '"two"']


def test_another_run_and_another_format_are_asked_for_anew(connect: Connect) -> None:
    server = Server(surface(ETag='"one"'))
    connection = connect(server)
    connection.surface()
    connection.surface(protocol.Run(session="s1", request_id="r2"))
    connection.surface(form="mcp")
    connection.surface(message="Hi?")
    assert ["If-None-Match" in request.headers for request in server.asked] == [False] * 4


def test_a_call_gives_its_answer_and_a_refusal_is_one(connect: Connect) -> None:
    refused = {"is_error": True, "code": "tool-denied", "message": "No."}
    server = Server(httpx.Response(200, json=refused))
    assert connect(server).call("kb__find", {"q": "x"}) == refused
    (asked,) = server.asked
    assert asked.url.path == "/api/v1/agents/ada/calls"
    assert json.loads(asked.content) == {
        "session": "s1",
        "request_id": "r1",
        "tool": "kb__find",
        "arguments": {"q": "x"},
    }


@pytest.mark.parametrize("missed", [httpx.ConnectError("refused"), httpx.Response(503, text="Restarting.")])
def test_a_question_that_nobody_took_is_asked_again(connect: Connect, missed: Any) -> None:
    server = Server(missed, missed, surface())
    assert connect(server).surface() == SURFACE
    assert len(server.asked) == 3


def test_the_reason_of_a_client_that_ends_its_sentence_is_not_ended_twice(connect: Connect) -> None:
    with pytest.raises(protocol.Unreachable, match=r": No protocol\.$"):
        connect(Server(httpx.ConnectError("No protocol."))).surface()


@pytest.mark.parametrize("missed", [httpx.ConnectError("refused"), httpx.Response(503, text="Restarting.")])
def test_it_is_not_asked_for_ever(connect: Connect, missed: Any) -> None:
    server = Server(missed)
    with pytest.raises(protocol.Unreachable, match=r"http://tb\.example/api/v1/agents/ada"):
        connect(server).surface()
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("lost", "ran"),
    [
        (httpx.ConnectError("refused"), "It was not sent."),
        (httpx.ReadTimeout("slow"), "It may have run."),
        (httpx.ReadError("cut"), "It may have run."),
    ],
)
def test_a_call_is_sent_once_and_what_is_known_of_it_is_said(
    connect: Connect, lost: Exception, ran: str
) -> None:
    server = Server(lost)
    with pytest.raises(protocol.Unreachable) as raised:
        connect(server).call("run", {})
    assert str(raised.value).endswith(ran)
    assert len(server.asked) == 1


def test_a_call_that_met_a_server_going_down_is_not_sent_again(connect: Connect) -> None:
    server = Server(httpx.Response(503, text="Restarting."))
    with pytest.raises(protocol.Unreachable):
        connect(server).call("run", {})
    assert len(server.asked) == 1


def test_a_question_that_was_cut_off_is_not_asked_again(connect: Connect) -> None:
    server = Server(httpx.ReadTimeout("slow"))
    with pytest.raises(protocol.Unreachable, match="slow"):
        connect(server).surface()
    assert len(server.asked) == 1


def test_problems_of_input_come_with_their_paths(connect: Connect) -> None:
    errors_ = [{"path": "session", "message": "too long"}]
    with pytest.raises(errors.Invalid) as raised:
        connect(Server(problem(422, "invalid", errors=errors_))).surface()
    assert raised.value.problems == (errors.Problem(path="session", message="too long"),)


def test_what_a_provider_does_not_take_is_named(connect: Connect) -> None:
    errors_ = [{"path": "tools", "message": "129 tools are active"}]
    with pytest.raises(errors.ProviderLimit, match="129 tools are active"):
        connect(Server(problem(409, "provider-limit", errors=errors_))).surface(form="openai_chat")


def test_an_unknown_agent_is_not_found_and_the_nearest_is_named(connect: Connect) -> None:
    with pytest.raises(errors.NotFound, match=r"There is no agent named 'ada'\. Did you mean adam\?"):
        connect(Server(problem(404, "not-found", nearest=["adam"]))).surface()


@pytest.mark.parametrize(("status", "code"), [(401, "unauthenticated"), (403, "forbidden")])
def test_a_token_that_does_not_open_it_is_said_and_never_shown(
    connect: Connect, status: int, code: str
) -> None:
    with pytest.raises(protocol.NotAllowed, match="So it is") as raised:
        connect(Server(problem(status, code))).surface()
    assert raised.value.code == code
    assert "tb_secret" not in repr(raised.value)


def test_whoever_asks_too_often_is_told_when_to_ask_again(connect: Connect) -> None:
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
def test_somebody_elses_answer_asks_for_the_address(connect: Connect, answer: httpx.Response) -> None:
    with pytest.raises(protocol.Unreachable, match="Check the address"):
        connect(Server(answer)).surface()


@pytest.mark.parametrize("arguments", [{"x": float("nan")}, {"x": object()}])
def test_arguments_that_are_not_json_are_not_sent(connect: Connect, arguments: Any) -> None:
    server = Server(surface())
    with pytest.raises(errors.Invalid, match="arguments: not JSON"):
        connect(server).call("run", arguments)
    assert server.asked == []


def test_one_connection_serves_one_event_loop_after_the_other() -> None:
    """Frameworks that are asked from a thread run a loop for each question."""
    server = Server(surface())
    connection = http.Http("http://tb.example/", "ada", "tb_secret", transport=httpx.MockTransport(server))
    for number in range(2):
        run = protocol.Run(request_id=f"r{number}")
        assert asyncio.run(connection.surface(run)) == SURFACE
    assert len(server.asked) == 2


def test_the_twin_for_threads_is_the_one_that_was_given_and_else_one_like_it() -> None:
    given = Blocking(Server(surface())).connection
    assert http.Http("http://tb.example/", "ada", "tb_secret", blocking=given).blocking() is given
    connection = http.Http("http://tb.example/", "ada", "tb_secret")
    assert connection.blocking() is connection.blocking()
    connection.blocking().close()


def test_closing_lets_go_of_the_twin_too() -> None:
    given = Blocking(Server(surface())).connection

    async def ask_and_close() -> None:
        transport = httpx.MockTransport(Server(surface()))
        async with http.Http("http://tb.example/", "ada", "t", transport=transport, blocking=given) as asking:
            await asking.surface(RUN)

    asyncio.run(ask_and_close())
    with pytest.raises(RuntimeError, match="closed"):
        given.surface(RUN)


OUTCOME = protocol.Outcome(code="tool-failed", error="e" * 3000, duration_ms=5, result_bytes=2)


def test_a_declaration_goes_to_the_plugin_and_is_repeated_until_a_server_takes_it(connect: Connect) -> None:
    server = Server(httpx.ConnectError("refused"), httpx.Response(200, json={"keys": {"find": "kb__find"}}))
    declared = connect(server).ask("declare", "my kb", [{"name": "find"}])
    assert declared["keys"] == {"find": "kb__find"}
    asked = server.asked[-1]
    assert (asked.method, asked.url.raw_path) == ("PUT", b"/api/v1/client-plugins/my%20kb/tools")
    assert json.loads(asked.content) == {"tools": [{"name": "find"}]}


def test_a_plugin_that_may_not_be_declared_is_named(connect: Connect) -> None:
    with pytest.raises(errors.NotFound, match="no client plugin named 'kb'"):
        connect(Server(problem(404, "not-found"))).ask("declare", "kb", [])


def test_an_admission_is_asked_for_one_call_of_the_run(connect: Connect) -> None:
    admission = {"is_error": False, "call_id": "c1", "options": None}
    server = Server(httpx.Response(200, json={"calls": [admission]}))
    assert connect(server).ask("admit", RUN, "kb__find", {"q": "x"}) == admission
    assert json.loads(server.asked[0].content) == {
        "session": "s1",
        "request_id": "r1",
        "calls": [{"tool": "kb__find", "arguments": {"q": "x"}}],
    }


def test_an_outcome_is_reported_until_a_response_arrives(connect: Connect) -> None:
    server = Server(httpx.ReadError("cut"), problem(409, "refused"))
    connect(server).ask("report", "c1", OUTCOME)
    assert [request.url.path for request in server.asked] == ["/api/v1/agents/ada/calls/c1/outcome"] * 2
    sent = json.loads(server.asked[0].content)
    assert (sent["outcome"], len(sent["error"]), sent["duration_ms"], sent["result_bytes"]) == (
        "tool-failed",
        2000,
        5,
        2,
    )


def test_a_call_that_ran_without_an_admission_is_recorded_with_its_age(connect: Connect) -> None:
    server = Server(httpx.Response(204))
    connect(server).ask("record", RUN, "kb__find", {}, protocol.Outcome(), 12.4)
    [call] = json.loads(server.asked[0].content)["calls"]
    assert (call["tool"], call["outcome"], call["seconds_ago"]) == ("kb__find", "ok", 12)


def test_a_server_that_cannot_answer_now_is_unreachable(connect: Connect) -> None:
    with pytest.raises(protocol.Unreachable) as raised:
        connect(Server(problem(503, "database-unavailable"))).surface()
    assert raised.value.code == "database-unavailable"
