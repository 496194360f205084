"""Tests of the policy as a resource that clients can read in full and subscribe to."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, OLDER, Client, Endpoint, Exchange, Request, run
from tests.mcp.streaming import flip, is_quiet, read_opening
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.mcp import protocol
from toolbelt.runtime import surfaces
from toolbelt.runtime.calls import subscriptions
from toolbelt.store import clock

POLICY = "toolbelt://policy"
LOOK = "Look before you answer: kb__find, kb__read."


def read(client: Client) -> str:
    """Return the text of the policy as this client reads it."""
    (content,) = client.ask("resources/read", {"uri": POLICY}).result["contents"]
    assert content["uri"] == POLICY
    text: str = content["text"]
    return text


def instructions(client: Client) -> str:
    method = "server/discover" if client.version == NEW else "initialize"
    text: str = client.ask(method, {"protocolVersion": OLD}).result["instructions"]
    return text


async def set_policy(text: str) -> None:
    """Change the policy of the toolkit ``reading`` without changing the list of tools."""
    await sync_to_async(belts.import_)(
        SETUP, {"toolkits": [{"key": "reading", "members": ["kb__find", "kb__read"], "policy": text}]}
    )


def updates(client: Client) -> Request:
    """Return a request for a stream that announces only changes of the policy."""
    if client.version != NEW:
        return client.stream()
    return client.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": [POLICY]}})


def test_the_policy_starts_with_active_toolkits_for_clients_that_truncate_it(client: Client) -> None:
    belts.import_(
        SETUP,
        {
            "tools": [{"key": "clock", "plugin": "base", "default_on": True, "policy": "Say the zone."}],
            "toolkits": [
                {"key": "absent", "members": ["hidden"], "policy_when_off": "You cannot see hidden things."},
                {"key": "reading", "members": ["kb__find", "kb__read"], "policy": "Read."},
            ],
            "agents": [
                {"key": "ada", "tools": ["clock"], "tools_config": {"absent": False, "reading": True}}
            ],
        },
    )
    parts = ["Read.", "Say the zone.", "You cannot see hidden things."]
    for text in (instructions(client), read(client)):
        assert sorted(parts, key=text.index) == parts
    # The API's own text, and with it the fingerprint, keeps the order of the toolkits.
    of_api = surfaces.ask("ada").policy.text
    assert of_api.index("hidden things") < of_api.index("Read.") < of_api.index("Say the zone.")
    assert len(instructions(client)) == len(of_api)


def test_the_policy_is_listed_and_can_be_read_in_full(client: Client) -> None:
    switches.flip(SETUP, "ada", "reading", True)
    listed = client.ask("resources/list").result
    assert [resource["uri"] for resource in listed["resources"]] == [POLICY]
    assert client.ask("resources/templates/list").result["resourceTemplates"] == []
    assert LOOK in read(client)
    assert read(client) == instructions(client)
    if client.version == NEW:
        for method in ("resources/list", "resources/templates/list"):
            result = client.ask(method).result
            assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "private", 0)


def test_an_agent_without_a_policy_reads_an_empty_resource(client: Client) -> None:
    assert read(client) == ""


def test_an_unknown_resource_is_refused_with_the_revision_s_error(old: Client, new: Client) -> None:
    params = {"uri": "toolbelt://other"}
    assert old.ask("resources/read", params).status_and_code == (200, protocol.RESOURCE_NOT_FOUND)
    assert old.ask("resources/subscribe", params).status_and_code == (200, protocol.RESOURCE_NOT_FOUND)
    assert new.ask("resources/read", params).status_and_code == (400, protocol.INVALID_PARAMS)
    assert new.ask("resources/read", params).error["data"] == params
    assert old.ask("resources/read", {}).status_and_code == (200, protocol.INVALID_PARAMS)


def test_a_name_header_that_contradicts_the_resource_is_refused(new: Client) -> None:
    answer = new.ask("resources/read", {"uri": POLICY}, mcp_name="toolbelt://other")
    assert answer.status_and_code == (400, protocol.HEADER_MISMATCH)


def test_subscribe_requests_do_not_exist_in_the_second_era(new: Client) -> None:
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert new.ask(method, {"uri": POLICY}).status_and_code == (404, protocol.METHOD_NOT_FOUND)


@pytest.mark.parametrize("version", [OLDER, OLD, NEW])
def test_a_subscriber_is_notified_when_only_the_policy_changes(old: Client, version: str) -> None:
    client = dataclasses.replace(old, version=version, session="" if version == NEW else "c1")
    switches.flip(SETUP, "ada", "reading", True)

    async def main() -> tuple[Any, Any]:
        endpoint = client.endpoint
        async with endpoint.serving():
            if version != NEW:
                answer = await endpoint.asend(client.request("resources/subscribe", {"uri": POLICY}))
                assert answer.result == {}
            async with endpoint.open(updates(client)) as stream:
                first = await read_opening(stream, version)
                await set_policy("Look twice.")
                return first, await stream.message()

    first, update = run(main)
    assert (update["method"], update["params"]["uri"]) == (protocol.RESOURCE_UPDATED, POLICY)
    if version == NEW:
        assert first["params"]["notifications"] == {"resourceSubscriptions": [POLICY]}
        assert update["params"]["_meta"] == {protocol.SUBSCRIPTION: 1}
    assert "Look twice." in read(client)


def test_a_switch_change_notifies_of_both_tools_and_policy(old: Client) -> None:
    client = dataclasses.replace(old, session="c1")

    async def main() -> list[str]:
        endpoint = client.endpoint
        async with endpoint.serving(), endpoint.open(client.stream()) as stream:
            await read_opening(stream, OLD)
            await endpoint.asend(client.request("resources/subscribe", {"uri": POLICY}))
            await flip("reading", True)
            return [(await stream.message())["method"] for _ in range(2)]

    assert run(main) == [protocol.LIST_CHANGED, protocol.RESOURCE_UPDATED]


def test_a_client_without_a_subscription_is_not_notified(old: Client, new: Client) -> None:
    other, gone = (dataclasses.replace(old, session=session) for session in ("c1", "c2"))
    switches.flip(SETUP, "ada", "reading", True)

    async def quiet(stream: Exchange, version: str) -> None:
        await read_opening(stream, version)
        await set_policy("Look twice.")
        assert await is_quiet(stream)

    async def main() -> None:
        endpoint = old.endpoint
        async with endpoint.serving():
            await endpoint.asend(gone.request("resources/subscribe", {"uri": POLICY}))
            await endpoint.asend(gone.request("resources/unsubscribe", {"uri": POLICY}))
            for client in (other, gone, new):
                async with endpoint.open(client.listening()) as stream:
                    await quiet(stream, client.version)
                await set_policy("Look.")

    run(main)


def test_a_subscription_applies_in_every_process(old: Client) -> None:
    client = dataclasses.replace(old, session="c1")
    elsewhere = Endpoint(old.endpoint.answers)
    switches.flip(SETUP, "ada", "reading", True)

    async def main() -> str:
        async with old.endpoint.serving(), elsewhere.serving(), elsewhere.open(client.stream()) as stream:
            await read_opening(stream, OLD)
            await client.endpoint.asend(client.request("resources/subscribe", {"uri": POLICY}))
            await set_policy("Look twice.")
            return str((await stream.message())["method"])

    assert run(main) == protocol.RESOURCE_UPDATED


def test_a_reconnecting_subscriber_is_notified_of_missed_changes(old: Client) -> None:
    client = dataclasses.replace(old, session="c1")
    switches.flip(SETUP, "ada", "reading", True)

    async def main() -> str:
        endpoint = client.endpoint
        async with endpoint.serving():
            await endpoint.asend(client.request("resources/subscribe", {"uri": POLICY}))
            async with endpoint.open(client.stream()) as stream:
                last = (await read_opening(stream, OLD))["id"]
            await set_policy("Look twice.")
            async with endpoint.open(client.stream(last_event_id=last)) as stream:
                await read_opening(stream, OLD)
                return str((await stream.message())["method"])

    assert run(main) == protocol.RESOURCE_UPDATED


def test_subscriptions_are_limited_per_token_and_expire_after_a_month(
    old: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_COUNT", 2)
    clients = [dataclasses.replace(old, session=f"c{number}") for number in range(3)]

    def subscribe(client: Client) -> int:
        return client.ask("resources/subscribe", {"uri": POLICY}).status

    assert [subscribe(client) for client in (*clients, clients[0])] == [200, 200, 429, 200]
    with clock.stopped(timezone.now() + dt.timedelta(days=31)):
        subscriptions.add("0" * 64)
    assert models.ResourceSubscription.objects.count() == 1
