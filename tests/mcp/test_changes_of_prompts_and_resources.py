"""Tests that MCP clients are notified when their lists of prompts and resources change, or a resource itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client, Endpoint, run
from tests.mcp.offering import ANSWERS, README, not_found
from tests.mcp.offering import cleared as cleared
from tests.mcp.offering import client as client
from tests.mcp.offering import directory as directory
from tests.mcp.offering import script as script
from tests.mcp.streaming import is_quiet, read_opening
from tests.plugins.upstream import scripting
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.people import tokens
from toolbelt.mcp import protocol
from toolbelt.runtime.calls import subscriptions
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import process_connections
from toolbelt.store import snapshots


def _listening(client: Client) -> Any:
    if client.version != NEW:
        return client.stream()
    notifications = {"promptsListChanged": True, "resourcesListChanged": True}
    return client.request("subscriptions/listen", {"notifications": notifications}, "l")


@pytest.mark.parametrize(
    ("key", "method"),
    [("kb__prompt_sum", protocol.PROMPTS_CHANGED), ("kb__resource_a", protocol.RESOURCES_CHANGED)],
)
def test_clients_are_notified_when_a_switch_change_alters_their_lists(
    client: Client, script: scripting.Script, key: str, method: str
):
    async def main() -> Any:
        async with client.endpoint.serving(), client.endpoint.open(_listening(client)) as stream:
            await read_opening(stream, client.version)
            await sync_to_async(switches.override)(SETUP, "ada", key, False)
            message = await stream.message()
            assert await is_quiet(stream)
            return message

    assert run(main)["method"] == method


def test_clients_are_notified_of_new_prompts_of_a_server(client: Client, directory: Path):
    async def main() -> list[str]:
        async with client.endpoint.serving(), client.endpoint.open(_listening(client)) as stream:
            await read_opening(stream, client.version)
            call = client.request("tools/call", {"name": "kb__announce", "arguments": {}})
            await client.endpoint.asend(call)
            for _ in range(100):
                if "kb__prompt_fresh" in await sync_to_async(lambda: snapshots.catalog().tools)():
                    break
                await asyncio.sleep(0.1)
            await sync_to_async(switches.override)(SETUP, "ada", "kb__prompt_fresh", True)
            return [(await stream.message())["method"]]

    assert run(main) == [protocol.PROMPTS_CHANGED]


def test_a_reconnecting_client_is_notified_of_missed_changes(script: scripting.Script, cleared: None):
    token = tokens.issue(SETUP, agent="ada").text
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=OLD)

    async def main() -> Any:
        async with client.endpoint.serving():
            async with client.endpoint.open(client.stream()) as stream:
                last = (await read_opening(stream, OLD))["id"]
            await sync_to_async(switches.override)(SETUP, "ada", "kb__prompt_sum", False)
            async with client.endpoint.open(client.stream(last_event_id=last)) as stream:
                await read_opening(stream, OLD)
                return await stream.message()

    assert run(main)["method"] == protocol.PROMPTS_CHANGED


def _subscribed(client: Client, *uris: str) -> Any:
    """Return a request for a stream that announces updates of these resources."""
    if client.version != NEW:
        return client.stream()
    return client.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": [*uris]}}, "l")


async def _until(is_so: Any) -> None:
    for _ in range(200):
        if await sync_to_async(is_so)():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the condition was not met in time")


def test_clients_are_notified_of_updates_of_subscribed_resources(client: Client, directory: Path):
    async def main() -> Any:
        async with client.endpoint.serving(), client.endpoint.open(_subscribed(client, README)) as stream:
            first = await read_opening(stream, client.version)
            if client.version == NEW:
                assert first["params"]["notifications"] == {"resourceSubscriptions": [README]}
            else:
                answer = await client.endpoint.asend(client.request("resources/subscribe", {"uri": README}))
                assert answer.status == 200, answer
            result = None
            touch = client.request("tools/call", {"name": "kb__touch", "arguments": {"uri": README}})
            while result is None:
                # The server may not know about the subscription yet.
                await client.endpoint.asend(touch)
                try:
                    async with asyncio.timeout(0.5):
                        result = await stream.message()
                except TimeoutError:
                    continue
            return result

    message = run(main)
    assert (message["method"], message["params"]["uri"]) == (protocol.RESOURCE_UPDATED, README)


def test_repeated_subscriptions_subscribe_once_at_a_server_of_the_first_era(
    client: Client, script: scripting.Script
):
    script.offers({**ANSWERS, "resources/subscribe": {}, "resources/unsubscribe": {}})
    process_connections.stop()

    def methods() -> list[str]:
        return [method for method, _ in script.asked if method.startswith("resources/s")]

    async def main() -> Any:
        async with client.endpoint.serving(), client.endpoint.open(_subscribed(client, "note://a")) as stream:
            await read_opening(stream, client.version)
            if client.version != NEW:
                await client.endpoint.asend(client.request("resources/subscribe", {"uri": "note://a"}))
                await client.endpoint.asend(client.request("resources/subscribe", {"uri": "note://a"}))
            await _until(methods)
            arguments = {"method": protocol.RESOURCE_UPDATED, "params": {"uri": "note://a"}}
            notify = client.request("tools/call", {"name": "kb__notify", "arguments": arguments})
            await client.endpoint.asend(notify)
            message = await stream.message()
            # Updates of a denied resource are no longer sent.
            await sync_to_async(switches.override)(SETUP, "ada", "kb__resource_a", False)
            await client.endpoint.asend(notify)
            if client.version != NEW:
                # A client of this era is notified of all lists.
                assert (await stream.message())["method"] == protocol.RESOURCES_CHANGED
            assert await is_quiet(stream)
            return message

    message = run(main)
    assert message["params"]["uri"] == "note://a"
    assert methods() == ["resources/subscribe"]


def test_unsubscribing_ends_the_subscription_at_the_server(script: scripting.Script, cleared: None):
    script.offers({**ANSWERS, "resources/subscribe": {}, "resources/unsubscribe": {}})
    process_connections.stop()
    token = tokens.issue(SETUP, agent="ada").text
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=OLD)

    def methods() -> list[str]:
        return [method for method, _ in script.asked if method.endswith("subscribe")]

    async def main() -> None:
        async with client.endpoint.serving():
            await client.endpoint.asend(client.request("resources/subscribe", {"uri": "note://a"}))
            async with client.endpoint.open(client.stream()) as stream:
                await read_opening(stream, OLD)
                await _until(lambda: methods() == ["resources/subscribe"])
                await client.endpoint.asend(client.request("resources/unsubscribe", {"uri": "note://a"}))
                await _until(lambda: methods() == ["resources/subscribe", "resources/unsubscribe"])

    run(main)
    assert models.ResourceSubscription.objects.count() == 0


def test_a_client_cannot_subscribe_to_a_denied_resource(client: Client, script: scripting.Script):
    switches.override(SETUP, "ada", "kb__resource_a", False)

    async def main() -> Any:
        if client.version != NEW:
            return await client.endpoint.asend(client.request("resources/subscribe", {"uri": "note://a"}))
        async with client.endpoint.serving(), client.endpoint.open(_subscribed(client, "note://a")) as stream:
            return await read_opening(stream, client.version)

    result = run(main)
    if client.version == NEW:
        assert result["params"]["notifications"] == {}
    else:
        assert result.status_and_code == not_found(client, "note://a")
    assert not models.ResourceSubscription.objects.exists()


@pytest.mark.parametrize(
    "more",
    [
        {"capabilities": {"resources": {"listChanged": True}}},
        {"resources/subscribe": {"error": {"code": -32602, "message": "Not of this resource."}}},
    ],
    ids=["announces none", "refuses this one"],
)
def test_a_subscription_is_refused_if_its_server_sends_no_updates(
    client: Client, script: scripting.Script, more: dict[str, Any]
):
    script.offers({**ANSWERS, **more})
    process_connections.stop()

    async def main() -> Any:
        async with client.endpoint.serving():
            if client.version != NEW:
                return await client.endpoint.asend(client.request("resources/subscribe", {"uri": "note://a"}))
            async with client.endpoint.open(_subscribed(client, "note://a")) as stream:
                return await read_opening(stream, client.version)

    result = run(main)
    if client.version == NEW:
        assert result["params"]["notifications"] == {}
    else:
        assert result.error["code"] == protocol.METHOD_NOT_FOUND
        assert result.error["message"].startswith("The server of this resource sends no updates.")
    assert not models.ResourceSubscription.objects.exists()


def test_a_client_may_not_subscribe_to_more_than_its_stream_follows(
    script: scripting.Script, cleared: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(subscriptions, "MAX_FOLLOWED", 1)
    script.offers({**ANSWERS, "resources/subscribe": {}, "resources/unsubscribe": {}})
    process_connections.stop()
    token = tokens.issue(SETUP, agent="ada").text
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=OLD)

    async def main() -> list[int]:
        async with client.endpoint.serving():

            async def status(what: str, uri: str) -> int:
                answer = await client.endpoint.asend(client.request(f"resources/{what}", {"uri": uri}))
                return answer.status

            return [
                await status("subscribe", "note://a"),
                await status("subscribe", "note://b"),
                await status("subscribe", "note://a"),
                await status("unsubscribe", "note://a"),
                await status("subscribe", "note://b"),
            ]

    assert run(main) == [200, 429, 200, 200, 200]


def test_no_client_gets_updates_that_it_has_not_subscribed_to(client: Client, script: scripting.Script):
    script.offers({**ANSWERS, "resources/subscribe": {}, "resources/unsubscribe": {}})
    process_connections.stop()
    arguments = {"method": protocol.RESOURCE_UPDATED, "params": {"uri": "note://b"}}
    updated = client.request("tools/call", {"name": "kb__notify", "arguments": arguments})

    async def main() -> bool:
        async with client.endpoint.serving(), client.endpoint.open(_subscribed(client, "note://a")) as stream:
            await read_opening(stream, client.version)
            if client.version != NEW:
                await client.endpoint.asend(client.request("resources/subscribe", {"uri": "note://a"}))
            await _until(lambda: "resources/subscribe" in [method for method, _ in script.asked])
            await client.endpoint.asend(updated)
            return await is_quiet(stream)

    assert run(main)


def test_a_subscription_is_accepted_while_its_server_cannot_be_asked(
    client: Client, script: scripting.Script
):
    script.is_made("broken")
    process_connections.stop()

    async def main() -> Any:
        async with client.endpoint.serving():
            if client.version != NEW:
                return await client.endpoint.asend(client.request("resources/subscribe", {"uri": "note://a"}))
            async with client.endpoint.open(_subscribed(client, "note://a")) as stream:
                return await read_opening(stream, client.version)

    result = run(main)
    if client.version == NEW:
        assert result["params"]["notifications"] == {"resourceSubscriptions": ["note://a"]}
    else:
        assert result.status == 200
