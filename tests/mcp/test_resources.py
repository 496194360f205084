"""The policy as a resource: read whole by clients that cut instructions, and followed by those that subscribe."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, OLDER, Client, Endpoint, Exchange, Request, run
from tests.mcp.streaming import flip, is_quiet, opened
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.mcp import protocol
from toolbelt.runtime import subscriptions, surfaces
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
    """Change the policy of the toolkit ``reading``; the list of tools stays the same."""
    await sync_to_async(belts.import_)(
        SETUP, {"toolkits": [{"key": "reading", "members": ["kb__find", "kb__read"], "policy": text}]}
    )


def updates(client: Client) -> Request:
    """Ask for a stream that tells of the policy and nothing else."""
    if client.version != NEW:
        return client.stream()
    return client.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": [POLICY]}})


def test_clients_that_cut_instructions_are_told_first_what_is_on(client: Client) -> None:
    belts.import_(
        SETUP,
        {
            "tools": [{"key": "clock", "plugin": "base", "default_on": True, "policy": "Say the zone."}],
            "toolkits": [
                {"key": "absent", "members": ["hidden"], "policy_when_off": "You cannot see hidden things."},
                {"key": "reading", "members": ["kb__find", "kb__read"], "policy": "Read."},
            ],
            "agents": [{"key": "ada", "tools": ["clock"], "tools_config": {"reading": True}}],
        },
    )
    parts = ["Read.", "Say the zone.", "You cannot see hidden things."]
    for text in (instructions(client), read(client)):
        assert sorted(parts, key=text.index) == parts
    # The API's own text, and with it the fingerprint, keeps the order of the toolkits.
    of_api = surfaces.ask("ada").policy.text
    assert of_api.index("hidden things") < of_api.index("Read.") < of_api.index("Say the zone.")
    assert len(instructions(client)) == len(of_api)


def test_the_policy_is_listed_and_read_whole(client: Client) -> None:
    switches.flip(SETUP, "ada", "reading", True)
    listed = client.ask("resources/list").result
    assert [one["uri"] for one in listed["resources"]] == [POLICY]
    assert client.ask("resources/templates/list").result["resourceTemplates"] == []
    assert LOOK in read(client)
    assert read(client) == instructions(client)
    if client.version == NEW:
        for method in ("resources/list", "resources/templates/list"):
            found = client.ask(method).result
            assert (found["resultType"], found["cacheScope"], found["ttlMs"]) == ("complete", "private", 0)


def test_an_agent_without_a_policy_reads_an_empty_one(client: Client) -> None:
    assert read(client) == ""


def test_a_resource_that_does_not_exist_is_refused_as_its_revision_says(old: Client, new: Client) -> None:
    asked = {"uri": "toolbelt://other"}
    assert old.ask("resources/read", asked).told == (200, protocol.RESOURCE_NOT_FOUND)
    assert old.ask("resources/subscribe", asked).told == (200, protocol.RESOURCE_NOT_FOUND)
    assert new.ask("resources/read", asked).told == (400, protocol.INVALID_PARAMS)
    assert new.ask("resources/read", asked).error["data"] == asked
    assert old.ask("resources/read", {}).told == (200, protocol.INVALID_PARAMS)


def test_the_header_names_the_resource_that_is_read(new: Client) -> None:
    answer = new.ask("resources/read", {"uri": POLICY}, mcp_name="toolbelt://other")
    assert answer.told == (400, protocol.HEADER_MISMATCH)


def test_subscribing_is_a_request_of_the_first_era_and_part_of_listening_in_the_second(new: Client) -> None:
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert new.ask(method, {"uri": POLICY}).told == (404, protocol.METHOD_NOT_FOUND)


@pytest.mark.parametrize("version", [OLDER, OLD, NEW])
def test_a_subscriber_is_told_when_the_policy_changes_and_the_tools_do_not(old: Client, version: str) -> None:
    client = dataclasses.replace(old, version=version, session="" if version == NEW else "c1")
    switches.flip(SETUP, "ada", "reading", True)

    async def main() -> tuple[Any, Any]:
        endpoint = client.endpoint
        async with endpoint.serving():
            if version != NEW:
                answer = await endpoint.asend(client.request("resources/subscribe", {"uri": POLICY}))
                assert answer.result == {}
            async with endpoint.open(updates(client)) as stream:
                first = await opened(stream, version)
                await set_policy("Look twice.")
                return first, await stream.message()

    first, told = run(main)
    assert (told["method"], told["params"]["uri"]) == (protocol.RESOURCE_UPDATED, POLICY)
    if version == NEW:
        assert first["params"]["notifications"] == {"resourceSubscriptions": [POLICY]}
        assert told["params"]["_meta"] == {protocol.SUBSCRIPTION: 1}
    assert "Look twice." in read(client)


def test_a_flip_that_changes_both_is_told_as_both(old: Client) -> None:
    client = dataclasses.replace(old, session="c1")

    async def main() -> list[str]:
        endpoint = client.endpoint
        async with endpoint.serving(), endpoint.open(client.stream()) as stream:
            await opened(stream, OLD)
            await endpoint.asend(client.request("resources/subscribe", {"uri": POLICY}))
            await flip("reading", True)
            return [(await stream.message())["method"] for _ in range(2)]

    assert run(main) == [protocol.LIST_CHANGED, protocol.RESOURCE_UPDATED]


def test_whoever_did_not_subscribe_or_unsubscribed_is_not_told(old: Client, new: Client) -> None:
    other, gone = (dataclasses.replace(old, session=session) for session in ("c1", "c2"))
    switches.flip(SETUP, "ada", "reading", True)

    async def quiet(stream: Exchange, version: str) -> None:
        await opened(stream, version)
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


def test_a_subscription_that_one_process_takes_is_kept_by_another(old: Client) -> None:
    client = dataclasses.replace(old, session="c1")
    elsewhere = Endpoint(old.endpoint.answers)
    switches.flip(SETUP, "ada", "reading", True)

    async def main() -> str:
        async with old.endpoint.serving(), elsewhere.serving(), elsewhere.open(client.stream()) as stream:
            await opened(stream, OLD)
            await client.endpoint.asend(client.request("resources/subscribe", {"uri": POLICY}))
            await set_policy("Look twice.")
            return str((await stream.message())["method"])

    assert run(main) == protocol.RESOURCE_UPDATED


def test_a_subscriber_that_comes_back_is_told_what_it_missed(old: Client) -> None:
    client = dataclasses.replace(old, session="c1")
    switches.flip(SETUP, "ada", "reading", True)

    async def main() -> str:
        endpoint = client.endpoint
        async with endpoint.serving():
            await endpoint.asend(client.request("resources/subscribe", {"uri": POLICY}))
            async with endpoint.open(client.stream()) as stream:
                last = (await opened(stream, OLD))["id"]
            await set_policy("Look twice.")
            async with endpoint.open(client.stream(last_event_id=last)) as stream:
                await opened(stream, OLD)
                return str((await stream.message())["method"])

    assert run(main) == protocol.RESOURCE_UPDATED


def test_subscriptions_are_limited_per_token_and_end_after_a_month(
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
