"""Tests that prompts, resources and questions of a published MCP server reach the agents that may use them.

The official client connects to the server directly and through Toolbelt, in both eras of the protocol.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import kit
import mcp
import mcp_checks
import mcp_types as types
import pytest
from mcp.client import stdio, streamable_http
from mcp.shared import subscriptions

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:resources/.*subscribe")]

PROGRAM = Path(sys.prefix) / "node/node_modules/.bin/mcp-server-everything"
# The demo has a plugin named everything.
KEY = "reference"
PREFIX = f"{KEY}__"
DOCUMENT = "demo://resource/static/document"
FEATURES, STARTUP = f"{DOCUMENT}/features.md", f"{DOCUMENT}/startup.md"
TEXT, BLOB = "demo://resource/dynamic/text/7", "demo://resource/dynamic/blob/7"
TEMPLATE = types.ResourceTemplateReference(uri="demo://resource/dynamic/text/{resourceId}")
PROMPTS: Sequence[tuple[str, dict[str, str]]] = [
    ("simple-prompt", {}),
    ("args-prompt", {"city": "Köln"}),
    ("args-prompt", {"city": "Springfield", "state": "Oregon"}),
    ("completable-prompt", {"department": "Sales", "name": "Eve"}),
    ("resource-prompt", {"resourceType": "Text", "resourceId": "3"}),
    # An error, like the next two: a missing argument, and a value that the server refuses.
    ("args-prompt", {}),
    ("resource-prompt", {"resourceType": "Sound", "resourceId": "3"}),
]
ANSWERS = [
    types.ElicitResult(
        action="accept",
        content={
            "name": "Zoë",
            "check": True,
            "email": "zoe@example.com",
            "birthdate": "2001-02-03",
            "integer": 7,
            "number": 2.5,
            "untitledMultipleSelectEnum": ["Piano", "Bass"],
            "titledSingleSelectEnum": "hero-2",
            "legacyTitledEnum": "pet-3",
        },
    ),
    types.ElicitResult(action="decline"),
    types.ElicitResult(action="cancel"),
]
INVALID_PARAMS, RESOURCE_NOT_FOUND = mcp_checks.INVALID_PARAMS, -32002
# What differs between results, and fields of the protocol itself.
TIME = re.compile(r"\d{1,2}:\d\d:\d\d\s?[AP]M")
PROTOCOL_FIELDS = {"_meta", "resultType", "ttlMs", "cacheScope"}


class Events:
    """The questions that a client received, which it answers, and its notifications."""

    def __init__(self) -> None:
        self.answer = ANSWERS[-1]
        self.questions: list[Any] = []
        self.changes: dict[str, mcp_checks.Changes] = collections.defaultdict(mcp_checks.Changes)
        self.listening = asyncio.Event()

    async def ask(self, context: Any, params: Any) -> types.ElicitResult:
        self.questions.append(params)
        return self.answer

    async def on_message(self, message: Any) -> None:
        match message:
            case types.ResourceUpdatedNotification():
                await self.changes[str(message.params.uri)].record()
            case types.PromptListChangedNotification():
                await self.changes["prompts"].record()
            case types.ResourceListChangedNotification():
                await self.changes["resources"].record()


@contextlib.asynccontextmanager
async def direct(events: Events) -> AsyncIterator[mcp.Client]:
    """Run the server and connect to it."""
    transport = stdio.stdio_client(mcp.StdioServerParameters(command=str(PROGRAM)))
    async with mcp.Client(
        transport, mode="legacy", elicitation_callback=events.ask, message_handler=events.on_message
    ) as client:
        yield client


@contextlib.asynccontextmanager
async def through_toolbelt(mode: str, token: str, events: Events, *watched: str) -> AsyncIterator[mcp.Client]:
    """Connect to Toolbelt in a new session, and subscribe to the lists and to the named resources."""

    async def on_response(response: httpx2.Response) -> None:
        if response.request.method == "GET" and response.is_success:
            events.listening.set()

    hooks = {"response": [on_response]}
    headers = {"Authorization": f"Bearer {token}"}
    address = mcp_checks.address(KEY, kit.session())
    with mcp_checks.single_error():
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60, event_hooks=hooks) as http,
            mcp.Client(
                streamable_http.streamable_http_client(address, http_client=http),
                mode=mode,
                elicitation_callback=events.ask,
                message_handler=events.on_message,
            ) as client,
            listening(client, events, watched),
        ):
            yield client


@contextlib.asynccontextmanager
async def listening(client: mcp.Client, events: Events, watched: Sequence[str]) -> AsyncIterator[None]:
    """Listen for changes, in the way of the client's revision."""
    if client.protocol_version == mcp_checks.HANDSHAKE:
        await mcp_checks.in_time(events.listening.wait())
        for uri in watched:
            await client.subscribe_resource(uri)
        yield
        return
    async with client.listen(
        prompts_list_changed=True, resources_list_changed=True, resource_subscriptions=watched
    ) as stream:
        assert [*(stream.honored.resource_subscriptions or ())] == [*watched]

        async def listen() -> None:
            async for event in stream:
                await events.on_message(subscriptions.event_to_notification(event, {}))

        task = asyncio.create_task(listen())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.fixture(scope="module")
def token() -> Iterator[str]:
    """Let Toolbelt run the server, for a single agent; return that agent's token."""
    kit.manage("mcp", "add", KEY, "--namespace", KEY, "--trust", "--command", str(PROGRAM))
    # The server offers the tools that ask questions only to clients that support elicitation.
    kit.manage("mcp", "elicitation", KEY)
    kit.manage("mcp", "refresh", KEY)
    loadouts = [{"name": KEY, "plugins": [KEY]}]
    agents = [{"key": KEY, "title": "Reference", "loadout": KEY}]
    kit.operator("PUT", "belt", {"loadouts": loadouts, "agents": agents})
    yield kit.operator("POST", "tokens", {"agent": KEY})["text"]
    kit.operator("PATCH", f"plugins/{KEY}", {"changes": {"active": False}, "confirm": True})


@pytest.fixture(params=["legacy", "auto"], ids=[mcp_checks.HANDSHAKE, mcp_checks.MODERN])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.contextmanager
def switched_off(entry: str) -> Iterator[None]:
    """Switch an entry off for the agent, and back on."""
    kit.override(f"{PREFIX}{entry}", False, KEY)
    try:
        yield
    finally:
        kit.override(f"{PREFIX}{entry}", None, KEY)


async def result_of(request: Any) -> Any:
    """Return the result of a request as MCP writes it, or the error's code and message."""
    try:
        return plain(await mcp_checks.in_time(request))
    except mcp.MCPError as error:
        return (error.code, error.message)


def plain(value: Any) -> Any:
    """Return a message as MCP writes it, without fields of the protocol itself."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items() if key not in PROTOCOL_FIELDS}
        case list():
            return [plain(inner) for inner in value]
        case str():
            return TIME.sub("<time>", value)
    return (
        plain(value.model_dump(mode="json", by_alias=True, exclude_none=True))
        if hasattr(value, "model_dump")
        else value
    )


def by_key(key: str, listed: Sequence[Any]) -> dict[str, Any]:
    """Return the listed entries as MCP writes them, by the value of a key."""
    return {entry[key].removeprefix(PREFIX): {**entry, key: ""} for entry in plain([*listed])}


async def prompts(client: mcp.Client, prefix: str = "") -> list[Any]:
    """List the prompts, and get each of them."""
    listed = by_key("name", (await client.list_prompts()).prompts)
    return [
        listed,
        *[await result_of(client.get_prompt(f"{prefix}{name}", arguments)) for name, arguments in PROMPTS],
    ]


async def completions(client: mcp.Client, prefix: str = "") -> list[Any]:
    """Complete arguments of a prompt, one of which depends on another, and of a template."""
    prompt = types.PromptReference(name=f"{prefix}completable-prompt")
    return [
        await result_of(client.complete(prompt, {"name": "department", "value": "S"})),
        await result_of(client.complete(prompt, {"name": "name", "value": ""}, {"department": "Sales"})),
        await result_of(client.complete(prompt, {"name": "name", "value": "Zoë"}, {"department": "Sales"})),
        await result_of(client.complete(TEMPLATE, {"name": "resourceId", "value": "12"})),
        await result_of(client.complete(TEMPLATE, {"name": "resourceId", "value": "twelve"})),
    ]


async def resources(client: mcp.Client) -> list[Any]:
    """List the resources and templates, and read one resource of each kind and two that the server refuses."""
    listed = by_key("uri", (await client.list_resources()).resources)
    listed.pop("toolbelt://policy", None)
    templates = by_key("uriTemplate", (await client.list_resource_templates()).resource_templates)
    read = [await result_of(client.read_resource(uri)) for uri in (FEATURES, TEXT, f"{TEXT}x", f"{BLOB}x")]
    blob = (await client.read_resource(BLOB)).contents[0]
    assert isinstance(blob, types.BlobResourceContents)
    return [listed, templates, *read, blob.mime_type, plain(base64.b64decode(blob.blob).decode())]


async def questions(client: mcp.Client, events: Events, prefix: str = "") -> list[Any]:
    """Let the server ask, and answer in each possible way."""
    results: list[Any] = []
    for events.answer in ANSWERS:
        results.append(await result_of(client.call_tool(f"{prefix}trigger-elicitation-request", {})))
        results.append(plain(events.questions[-1].requested_schema))
    page = {"url": "https://example.com/agree", "elicitationId": "e1", "message": "Please agree."}
    for events.answer in (types.ElicitResult(action="accept"), types.ElicitResult(action="decline")):
        results.append(await result_of(client.call_tool(f"{prefix}trigger-url-elicitation", page)))
        results.append(events.questions[-1].url)
    return results


async def test_prompts_are_listed_and_retrieved_unchanged(mode: str, token: str) -> None:
    async with direct(Events()) as client:
        expected = await prompts(client)
    async with through_toolbelt(mode, token, Events()) as client:
        assert await prompts(client, PREFIX) == expected
    assert "Springfield, Oregon" in str(expected[3])
    assert expected[-2][0] == INVALID_PARAMS


async def test_arguments_are_completed_by_the_server(mode: str, token: str) -> None:
    async with direct(Events()) as client:
        expected = await completions(client)
    async with through_toolbelt(mode, token, Events()) as client:
        assert await completions(client, PREFIX) == expected
    assert [result["completion"]["values"] for result in expected[:3]] == [
        ["Sales", "Support"],
        ["David", "Eve", "Frank"],
        [],
    ]


async def test_resources_are_listed_and_read_unchanged(mode: str, token: str) -> None:
    async with direct(Events()) as client:
        expected = await resources(client)
    async with through_toolbelt(mode, token, Events()) as client:
        assert await resources(client) == expected
    assert "created at <time>" in str(expected[3])


async def test_updates_of_resources_reach_the_subscriber(mode: str, token: str) -> None:
    events = Events()
    async with through_toolbelt(mode, token, events, STARTUP, TEXT) as client:
        await client.call_tool(f"{PREFIX}toggle-subscriber-updates", {})
        await events.changes[STARTUP].wait_for(1)
        await events.changes[TEXT].wait_for(1)
        assert events.changes[FEATURES].count == 0, "the client did not subscribe to this resource"


async def test_the_user_is_asked_and_the_server_gets_the_answer(mode: str, token: str) -> None:
    expected_events, events = Events(), Events()
    async with direct(expected_events) as client:
        expected = await questions(client, expected_events)
    async with through_toolbelt(mode, token, events) as client:
        assert await questions(client, events, PREFIX) == expected
    assert [question.message for question in events.questions] == [
        f"{KEY} asks: {question.message}" for question in expected_events.questions
    ]
    assert "Zoë" in str(expected[0])


@pytest.mark.parametrize(
    ("entry", "name"),
    [("prompt_args-prompt", "args-prompt"), ("prompt_completable-prompt", "completable-prompt")],
)
async def test_a_prompt_that_is_switched_off_is_hidden_and_refused(
    mode: str, token: str, entry: str, name: str
) -> None:
    events = Events()
    missing = types.PromptReference(name=f"{PREFIX}nothing")
    prompt = types.PromptReference(name=f"{PREFIX}{name}")
    argument = {"name": "department", "value": "S"}
    arguments = {"city": "Bonn", "department": "Sales", "name": "Eve"}
    async with through_toolbelt(mode, token, events) as client:
        assert "messages" in await result_of(client.get_prompt(prompt.name, arguments))
        with switched_off(entry):
            await events.changes["prompts"].wait_for(1)
            assert name not in by_key("name", (await client.list_prompts()).prompts)
            code, message = await result_of(client.get_prompt(prompt.name, arguments))
            assert code == INVALID_PARAMS
            unknown = await result_of(client.get_prompt(missing.name, arguments))
            assert unknown == (code, message.replace(prompt.name, missing.name))
            assert await result_of(client.complete(prompt, argument)) == (code, message)
        await events.changes["prompts"].wait_for(2)
        assert "messages" in await result_of(client.get_prompt(prompt.name, arguments))


@pytest.mark.parametrize(
    ("entry", "uri"),
    [("resource_features_md", FEATURES), ("template_Dynamic_Text_Resource", TEXT)],
    ids=["resource", "template"],
)
async def test_a_resource_that_is_switched_off_is_hidden_and_refused(
    mode: str, token: str, entry: str, uri: str
) -> None:
    events = Events()
    async with through_toolbelt(mode, token, events) as client:
        assert "contents" in await result_of(client.read_resource(uri))
        with switched_off(entry):
            await events.changes["resources"].wait_for(1)
            assert uri not in by_key("uri", (await client.list_resources()).resources)
            templates = by_key("uriTemplate", (await client.list_resource_templates()).resource_templates)
            assert (TEMPLATE.uri in templates) == (uri == FEATURES)
            refused = await result_of(client.read_resource(uri))
            assert refused == await result_of(client.read_resource("demo://nothing"))
            assert refused[0] == (RESOURCE_NOT_FOUND if mode == "legacy" else INVALID_PARAMS)
            if mode == "legacy":
                assert await result_of(client.subscribe_resource(uri)) == refused
            else:
                async with client.listen(resource_subscriptions=[uri]) as stream:
                    assert not stream.honored.resource_subscriptions
        await events.changes["resources"].wait_for(2)
        assert "contents" in await result_of(client.read_resource(uri))


async def test_updates_end_when_a_resource_is_switched_off(mode: str, token: str) -> None:
    events = Events()
    async with through_toolbelt(mode, token, events, STARTUP, FEATURES) as client:
        await client.call_tool(f"{PREFIX}toggle-subscriber-updates", {})
        await events.changes[FEATURES].wait_for(1)
        with switched_off("resource_features_md"):
            await events.changes["resources"].wait_for(1)
            before, others = events.changes[FEATURES].count, events.changes[STARTUP].count
            # The server announces both resources alternately.
            await events.changes[STARTUP].wait_for(others + 2)
            assert events.changes[FEATURES].count == before


async def test_the_user_is_not_asked_if_elicitation_is_switched_off(mode: str, token: str) -> None:
    events = Events()
    events.answer = ANSWERS[0]
    async with through_toolbelt(mode, token, events) as client:
        with switched_off("elicitation"):
            refused = await result_of(client.call_tool(f"{PREFIX}trigger-elicitation-request", {}))
        assert events.questions == []
        assert refused["isError"]
        assert "Elicitation not supported" in str(refused)
        allowed = await result_of(client.call_tool(f"{PREFIX}trigger-elicitation-request", {}))
        assert len(events.questions) == 1
        assert "Zoë" in str(allowed)
