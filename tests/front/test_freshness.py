"""Tests that every answer reflects the commits of any writer before its request."""

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
from toolbelt.control.catalog import blocking
from toolbelt.control.people import tokens
from toolbelt.runtime import calls
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.store import clock, state_probe


@pytest.fixture(scope="module")
def writer(django_db_setup: None) -> Iterator[Process]:
    """Yield a process that switches a toolkit to each true or false that it reads."""
    process = Process(concurrently.FLIPS)
    yield process
    assert process.end() == 0


class UnreachableProbe:
    """A probe that cannot read the database."""

    async def read(self, *arguments: Any) -> None:
        raise state_probe.UnreachableError("gone")

    async def close(self) -> None:
        pass


def tools(answer: Any) -> list[str]:
    return [name for name in answer.json()["active_tools"] if name.startswith("kb__")]


def test_a_switch_change_by_another_process_applies_to_the_next_request(server, ada, writer):
    request = Request(token=ada)
    for on, expected in ((True, ["kb__find", "kb__read"]), (False, []), (True, ["kb__find", "kb__read"])):
        server.warm(request)
        before = server.ask(request)
        writer.ask("true" if on else "false")
        stale = Request(token=ada, headers={"If-None-Match": before.header("etag")})
        after, again, third = server.ask_each(stale, request, request)
        assert after.status == 200
        assert tools(after) == tools(again) == tools(third) == expected
        assert not before.by_django
        assert not third.by_django


def test_a_switch_change_of_another_agent_keeps_the_prepared_answer(server, ada):
    request = Request(token=ada)
    server.warm(request)
    before = server.ask(request)
    switches.flip(SETUP.replace(confirm=True), "bob", "reading", False)
    after = server.ask(request)
    assert not after.by_django
    assert after.body == before.body


def test_a_toolkit_loaded_in_a_session_is_active_from_the_next_request(server, ada):
    def active_tools(request_id: str) -> Any:
        request = Request(token=ada, query=f"session=s1&request_id={request_id}")
        server.warm(request)
        answer = server.ask(request)
        assert not answer.by_django
        return tools(answer)

    assert active_tools("r1") == []
    calls.run("ada", "load_tools", {"toolkit": "reading"}, session="s1", request_id="r1")
    assert active_tools("r1") == []
    assert active_tools("r2") == ["kb__find", "kb__read"]
    assert active_tools("r1") == []
    calls.run("ada", "unload_tools", {"toolkit": "reading"}, session="s1", request_id="r2")
    assert active_tools("r2") == ["kb__find", "kb__read"]
    assert active_tools("r3") == []


def test_sessions_in_equal_state_share_an_answer_but_keep_their_ids(server, ada):
    server.warm(Request(token=ada, query="session=one&request_id=r1"))
    answer = server.ask(Request(token=ada, query="session=two&request_id=r2"))
    assert not answer.by_django
    assert (answer.json()["session"], answer.json()["request_id"]) == ("two", "r2")


def test_a_revoked_token_is_refused_immediately(server, ada):
    server.warm(Request(token=ada))
    tokens.revoke(SETUP, ada[:11])
    assert server.ask(Request(token=ada)).status == 401


def test_a_deactivated_operator_is_refused(server, olga):
    request = Request(token=olga)
    server.warm(request)
    assert not server.ask(request).by_django
    with connection.cursor() as cursor:
        cursor.execute("UPDATE auth_user SET is_active = %s WHERE username = 'olga'", [False])
    assert server.ask(request).status == 401


def test_a_prepared_answer_ends_a_temporary_switch_on_time(server, ada):
    request = Request(token=ada)
    noon = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
    with clock.stopped(noon):
        switches.flip(SETUP.replace(confirm=True), "ada", "reading", True, ends=noon + dt.timedelta(hours=2))
        server.warm(request)
        before = server.ask(request)
        assert (before.by_django, tools(before)) == (False, ["kb__find", "kb__read"])
    with clock.stopped(noon + dt.timedelta(hours=2)):
        stale = Request(token=ada, headers={"If-None-Match": before.header("etag")})
        after, again = server.ask_each(stale, request)
        assert (after.status, tools(after), tools(again)) == (200, [], [])
        server.warm(request)
        assert (server.ask(request).by_django, tools(server.ask(request))) == (False, [])


def test_a_prepared_answer_ends_a_block_on_time(server, ada):
    request = Request(token=ada)
    noon = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
    with clock.stopped(noon):
        switches.flip(SETUP.replace(confirm=True), "ada", "reading", True)
        blocking.set_blocked(SETUP, "toolkit", "reading", True, ends=noon + dt.timedelta(hours=2))
        server.warm(request)
        before = server.ask(request)
        assert (before.by_django, tools(before)) == (False, [])
    with clock.stopped(noon + dt.timedelta(hours=2)):
        stale = Request(token=ada, headers={"If-None-Match": before.header("etag")})
        after, again = server.ask_each(stale, request)
        assert (after.status, tools(after), tools(again)) == (200, ["kb__find", "kb__read"], tools(after))
        server.warm(request)
        assert (server.ask(request).by_django, tools(server.ask(request))) == (False, tools(after))


def test_a_change_written_in_sql_appears_in_the_next_answer(server, ada):
    request = Request(token=ada)
    server.warm(request)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE toolbelt_tool SET description = 'Say the time.' WHERE key = 'clock'")
    assert b"Say the time." in server.ask(request).body
    server.warm(request)
    answer = server.ask(request)
    assert b"Say the time." in answer.body
    assert not answer.by_django


def test_a_deleted_agent_is_not_found(server, olga):
    request = Request(token=olga, path="/api/v1/agents/bob/surface")
    server.warm(request)
    with connection.cursor() as cursor:
        for table in ("apitoken", "agentrevision", "toolkitswitch", "agenttoolkit"):
            bob = "SELECT id FROM toolbelt_agent WHERE key = 'bob'"
            cursor.execute(f"DELETE FROM toolbelt_{table} WHERE agent_id IN ({bob})")  # noqa: S608
        cursor.execute("DELETE FROM toolbelt_agent WHERE key = 'bob'")
    assert server.ask(request).status == 404


def test_a_failing_probe_falls_back_to_a_thread_or_django(server, ada, monkeypatch):
    request, other = Request(token=ada), Request(token=ada, query="session=other")
    server.warm(request)

    monkeypatch.setattr(server.answers.contexts, "_probe", UnreachableProbe())
    before, first = server.ask(request), server.ask(other)
    assert (before.status, before.by_django, b"stale" in before.body) == (200, False, False)
    assert (first.status, first.by_django, b"stale" in first.body) == (200, True, False)


def test_django_answers_if_no_probe_can_be_opened(stored, ada, monkeypatch):
    monkeypatch.setattr(state_probe, "open_probe", lambda: None)
    server = Server()
    server.warm(Request(token=ada))
    answer = server.ask(Request(token=ada))
    assert answer.by_django
    assert answer.status == 200


def test_without_triggers_each_answer_is_built_again(server, ada, monkeypatch):
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


def test_an_archived_agent_is_refused_from_the_next_request(server, ada, olga):
    own, operator_s = Request(token=ada), Request(token=olga)
    server.warm(own, operator_s)
    assert [answer.status for answer in server.ask_each(own, operator_s)] == [200, 200]
    agents.archive(SETUP.replace(confirm=True), "ada", True)
    for _ in range(2):
        refused, not_found = server.ask_each(own, operator_s)
        assert (refused.status, not_found.status) == (401, 404)
        assert "is archived" in not_found.json()["detail"]
    agents.archive(SETUP, "ada", False)
    assert [answer.status for answer in server.ask_each(own, operator_s, own)] == [200, 200, 200]
