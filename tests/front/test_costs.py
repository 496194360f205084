"""Tests that a prepared answer costs the ASGI application one reading query and no thread."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.front.conftest import Request, Server
from toolbelt.core.rules import budgets
from toolbelt.runtime import credentials, threads
from toolbelt.store.state_probe import postgresql, sqlite

REQUESTS: tuple[dict[str, Any], ...] = (
    {},
    {"query": "session=s1&request_id=r1"},
    {"query": "session=s1&request_id=r2&format=openai_chat"},
    {"method": "POST", "body": {"session": "s1", "message": "find it", "declared": {}}},
)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements sent to the database outside Django's connection."""
    sent: list[str] = []
    opened = sqlite.StateProbe._cursor

    def traced(probe: Any) -> Any:
        cursor = opened(probe)
        cursor.connection.set_trace_callback(sent.append)
        return cursor

    results = postgresql.StateProbe._results

    async def counted(probe: Any, asked: Any) -> Any:
        sent.append(probe._statement.decode())
        return await results(probe, asked)

    monkeypatch.setattr(sqlite.StateProbe, "_cursor", traced)
    monkeypatch.setattr(postgresql.StateProbe, "_results", counted)
    return sent


def test_a_prepared_answer_costs_one_reading_query(server, ada, statements):
    for asked in REQUESTS:
        request = Request(token=ada, **asked)
        server.warm(request)
        statements.clear()
        with CaptureQueriesContext(connection) as through_django:
            server.ask_each(request)
            # Each event loop opens a probe; every further request in the same loop adds one statement.
            opening = len(statements)
            answers = server.ask_each(*[request] * 4)
        assert [(answer.status, answer.by_django) for answer in answers] == [(200, False)] * 4
        assert len(through_django) == 0
        assert len(statements) == opening + opening + 3
        assert {statement.split()[0] for statement in statements} <= {"SELECT", "PRAGMA"}
        assert not any("=" in statement for statement in statements if statement.startswith("PRAGMA"))


def test_a_prepared_answer_uses_no_thread(server, ada, monkeypatch):
    requests = [Request(token=ada, **asked) for asked in REQUESTS]
    server.warm(*requests)
    hops: list[object] = []

    def hop(loop: Any, executor: Any, *work: Any) -> Any:
        hops.append(work)
        raise AssertionError("a thread")

    monkeypatch.setattr(asyncio.BaseEventLoop, "run_in_executor", hop)
    answers = server.ask_each(*requests)
    assert [answer.by_django for answer in answers] == [False] * len(requests)
    assert hops == []


def test_a_conversation_that_need_be_told_nothing_costs_one_query_and_no_thread(
    server, ada, statements, monkeypatch
):
    body: dict[str, Any] = {"format": "anthropic", "model": "claude-opus-5-5", "conversation": {}}
    begun = server.ask(Request(token=ada, method="POST", body=body)).json()["append"]
    body = {**body, "conversation": {"token": begun["token"]}}
    request = Request(token=ada, method="POST", body=body)
    server.warm(request)
    monkeypatch.setattr(threads, "run", lambda *work: pytest.fail("a thread"))
    statements.clear()
    with CaptureQueriesContext(connection) as through_django:
        first, second = server.ask_each(request, request)
    assert len(through_django) == 0
    assert (first.by_django, second.by_django, first.body) == (False, False, second.body)
    again = first.json()["append"]
    assert (again["prefix"], again["messages"], again["token"]) == (None, [], begun["token"])
    assert len([statement for statement in statements if "SELECT" in statement]) <= 2


def test_a_prepared_answer_is_not_resolved_again(server, ada, monkeypatch):
    server.warm(Request(token=ada, query="session=s1&request_id=r1"))

    def resolve(*anything: Any) -> Any:
        raise AssertionError("resolved again")

    monkeypatch.setattr(budgets, "resolve", resolve)
    answer = server.ask(Request(token=ada, query="session=other&request_id=r2"))
    assert not answer.by_django


def test_the_use_of_a_token_is_recorded(server, ada, monkeypatch):
    server.warm(Request(token=ada))
    monkeypatch.setattr(credentials, "_uses", {})
    answer = server.ask(Request(token=ada))
    assert not answer.by_django
    assert list(credentials._uses) == [ada[:11]]


def test_simultaneous_equal_requests_build_one_answer(ada, monkeypatch):
    from toolbelt.runtime.surfaces import prepared_answers

    server = Server()
    made = prepared_answers._build
    calls: list[object] = []

    def counted(*what: Any) -> Any:
        calls.append(what)
        return made(*what)

    monkeypatch.setattr(prepared_answers, "_build", counted)
    server.ask(Request(token=ada))

    async def answer_concurrently(application: Any, requests: Any) -> Any:
        answers = await asyncio.gather(*(server._answer(application, request) for request in requests))
        server.application.notes.write()
        assert server.answers is not None
        await server.answers.close()
        return answers

    monkeypatch.setattr(server, "_answers", answer_concurrently)
    answers = server.ask_each(*[Request(token=ada)] * 8)
    assert len({answer.body for answer in answers}) == 1
    assert len(calls) == 1
