"""Tests that an agent keeps only its last surface while the database is unavailable."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import async_to_sync

from tests import breaking
from tests.api.conftest import SETUP
from tests.breaking import Database
from tests.front.conftest import ADDRESS, Request, Server
from toolbelt.control.access import switches
from toolbelt.control.people import tokens
from toolbelt.runtime.surfaces import request_contexts
from toolbelt.store import clock, state_probe
from toolbelt.store.state_probe import postgresql

MAX_SECONDS = 8.0


@pytest.fixture
def database(stored: None) -> Iterator[Database]:
    with breaking.breakable() as database:
        yield database


@pytest.fixture
def server(database: Database) -> Server:
    return Server()


def tools(answer: Any) -> list[str]:
    return list(answer.json()["active_tools"])


def test_an_agent_keeps_its_surface_marked_stale_during_a_database_outage(server, ada, database, monkeypatch):
    for module in (request_contexts, postgresql):
        monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    request = Request(token=ada)
    server.warm(request)
    before = server.ask(request)
    with database.away():
        start = time.monotonic()
        answer = server.ask(request)
        assert time.monotonic() - start < MAX_SECONDS
    assert answer.status == 200
    assert answer.header("toolbelt-stale") == "true"
    assert {**before.json(), "stale": True} == answer.json()
    # Caches must not mistake it for the current state later.
    assert answer.header("cache-control") == "private, no-store"
    assert "etag" not in {name.lower().decode() for name, _ in answer.headers}
    after = server.ask(request)
    assert (after.status, "stale" in after.json()) == (200, False)
    assert after.body == before.body


def test_a_known_etag_is_confirmed_as_stale(server, ada, database):
    server.warm(Request(token=ada))
    etag = server.ask(Request(token=ada)).header("etag")
    known = Request(token=ada, headers={"If-None-Match": etag})
    server.ask_each(known, known)
    with database.away():
        answer = server.ask(known)
    assert (answer.status, answer.header("toolbelt-stale"), answer.body) == (304, "true", b"")


def test_repeated_requests_during_an_outage_do_not_reach_the_database(server, ada, database):
    request = Request(token=ada)
    server.warm(request)
    with database.away():
        server.ask(request)
        asked = server.django_requests
        answers = server.ask_each(*[request] * 20)
        assert {answer.status for answer in answers} == {200}
        assert server.django_requests <= asked + 1


def test_a_stale_surface_is_not_served_to_another_token(server, ada, database):
    server.warm(Request(token=ada))
    other = tokens.issue(SETUP, agent="ada").text
    with database.away():
        answer = server.ask(Request(token=other))
        assert (answer.status, answer.json()["code"]) == (503, "database-unavailable")
        stranger = server.ask(Request(token=ada[:11] + "0" * (len(ada) - 11)))
        assert stranger.status in (401, 503)


def test_a_token_that_expires_during_an_outage_gets_no_surface(server, database):
    noon = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
    with clock.stopped(noon):
        token = tokens.issue(SETUP, agent="ada", expires=noon + dt.timedelta(hours=1)).text
        request = Request(token=token)
        server.warm(request)
        with database.away():
            assert server.ask(request).status == 200
    with clock.stopped(noon + dt.timedelta(hours=1)), database.away():
        assert server.ask(request).status == 503


def test_a_temporary_switch_ends_on_time_during_an_outage(server, ada, database):
    request = Request(token=ada)
    noon = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
    with clock.stopped(noon):
        switches.flip(SETUP.replace(confirm=True), "ada", "reading", True, ends=noon + dt.timedelta(hours=2))
        server.warm(request)
        with database.away():
            assert "kb__find" in tools(server.ask(request))
    with clock.stopped(noon + dt.timedelta(hours=2)), database.away():
        answer = server.ask(request)
    assert (answer.status, answer.header("toolbelt-stale")) == (200, "true")
    assert "kb__find" not in tools(answer)


def test_a_surface_older_than_a_change_by_this_server_is_not_served(server, ada, database):
    request = Request(token=ada)
    switches.flip(SETUP.replace(confirm=True), "ada", "reading", True)
    server.warm(request)
    switches.flip(SETUP.replace(confirm=True), "ada", "reading", False)
    with database.away():
        assert server.ask(request).status == 503


def test_a_surface_older_than_a_change_seen_by_another_request_is_not_served(server, ada, database):
    """As when another process wrote it and a second client of the agent has requested its surface since."""
    known, other = Request(token=ada), Request(token=ada, query="session=s")
    switches.flip(SETUP.replace(confirm=True), "ada", "reading", True)
    server.warm(known, other)
    with mock.patch("toolbelt.store.commits.committed"):
        switches.flip(SETUP.replace(confirm=True), "ada", "reading", False)
    server.warm(other)
    with database.away():
        assert server.ask(known).status == 503
        answer = server.ask(other)
    assert (answer.status, "kb__find" in tools(answer)) == (200, False)


def test_a_token_seen_revoked_gets_no_stale_surface(server, ada, database):
    known, other = Request(token=ada), Request(token=ada, query="session=s")
    server.warm(known, other)
    with mock.patch("toolbelt.store.commits.committed"):
        tokens.revoke(SETUP, ada[:11])
    assert server.ask(other).status == 401
    with database.away():
        assert server.ask(known).status == 503


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_stale_surface_expires_after_the_configured_time(server, ada, database, settings, seconds):
    settings.TOOLBELT_STALE_SECONDS = seconds
    request = Request(token=ada)
    server.warm(request)
    now = time.monotonic()
    with (
        database.away(),
        mock.patch(
            "toolbelt.runtime.surfaces.request_contexts.time.monotonic", return_value=now + seconds + 1
        ),
    ):
        assert server.ask(request).status == 503


def test_a_surface_never_requested_before_is_unavailable(server, ada, database):
    server.warm(Request(token=ada))
    with database.away():
        assert server.ask(Request(token=ada, query="session=new")).status == 503


def test_a_hanging_database_does_not_delay_a_stale_answer(server, ada, monkeypatch):
    """As when it is stopped while its connections stay open: Django would wait for it forever."""
    monkeypatch.setattr(request_contexts, "FALLBACK_SECONDS", 0.2)
    request = Request(token=ada)
    server.warm(request)

    class UnreachableProbe:
        async def read(self, *asked: Any) -> None:
            raise state_probe.UnreachableError("no answer within 2 s")

        async def close(self) -> None:
            pass

    def hang(*asked: Any) -> None:
        time.sleep(1)
        raise AssertionError("the fallback was awaited")

    monkeypatch.setattr(server.answers.contexts, "_probe", UnreachableProbe())
    monkeypatch.setattr("toolbelt.runtime.surfaces.of", hang)

    async def ask() -> Any:
        (answer,) = await server._answers(server.application, [request])
        # The server keeps running, and so does the abandoned fallback.
        (left,) = server.answers.contexts._abandoned
        await asyncio.wait({left})
        return answer

    answer = async_to_sync(ask)()
    assert (answer.status, answer.header("toolbelt-stale")) == (200, "true")


def test_a_post_request_gets_a_stale_surface(server, ada, database):
    request = Request(method="POST", path=ADDRESS, token=ada, body={"declared": {}})
    server.warm(request)
    with database.away():
        answer = server.ask(request)
    assert (answer.status, answer.json()["stale"]) == (200, True)
    assert answer.json()["delta"]["added"]


def test_a_stale_answer_tells_a_conversation_the_focus_of_its_message(server, stored, database):
    path, bob = "/api/v1/agents/bob/surface", tokens.issue(SETUP, agent="bob").text
    talk = {"format": "openai_responses", "model": "gpt-5.6", "conversation": {"token": None}}
    request = Request(method="POST", path=path, token=bob, body={**talk, "message": "find it"})
    # The surface is cached without a message, and nothing of a focus with it.
    server.warm(request, Request(method="POST", path=path, token=bob, body=talk))
    before = server.ask(request)
    with database.away():
        answer = server.ask(request)
    assert (answer.status, answer.json()["stale"]) == (200, True)
    assert answer.json()["append"]["request"] == {"tool_choice": {"type": "function", "name": "kb__find"}}
    assert answer.json()["append"] == before.json()["append"]
