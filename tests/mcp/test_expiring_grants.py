"""Tests that a tool disappears the moment its grant expires, and returns the moment its block ends, without a write,
over HTTP and MCP.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

import pytest
from asgiref.sync import sync_to_async

from tests.api.conftest import SETUP
from tests.front.conftest import Request as SurfaceRequest
from tests.front.conftest import Server
from tests.mcp.conftest import Client
from tests.mcp.conftest import run as serve
from tests.mcp.streaming import is_quiet, read_opening
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.catalog import blocking
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
def grant(request: pytest.FixtureRequest) -> Callable[[], object]:
    """Return a function that grants ada tools until two, by a switch or by an override."""
    if request.param == "switch":
        return lambda: switches.flip(SETUP, "ada", "reading", True, ends=TWO)
    return lambda: switches.override(SETUP, "ada", "kb__find", True, ends=TWO)


def revision_number() -> int:
    return models.Revision.objects.get().number


def test_a_tool_is_listed_until_its_grant_expires(client: Client, grant: Callable[[], object]):
    before = client.names()
    grant()
    number = revision_number()
    # Twice each: the first request fills the cache, the second reads it.
    with clock.stopped(TWO - SECOND):
        for _ in range(2):
            assert LENT & set(client.names())
    with clock.stopped(TWO):
        for _ in range(2):
            assert client.names() == before
    assert revision_number() == number


def test_a_call_is_refused_after_the_grant_expires(client: Client, grant: Callable[[], object]):
    grant()
    with clock.stopped(TWO - SECOND):
        admitted = client.call("kb__find", {})
        assert "error" not in admitted.json()
    with clock.stopped(TWO):
        assert client.call("kb__find", {}).is_unknown


def test_a_surface_omits_the_tool_after_the_grant_expires(ada: str, grant: Callable[[], object]):
    server, request = Server(), SurfaceRequest(token=ada)
    grant()
    with clock.stopped(TWO - SECOND):
        server.warm(request)
        lent = server.ask(request)
        assert not lent.by_django
        assert LENT & set(lent.json()["active_tools"])
    with clock.stopped(TWO):
        again = SurfaceRequest(token=ada, headers={"If-None-Match": lent.header("etag")})
        for after in server.ask_each(again, request, request):
            assert after.status == 200
            assert not LENT & set(after.json()["active_tools"])


def test_only_streams_of_the_agent_are_notified_when_the_grant_expires(
    client: Client, grant: Callable[[], object]
):
    bob = Client(
        endpoint=client.endpoint,
        token=tokens.issue(SETUP, agent="bob").text,
        version=client.version,
        path="/mcp/bob",
    )
    grant()
    number = revision_number()

    async def main() -> None:
        endpoint = client.endpoint
        async with (
            endpoint.serving(),
            endpoint.open(client.listening()) as hers,
            endpoint.open(bob.listening()) as his,
        ):
            await read_opening(hers, client.version)
            await read_opening(his, client.version)
            assert await is_quiet(hers)
            with clock.stopped(TWO):
                assert (await hers.message())["method"] == protocol.LIST_CHANGED
                answer = await endpoint.asend(client.request("tools/list"))
                assert not LENT & {tool["name"] for tool in answer.result["tools"]}
                assert await is_quiet(his)
                assert await is_quiet(hers)
                assert await sync_to_async(revision_number)() == number

    serve(main)


def test_a_tool_is_listed_and_called_again_when_its_block_ends(client: Client):
    switches.flip(SETUP, "ada", "reading", True)
    blocking.set_blocked(SETUP, "toolkit", "reading", True, ends=TWO)
    number = revision_number()
    with clock.stopped(TWO - SECOND):
        for _ in range(2):
            assert not LENT & set(client.names())
            assert client.call("kb__find", {}).is_unknown
    with clock.stopped(TWO):
        for _ in range(2):
            assert set(client.names()) >= LENT
            refusal = client.call("kb__find", {}).result.get("_meta", {}).get("toolbelt/refusal", {})
            assert refusal.get("code") != "unknown-tool"
    assert revision_number() == number


def test_streams_of_its_agents_are_notified_when_a_block_ends(client: Client):
    switches.flip(SETUP, "ada", "reading", True)
    blocking.set_blocked(SETUP, "toolkit", "reading", True, ends=TWO)
    number = revision_number()

    async def main() -> None:
        endpoint = client.endpoint
        async with endpoint.serving(), endpoint.open(client.listening()) as hers:
            await read_opening(hers, client.version)
            assert await is_quiet(hers)
            with clock.stopped(TWO):
                assert (await hers.message())["method"] == protocol.LIST_CHANGED
                answer = await endpoint.asend(client.request("tools/list"))
                assert {tool["name"] for tool in answer.result["tools"]} >= LENT
                assert await is_quiet(hers)
                assert await sync_to_async(revision_number)() == number

    serve(main)
