"""Tests that an MCP client gets its last list, marked stale, and no calls during a database outage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests import breaking
from tests.api.conftest import SETUP
from tests.breaking import Database
from tests.mcp.conftest import NEW, Client, Endpoint
from toolbelt.control.people import tokens
from toolbelt.runtime import calls
from toolbelt.runtime.calls import arrival
from toolbelt.runtime.surfaces import prepared_answers

MAX_SECONDS = 8.0


@pytest.fixture
def database(stored: None) -> Iterator[Database]:
    with breaking.breakable() as database:
        yield database


@pytest.fixture
def endpoint(database: Database) -> Endpoint:
    return Endpoint(prepared_answers.answers())


def warm(client: Client) -> Any:
    """Request the list until it is cached, and return it."""
    client.ask("tools/list")
    return client.ask("tools/list").result


def test_a_client_keeps_its_list_marked_stale_during_a_database_outage(client, database):
    before = warm(client)
    with database.away():
        start = time.monotonic()
        answer = client.ask("tools/list")
        assert time.monotonic() - start < MAX_SECONDS
    assert answer.headers["toolbelt-stale"] == "true"
    assert answer.result["tools"] == before["tools"]
    assert answer.result["_meta"]["toolbelt/stale"] is True


def test_a_handshake_is_answered_from_the_cache_during_an_outage(client, database):
    warm(client)
    method = "server/discover" if client.version == NEW else "initialize"
    params = {
        "protocolVersion": client.version,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    if client.version != NEW:
        # The handshake uses another list, because it may grow by loading.
        client.ask(method, params)
    with database.away():
        answer = client.ask(method, params)
    assert answer.headers["toolbelt-stale"] == "true"
    assert answer.result["_meta"]["toolbelt/stale"] is True


def test_a_call_is_refused_with_an_explanation_during_an_outage(client, database, monkeypatch):
    warm(client)
    monkeypatch.setattr(calls, "answer", None)
    with database.away():
        answer = client.call("clock", {})
    assert answer.result["isError"] is True
    assert "cannot be checked" in answer.result["content"][0]["text"]
    assert answer.result["_meta"]["toolbelt/refusal"]["code"] == "tool-unavailable"


def test_a_call_is_refused_if_the_database_fails_before_the_tool_runs(client, database, monkeypatch):
    warm(client)
    run = arrival.prepare

    def away(*arguments: Any) -> Any:
        with database.away():
            return run(*arguments)

    monkeypatch.setattr(arrival, "prepare", away)
    answer = client.call("clock", {})
    assert answer.result["_meta"]["toolbelt/refusal"]["code"] == "tool-unavailable"


def test_an_unknown_client_gets_database_unavailable(client, database):
    other = replace(client, token=tokens.issue(SETUP, agent="ada").text)
    with database.away():
        start = time.monotonic()
        answer = other.ask("tools/list")
        assert time.monotonic() - start < MAX_SECONDS
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.error["data"]["code"] == "database-unavailable"
    assert answer.error["message"].startswith("The database")


def test_a_ping_gets_database_unavailable(old, database):
    with database.away():
        answer = old.ask("ping")
    assert (answer.status, answer.error["data"]["code"]) == (503, "database-unavailable")


def test_a_result_is_returned_if_the_database_fails_while_the_tool_runs(
    client, database, install, monkeypatch
):
    warm(client)
    answer = calls.Result(content={"text": "done"})
    away = database.away()

    async def ran(*arguments: Any, **options: Any) -> calls.Result:
        away.__enter__()
        return answer

    monkeypatch.setattr(calls, "answer", ran)
    try:
        response = client.call("clock", {})
    finally:
        away.__exit__(None, None, None)
    assert response.result["isError"] is False
    assert "done" in response.result["content"][0]["text"]
