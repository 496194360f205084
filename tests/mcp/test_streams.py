"""Tests of the streams that notify clients of changed tools: how each begins, what it sends, and when it ends."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from tests.api.conftest import SETUP
from tests.mcp.conftest import OLD, OLDER, Client, Endpoint, Request, run
from tests.mcp.streaming import flip, is_quiet, read_opening
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.people import tokens
from toolbelt.mcp import list_changes, protocol, streams
from toolbelt.runtime import feed


def test_only_changes_that_affect_the_agent_are_announced(client: Client):
    async def main() -> None:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await read_opening(stream, client.version)
            for on in (True, False, True):
                await flip("reading", on)
                message = await stream.message()
                assert message["method"] == protocol.LIST_CHANGED
            await flip("unknown_to_all", False)
            await sync_to_async(agents.edit)(SETUP, "ada", changes={"title": "Ada"})
            await flip("reading", False, agent="bob")
            assert await is_quiet(stream)

    run(main)


def test_only_streams_of_the_changed_agent_are_notified(client: Client):
    bob = dataclasses.replace(client, token=tokens.issue(SETUP, agent="bob").text, path="/mcp/bob")

    async def main() -> None:
        serving = client.endpoint.serving
        async with (
            serving(),
            client.endpoint.open(client.listening()) as his,
            bob.endpoint.open(bob.listening()) as hers,
        ):
            await read_opening(his, client.version)
            await read_opening(hers, client.version)
            await flip("reading", False, agent="bob")
            assert (await hers.message())["method"] == protocol.LIST_CHANGED
            assert await is_quiet(his)

    run(main)


def test_a_subscription_is_acknowledged_and_named_in_each_message(new: Client):
    async def main() -> list[Any]:
        request = new.request(
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True, "rootsListChanged": True}},
            "listen-1",
        )
        async with new.endpoint.serving(), new.endpoint.open(request) as stream:
            await stream.started()
            first = await stream.message()
            await flip("reading", True)
            second = await stream.message()
            feed.end()
            return [first, second, await stream.message(), await stream.rest()]

    first, second, last, rest = run(main)
    about = {protocol.SUBSCRIPTION: "listen-1"}
    assert first["method"] == protocol.ACKNOWLEDGED
    assert first["params"] == {"notifications": {"toolsListChanged": True}, "_meta": about}
    assert second == {"jsonrpc": "2.0", "method": protocol.LIST_CHANGED, "params": {"_meta": about}}
    assert last["id"] == "listen-1"
    assert last["result"]["_meta"][protocol.SUBSCRIPTION] == "listen-1"
    assert last["result"]["resultType"] == "complete"
    assert rest == b""


def test_a_stream_without_list_subscriptions_gets_no_notifications(new: Client):
    async def main() -> None:
        request = new.request("subscriptions/listen", {"notifications": {}}, "l")
        async with new.endpoint.serving(), new.endpoint.open(request) as stream:
            await stream.started()
            assert (await stream.message())["params"]["notifications"] == {}
            await flip("reading", True)
            assert await is_quiet(stream)

    run(main)


@pytest.mark.parametrize("params", [{}, {"notifications": None}, {"notifications": []}])
def test_a_subscription_without_notifications_is_refused(new: Client, params: Any):
    assert new.ask("subscriptions/listen", params).status_and_code == (400, protocol.INVALID_PARAMS)


def test_a_first_era_stream_opens_in_its_revision_s_form(old: Client):
    async def main() -> list[dict[str, str]]:
        openings = []
        for version in (OLD, OLDER):
            client = dataclasses.replace(old, version=version)
            async with client.endpoint.open(client.stream()) as stream:
                openings.append(await read_opening(stream, version))
        return openings

    primed, plain = run(main)
    assert (primed["retry"], primed["data"]) == ("1000", "")
    assert list_changes.digest_in(primed["id"])
    assert plain == {"retry": "1000", "": "here is what changes"}


def test_a_reopened_stream_announces_missed_changes(old: Client):
    async def main() -> tuple[bool, str]:
        async with old.endpoint.serving():
            async with old.endpoint.open(old.stream()) as stream:
                last = (await read_opening(stream, OLD))["id"]
            async with old.endpoint.open(old.stream(last_event_id=last)) as stream:
                await read_opening(stream, OLD)
                was_quiet = await is_quiet(stream)
            await flip("reading", True)
            # Works in any process, because the id contains the digest of the list.
            elsewhere = Endpoint(old.endpoint.answers)
            async with elsewhere.open(old.stream(last_event_id=last)) as stream:
                await read_opening(stream, OLD)
                return was_quiet, (await stream.message())["method"]

    assert run(main) == (True, protocol.LIST_CHANGED)


def test_a_stream_announces_changes_since_the_handshake(old: Client):
    session = old.ask("initialize", {"protocolVersion": OLD}).headers["mcp-session-id"]
    switches.flip(SETUP, "ada", "reading", True)
    client = dataclasses.replace(old, session=session)

    async def main() -> Any:
        async with client.endpoint.serving(), client.endpoint.open(client.stream()) as stream:
            await read_opening(stream, OLD)
            return await stream.message()

    assert run(main)["method"] == protocol.LIST_CHANGED


def test_each_event_has_a_unique_id(old: Client):
    async def main() -> list[str]:
        async with old.endpoint.serving(), old.endpoint.open(old.stream()) as stream:
            ids = [(await read_opening(stream, OLD))["id"]]
            for on in (True, None):
                await flip("reading", on)
                ids.append((await stream.event())["id"])
            return ids

    ids = run(main)
    assert len(set(ids)) == 3
    assert list_changes.digest_in(ids[0]) == list_changes.digest_in(ids[2]) != list_changes.digest_in(ids[1])


def test_loading_a_toolkit_notifies_only_the_stream_of_its_session(old: Client):
    agents.edit(SETUP, "ada", changes={"mcp_loading": "list"})
    client = dataclasses.replace(old, path="/mcp/ada/s/s1", session="c1")
    other = dataclasses.replace(old, path="/mcp/ada/s/s2", session="c2")

    async def main() -> None:
        endpoint = client.endpoint
        async with (
            endpoint.serving(),
            endpoint.open(client.stream()) as mine,
            endpoint.open(other.stream()) as his,
        ):
            await read_opening(mine, OLD)
            await read_opening(his, OLD)
            loaded = await endpoint.asend(
                client.request("tools/call", {"name": "load_tools", "arguments": {"toolkit": "reading"}})
            )
            assert loaded.headers["content-type"] == "application/json"
            assert (await mine.message())["method"] == protocol.LIST_CHANGED
            assert await is_quiet(his)

    run(main)


def test_a_stream_ends_when_its_token_is_revoked(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 0.05)

    async def main() -> None:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await read_opening(stream, client.version)
            await sync_to_async(tokens.revoke)(SETUP, client.token[:11])
            await asyncio.wait_for(stream.rest(), 20)

    run(main)


def test_an_idle_stream_sends_keep_alives(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 0.02)

    async def main() -> dict[str, str]:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await read_opening(stream, client.version)
            return await stream.event()

    assert run(main) == {"": "still here"}


def test_streams_end_with_the_server_and_leave_no_tasks(client: Client):
    async def main() -> None:
        server = client.endpoint.application.mcp
        async with client.endpoint.serving():
            exchanges = [client.endpoint.exchange(client.listening()) for _ in range(3)]
            for exchange in exchanges:
                await read_opening(exchange, client.version)
            assert len(server.streams) == 3
            feed.end()
            async with asyncio.timeout(20):
                for exchange in exchanges:
                    await exchange.rest()
            assert len(server.streams) == 0
            late = client.endpoint.exchange(client.listening())
            async with asyncio.timeout(20):
                await late.rest()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.sleep(0)
        assert not {task for task in others if not task.done() and "mcp" in repr(task.get_coro())}

    run(main)


def test_ending_a_session_ends_only_its_own_streams(old: Client):
    mine, his = (dataclasses.replace(old, session=session) for session in ("c1", "c2"))

    async def main() -> None:
        endpoint = old.endpoint
        async with endpoint.serving(), endpoint.open(his.stream()) as other:
            await read_opening(other, OLD)
            stream = endpoint.exchange(mine.stream())
            await read_opening(stream, OLD)
            gone = Request(method="DELETE", token=old.token, headers={"mcp-session-id": "c1"})
            assert (await endpoint.asend(gone)).status == 405
            await asyncio.wait_for(stream.rest(), 20)
            await flip("reading", True)
            assert (await other.message())["method"] == protocol.LIST_CHANGED

    run(main)


def test_a_client_over_its_stream_limit_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "MAX_PER_TOKEN", 1)

    async def main() -> Any:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await read_opening(stream, client.version)
            return await client.endpoint.asend(client.listening())

    assert run(main).status == 429


def test_the_stream_of_a_deleted_agent_ends(endpoint: Endpoint, reader: str):
    from toolbelt.control.catalog import entries

    client = Client(endpoint=endpoint, token=reader, path="/mcp/bob")

    async def main() -> None:
        async with endpoint.serving(), endpoint.open(client.stream()) as stream:
            await read_opening(stream, OLD)
            await sync_to_async(entries.remove)(SETUP, "agent", "bob")
            await asyncio.wait_for(stream.rest(), 20)

    run(main)
