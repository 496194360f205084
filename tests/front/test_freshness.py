"""Every answer contains what was committed before its request, by any writer."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from django.db import connection

from tests import concurrently
from tests.api.conftest import SETUP
from tests.front.conftest import Request, Server
from tests.store.conftest import Process
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.people import tokens
from toolbelt.runtime import calls, prepared_answers
from toolbelt.store import clock, state_probe


@pytest.fixture(scope="module")
def writer(django_db_setup: None) -> Iterator[Process]:
    """Yield a process that flips to each true or false that it reads."""
    process = Process(concurrently.FLIPS)
    yield process
    assert process.end() == 0


class Shut:
    """A probe that cannot read the database."""

    async def read(self, *asked: Any) -> None:
        raise state_probe.UnreachableError("gone")

    async def close(self) -> None:
        pass


def tools(answer: Any) -> list[str]:
    return [name for name in answer.json()["active_tools"] if name.startswith("kb__")]


def test_another_process_s_flip_counts_at_the_next_question(server, ada, writer):
    request = Request(token=ada)
    for on, expected in ((True, ["kb__find", "kb__read"]), (False, []), (True, ["kb__find", "kb__read"])):
        server.warm(request)
        before = server.ask(request)
        writer.ask("true" if on else "false")
        stale = Request(token=ada, headers={"If-None-Match": before.header("etag")})
        after, again, third = server.ask_all(stale, request, request)
        assert after.status == 200
        assert tools(after) == tools(again) == tools(third) == expected
        assert not before.by_django
        assert not third.by_django


def test_a_flip_for_another_agent_leaves_the_answer_ready(server, ada):
    request = Request(token=ada)
    server.warm(request)
    before = server.ask(request)
    switches.flip(SETUP.replace(confirm=True), "bob", "reading", False)
    after = server.ask(request)
    assert not after.by_django
    assert after.body == before.body


def test_what_a_session_loads_counts_from_the_next_request(server, ada):
    def asked(request_id: str) -> Any:
        request = Request(token=ada, query=f"session=s1&request_id={request_id}")
        server.warm(request)
        answer = server.ask(request)
        assert not answer.by_django
        return tools(answer)

    assert asked("r1") == []
    calls.run("ada", "load_tools", {"toolkit": "reading"}, session="s1", request_id="r1")
    assert asked("r1") == []
    assert asked("r2") == ["kb__find", "kb__read"]
    assert asked("r1") == []
    calls.run("ada", "unload_tools", {"toolkit": "reading"}, session="s1", request_id="r2")
    assert asked("r2") == ["kb__find", "kb__read"]
    assert asked("r3") == []


def test_sessions_in_one_state_share_one_answer_and_keep_their_names(server, ada):
    server.warm(Request(token=ada, query="session=one&request_id=r1"))
    answer = server.ask(Request(token=ada, query="session=two&request_id=r2"))
    assert not answer.by_django
    assert (answer.json()["session"], answer.json()["request_id"]) == ("two", "r2")


def test_a_token_that_is_revoked_opens_nothing_at_once(server, ada):
    server.warm(Request(token=ada))
    tokens.revoke(SETUP, ada[:11])
    assert server.ask(Request(token=ada)).status == 401


def test_an_operator_who_is_not_active_any_more_gets_no_answer(server, olga):
    request = Request(token=olga)
    server.warm(request)
    assert not server.ask(request).by_django
    with connection.cursor() as cursor:
        cursor.execute("UPDATE auth_user SET is_active = %s WHERE username = 'olga'", [False])
    assert server.ask(request).status == 401


def test_what_ends_is_over_at_its_second_in_an_answer_that_was_ready(server, ada):
    request = Request(token=ada)
    noon = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
    with clock.stopped(noon):
        switches.flip(SETUP.replace(confirm=True), "ada", "reading", True, ends=noon + dt.timedelta(hours=2))
        server.warm(request)
        before = server.ask(request)
        assert (before.by_django, tools(before)) == (False, ["kb__find", "kb__read"])
    with clock.stopped(noon + dt.timedelta(hours=2)):
        stale = Request(token=ada, headers={"If-None-Match": before.header("etag")})
        after, again = server.ask_all(stale, request)
        assert (after.status, tools(after), tools(again)) == (200, [], [])
        server.warm(request)
        assert (server.ask(request).by_django, tools(server.ask(request))) == (False, [])


def test_what_was_written_by_hand_counts_too(server, ada):
    request = Request(token=ada)
    server.warm(request)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE toolbelt_tool SET description = 'Say the time.' WHERE key = 'clock'")
    assert b"Say the time." in server.ask(request).body
    server.warm(request)
    answer = server.ask(request)
    assert b"Say the time." in answer.body
    assert not answer.by_django


def test_an_agent_that_was_deleted_is_not_found(server, olga):
    request = Request(token=olga, path="/api/v1/agents/bob/surface")
    server.warm(request)
    with connection.cursor() as cursor:
        for table in ("apitoken", "agentrevision", "toolkitswitch", "agenttoolkit"):
            bob = "SELECT id FROM toolbelt_agent WHERE key = 'bob'"
            cursor.execute(f"DELETE FROM toolbelt_{table} WHERE agent_id IN ({bob})")  # noqa: S608
        cursor.execute("DELETE FROM toolbelt_agent WHERE key = 'bob'")
    assert server.ask(request).status == 404


def test_a_database_that_cannot_be_looked_at_is_asked_in_a_thread_or_by_django(server, ada, monkeypatch):
    request, other = Request(token=ada), Request(token=ada, query="session=other")
    server.warm(request)

    monkeypatch.setattr(server.answers.contexts, "_probe", Shut())
    before, first = server.ask(request), server.ask(other)
    assert (before.status, before.by_django, b"stale" in before.body) == (200, False, False)
    assert (first.status, first.by_django, b"stale" in first.body) == (200, True, False)


def test_a_database_that_no_other_connection_sees_is_left_to_django(stored, ada, monkeypatch):
    monkeypatch.setattr(state_probe, "open_probe", lambda: None)
    server = Server()
    server.warm(Request(token=ada))
    answer = server.ask(Request(token=ada))
    assert answer.by_django
    assert answer.status == 200


def test_without_triggers_each_answer_is_worked_out_anew(server, ada, monkeypatch):
    work_out = mock.Mock(wraps=prepared_answers.answer)
    monkeypatch.setattr(prepared_answers, "answer", work_out)
    with connection.cursor() as cursor:
        cursor.execute("SELECT catalog_stamp FROM toolbelt_revision")
        (stamp,) = cursor.fetchone()
        cursor.execute("UPDATE toolbelt_revision SET catalog_stamp = ''")
    server.warm(Request(token=ada))
    assert work_out.call_count == 2
    with connection.cursor() as cursor:
        cursor.execute("UPDATE toolbelt_revision SET catalog_stamp = %s", [stamp])


def test_an_agent_that_is_archived_answers_nobody_from_the_next_question_on(server, ada, olga):
    own, operator_s = Request(token=ada), Request(token=olga)
    server.warm(own, operator_s)
    assert [one.status for one in server.ask_all(own, operator_s)] == [200, 200]
    agents.archive(SETUP.replace(confirm=True), "ada", True)
    for _ in range(2):
        gone, told = server.ask_all(own, operator_s)
        assert (gone.status, told.status) == (401, 404)
        assert "is archived" in told.json()["detail"]
    agents.archive(SETUP, "ada", False)
    assert [one.status for one in server.ask_all(own, operator_s, own)] == [200, 200, 200]
