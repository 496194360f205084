"""Tests that a tool is gone the moment its grant ends, without a write, over HTTP and MCP alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

import pytest
from asgiref.sync import sync_to_async

from tests.api.conftest import SETUP
from tests.front.conftest import Request as Question
from tests.front.conftest import Server
from tests.mcp.conftest import Client
from tests.mcp.conftest import run as serve
from tests.mcp.streaming import is_quiet, opened
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.people import tokens
from toolbelt.mcp import protocol
from toolbelt.store import clock

NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
TWO = NOON + dt.timedelta(hours=2)
SECOND = dt.timedelta(seconds=1)
LENT = {"kb__find", "kb__read"}


@pytest.fixture(autouse=True)
def noon(stored: None) -> Iterator[None]:
    with clock.stopped(NOON):
        yield


@pytest.fixture(params=["switch", "override"])
def lend(request: pytest.FixtureRequest) -> Callable[[], object]:
    """Return what grants ada something until two, by a switch or by an override."""
    if request.param == "switch":
        return lambda: switches.flip(SETUP, "ada", "reading", True, ends=TWO)
    return lambda: switches.override(SETUP, "ada", "kb__find", True, ends=TWO)


def written() -> int:
    return models.Revision.objects.get().number


def test_it_is_listed_until_its_end_and_then_no_more(client: Client, lend: Callable[[], object]):
    before = client.names()
    lend()
    number = written()
    # Twice each: the first puts down what is kept, the second gets it.
    with clock.stopped(TWO - SECOND):
        for _ in range(2):
            assert LENT & set(client.names())
    with clock.stopped(TWO):
        for _ in range(2):
            assert client.names() == before
    assert written() == number


def test_a_call_is_refused_from_its_end_on(client: Client, lend: Callable[[], object]):
    lend()
    with clock.stopped(TWO - SECOND):
        admitted = client.call("kb__find", {})
        assert "error" not in admitted.json()
    with clock.stopped(TWO):
        assert client.call("kb__find", {}).error["code"] == protocol.INVALID_PARAMS


def test_the_surface_is_without_it_from_its_end_on(ada: str, lend: Callable[[], object]):
    server, question = Server(), Question(token=ada)
    lend()
    with clock.stopped(TWO - SECOND):
        server.warm(question)
        lent = server.ask(question)
        assert not lent.by_django
        assert LENT & set(lent.json()["active_tools"])
    with clock.stopped(TWO):
        again = Question(token=ada, headers={"If-None-Match": lent.header("etag")})
        for after in server.ask_each(again, question, question):
            assert after.status == 200
            assert not LENT & set(after.json()["active_tools"])


def test_open_streams_of_that_agent_alone_are_told_at_its_end(client: Client, lend: Callable[[], object]):
    bob = Client(
        endpoint=client.endpoint,
        token=tokens.issue(SETUP, agent="bob").text,
        version=client.version,
        path="/mcp/bob",
    )
    lend()
    number = written()

    async def main() -> None:
        endpoint = client.endpoint
        async with (
            endpoint.serving(),
            endpoint.open(client.listening()) as hers,
            endpoint.open(bob.listening()) as his,
        ):
            await opened(hers, client.version)
            await opened(his, client.version)
            assert await is_quiet(hers)
            with clock.stopped(TWO):
                assert (await hers.message())["method"] == protocol.LIST_CHANGED
                answer = await endpoint.asend(client.request("tools/list"))
                assert not LENT & {tool["name"] for tool in answer.result["tools"]}
                assert await is_quiet(his)
                assert await is_quiet(hers)
                assert await sync_to_async(written)() == number

    serve(main)
