"""What does an MCP client get while the database is away: the last known list, marked, and no call."""

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
from toolbelt.runtime import call_judging, calls, prepared_answers

SOON = 8.0


@pytest.fixture
def database(stored: None) -> Iterator[Database]:
    with breaking.breakable() as found:
        yield found


@pytest.fixture
def endpoint(database: Database) -> Endpoint:
    return Endpoint(prepared_answers.answers())


def warm(client: Client) -> Any:
    """Ask until the list is answered from what is kept."""
    client.ask("tools/list")
    return client.ask("tools/list").result


def test_a_client_keeps_its_list_marked_stale_while_the_database_is_away(client, database):
    before = warm(client)
    with database.away():
        begun = time.monotonic()
        answer = client.ask("tools/list")
        assert time.monotonic() - begun < SOON
    assert answer.headers["toolbelt-stale"] == "true"
    assert answer.result["tools"] == before["tools"]
    assert answer.result["_meta"]["toolbelt/stale"] is True


def test_a_handshake_is_answered_from_what_is_known(client, database):
    warm(client)
    method = "server/discover" if client.version == NEW else "initialize"
    params = {
        "protocolVersion": client.version,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    if client.version != NEW:
        # Its list may grow by loading, so it is another one.
        client.ask(method, params)
    with database.away():
        answer = client.ask(method, params)
    assert answer.headers["toolbelt-stale"] == "true"
    assert answer.result["_meta"]["toolbelt/stale"] is True


def test_a_call_is_refused_in_words_and_runs_nothing(client, database, monkeypatch):
    warm(client)
    monkeypatch.setattr(calls, "arun", None)
    with database.away():
        answer = client.call("clock", {})
    assert answer.result["isError"] is True
    assert "cannot be checked" in answer.result["content"][0]["text"]
    assert answer.result["_meta"]["toolbelt/refusal"]["code"] == "tool-unavailable"


def test_a_database_that_goes_away_before_a_tool_runs_refuses_the_call(client, database, monkeypatch):
    warm(client)
    run = call_judging.prepare

    def away(*arguments: Any) -> Any:
        with database.away():
            return run(*arguments)

    monkeypatch.setattr(call_judging, "prepare", away)
    answer = client.call("clock", {})
    assert answer.result["_meta"]["toolbelt/refusal"]["code"] == "tool-unavailable"


def test_a_client_that_is_not_known_is_told_that_the_database_is_away(client, database):
    other = replace(client, token=tokens.issue(SETUP, agent="ada").text)
    with database.away():
        begun = time.monotonic()
        answer = other.ask("tools/list")
        assert time.monotonic() - begun < SOON
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.error["data"]["code"] == "database-unavailable"
    assert answer.error["message"].startswith("The database")


def test_a_ping_is_told_so_too(old, database):
    with database.away():
        answer = old.ask("ping")
    assert (answer.status, answer.error["data"]["code"]) == (503, "database-unavailable")


def test_a_result_is_not_lost_where_the_database_goes_away_while_the_tool_runs(
    client, database, install, monkeypatch
):
    warm(client)
    answer = calls.Result(content={"text": "done"})
    away = database.away()

    async def ran(*arguments: Any, **options: Any) -> calls.Result:
        away.__enter__()
        return answer

    monkeypatch.setattr(calls, "arun", ran)
    try:
        got = client.call("clock", {})
    finally:
        away.__exit__(None, None, None)
    assert got.result["isError"] is False
    assert "done" in got.result["content"][0]["text"]
