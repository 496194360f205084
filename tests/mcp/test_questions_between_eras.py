"""Tests of questions of upstream servers of both eras to clients of both eras, whichever process gets the answer."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import mcp
import mcp_types as types
import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError
from mcp.client import streamable_http

from tests import fast_fixtures
from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, Client, Endpoint, run
from tests.mcp.test_elicitation import until
from tests.mcp.test_official_client import served
from tests.plugins.upstream import questioning, scripting
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.mcp import ongoing_call, protocol
from toolbelt.runtime import masking, plugins, threads
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import process_connections, server_lists
from toolbelt.store import snapshots

ENTRY = "desk__elicitation"
KEYS = ("desk__greet", "desk__think", "desk__pay", "desk__prompt_welcome", "desk__template_home")
GREET = {"name": "desk__greet", "arguments": {}}
ANSWERS = {"name": "Ada", "city": "London"}
ELICITATION: dict[str, Any] = {protocol.CAPABILITIES: {"elicitation": {"form": {}}}}
PAGES: dict[str, Any] = {protocol.CAPABILITIES: {"elicitation": {"url": {}}}}
# Requests during which the server asks where the user lives, with parameters and the expected answer.
WELCOME = ("prompts/get", {"name": "desk__welcome"}, "Welcome to London.")
HOME = ("resources/read", {"uri": "home://ada"}, "ada of London.")


@pytest.fixture(scope="module", params=["legacy", "modern"])
def running_server(request: Any) -> Iterator[tuple[str, str]]:
    """Yield the era and the address of a server that asks questions."""
    with questioning.served(is_modern=request.param == "modern") as url:
        yield request.param, url


@pytest.fixture
def server(transactional_db: None, running_server: tuple[str, str]) -> Iterator[str]:
    """Yield the era of a server whose tools are granted to ada and which may ask her."""
    masking.forget()
    era, url = running_server
    fast_fixtures.stored(f"a server that asks at {url}", lambda: add(url))
    process_connections.apply_catalog(snapshots.catalog())
    yield era
    plugins.stop()
    snapshots.forget()


def add(url: str) -> None:
    configured.add(SETUP, "desk", {"url": url}, title="Desk", trusted=True)
    server_lists.refresh(["desk"], lambda name, answer: configured.record(SETUP, name, answer))
    belts.import_(
        SETUP,
        {
            "tools": [{"key": ENTRY, "plugin": "desk", "kind": "elicitation"}],
            "agents": [{"key": "ada", "tools": [*KEYS, ENTRY]}],
        },
    )


@pytest.fixture
def token(server: str) -> str:
    return tokens.issue(SETUP, agent="ada").text


@contextlib.asynccontextmanager
async def official_client(token: str, mode: str, answer: Any) -> AsyncIterator[mcp.Client]:
    """Yield a connected official client that answers questions with this function."""
    endpoint = Endpoint(prepared_answers.answers())
    async with (
        asyncio.timeout(60),
        endpoint.serving(),
        served(endpoint) as address,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        mcp.Client(
            streamable_http.streamable_http_client(f"{address}/mcp/ada", http_client=http),
            mode=mode,
            elicitation_callback=answer,
        ) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_answers_questions_during_a_call(token: str, mode: str):
    questions: list[str] = []

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        questions.append(params.message)
        assert isinstance(params, types.ElicitRequestFormParams)
        (field,) = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={field: ANSWERS[field]})

    async def main() -> types.CallToolResult:
        async with official_client(token, mode, answer) as client:
            return await client.call_tool("desk__greet", {})

    result = async_to_sync(main)()
    assert result.content == [types.TextContent(text="Hello Ada of London.")]
    assert questions == ["Desk asks: Who are you?", "Desk asks: Where do you live, Ada?"]
    assert not models.OpenQuestion.objects.exists()
    assert "Ada" not in str([*models.CallRecord.objects.values()])


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_answers_questions_during_a_prompt_and_a_resource(token: str, mode: str):
    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert params.message == "Desk asks: Where do you live?"
        return types.ElicitResult(action="accept", content={"city": "London"})

    async def main() -> tuple[types.GetPromptResult, types.ReadResourceResult]:
        async with official_client(token, mode, answer) as client:
            return await client.get_prompt("desk__welcome"), await client.read_resource("home://ada")

    prompt, resource = async_to_sync(main)()
    assert prompt.messages[0].content == types.TextContent(text="Welcome to London.")
    assert [getattr(content, "text", "") for content in resource.contents] == ["ada of London."]
    assert not models.OpenQuestion.objects.exists()
    outcomes = models.CallRecord.objects.values_list("tool", "outcome")
    assert {*outcomes} == {(ENTRY, "ok"), ("desk__prompt_welcome", "ok"), ("desk__template_home", "ok")}
    assert "London" not in str([*models.CallRecord.objects.values()])


def ask_and_answer(
    token: str, request: tuple[str, dict[str, Any], str], *, meanwhile: Callable[[], object] = lambda: None
) -> Any:
    """Send a request to one process and repeat it with the answer at another, and return the second response."""
    method, params, _ = request

    async def main() -> Any:
        client, other = client_of(token), client_of(token)
        sent = {**params, "_meta": ELICITATION}
        questions = (await client.endpoint.asend(client.request(method, sent))).result
        await threads.run(meanwhile)
        again = {**sent, **answers_to(questions, city="London")}
        return (await other.endpoint.asend(other.request(method, again))).json()

    return run(main)


@pytest.mark.parametrize("request_", [WELCOME, HOME])
def test_a_prompt_or_resource_can_be_requested_again_from_any_process(
    token: str, request_: tuple[str, dict[str, Any], str]
):
    result = ask_and_answer(token, request_)["result"]
    assert request_[2] in str(result)
    assert result["resultType"] == "complete"
    assert not models.OpenQuestion.objects.exists()


@pytest.mark.parametrize("key", ["desk__prompt_welcome", ENTRY])
def test_a_prompt_switched_off_while_a_question_is_open_is_not_returned(token: str, key: str):
    def flip() -> None:
        switches.override(SETUP.replace(confirm=True), "ada", key, False)

    assert "London" not in str(ask_and_answer(token, WELCOME, meanwhile=flip))


def test_a_prompt_s_request_state_is_refused_for_other_requests(token: str):
    method, params, _ = WELCOME

    async def main() -> Any:
        client = client_of(token)
        questions = (
            await client.endpoint.asend(client.request(method, {**params, "_meta": ELICITATION}))
        ).result
        again = answers_to(questions, city="London")
        other = {**params, "arguments": {"a": "b"}, "_meta": ELICITATION, **again}
        as_tool = {**GREET, "name": "desk__welcome", "_meta": ELICITATION, **again}
        return [
            (await client.endpoint.asend(client.request(*sent))).error["code"]
            for sent in ((method, other), ("tools/call", as_tool))
        ]

    assert run(main) == [protocol.INVALID_PARAMS] * 2


PAGE = {"mode": "url", "message": "Desk asks: Pay first.", "url": "https://pay.example/1"}


def test_required_pages_are_sent_to_a_2026_client_as_questions(token: str):
    client = client_of(token)
    sent = {"name": "desk__pay", "arguments": {}, "_meta": PAGES}

    async def main() -> tuple[Any, Any]:
        questions = (await client.endpoint.asend(client.request("tools/call", sent))).result
        answers = {"inputResponses": {key: {"action": "accept"} for key in questions["inputRequests"]}}
        again = {**sent, "requestState": questions["requestState"], **answers}
        return questions, (await client.endpoint.asend(client.request("tools/call", again))).result

    questions, again = run(main)
    assert [request["params"] for request in questions["inputRequests"].values()] == [PAGE]
    # The server still requires the page.
    assert again["resultType"] == "input_required"


def call_paid_tool(token: str, capabilities: dict[str, Any]) -> Any:
    """Call the tool that requires a page as a client of 2025-11-25 with these capabilities."""
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=token)
    handshake = client.ask("initialize", {"protocolVersion": client.version, "capabilities": capabilities})
    client = dataclasses.replace(client, session=handshake.headers["mcp-session-id"])
    answer = client.call("desk__pay")
    is_stream = answer.headers["content-type"] == "text/event-stream"
    return answer.messages()[-1] if is_stream else answer.json()


def test_required_pages_are_sent_to_a_2025_client_as_an_error(token: str):
    error = call_paid_tool(token, {"elicitation": {"url": {}}})["error"]
    assert error["code"] == protocol.URL_ELICITATION_REQUIRED
    assert error["data"] == {"elicitations": [{**PAGE, "elicitationId": "e1"}]}
    assert (ENTRY, "ok") in models.CallRecord.objects.values_list("tool", "outcome")


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"form": {}}}])
def test_required_pages_are_not_sent_to_a_client_without_the_capability(
    token: str, capabilities: dict[str, Any]
):
    result = call_paid_tool(token, capabilities)["result"]
    assert result["isError"]
    assert "pay.example" not in str(result)


def test_required_pages_are_not_sent_without_a_grant(token: str):
    switches.override(SETUP.replace(confirm=True), "ada", ENTRY, False)
    result = call_paid_tool(token, {"elicitation": {"url": {}}})["result"]
    assert result["isError"]
    assert "pay.example" not in str(result)


def client_of(token: str, endpoint: Endpoint | None = None) -> Client:
    return Client(endpoint=endpoint or Endpoint(prepared_answers.answers()), token=token, version=NEW)


def call(client: Client, again: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """Return a request for the call, or for its repetition with answers."""
    return client.request("tools/call", {**GREET, "_meta": ELICITATION, **(again or {}), **more})


def answers_to(result: Mapping[str, Any], **content: str) -> dict[str, Any]:
    """Return the parameters with which the call is repeated."""
    assert result["resultType"] == "input_required", result
    answer = {"action": "accept", "content": content}
    return {
        "requestState": result["requestState"],
        "inputResponses": dict.fromkeys(result["inputRequests"], answer),
    }


def greet_with(clients: Callable[[], tuple[Client, Client, Client]]) -> Any:
    """Make the call with three clients in turn, each answering the question to the previous client."""

    async def main() -> Any:
        first, second, third = clients()
        questions = (await first.endpoint.asend(call(first))).result
        (request,) = questions["inputRequests"].values()
        assert request["method"] == "elicitation/create"
        assert request["params"]["message"] == "Desk asks: Who are you?"
        again = call(second, answers_to(questions, name="Ada"))
        questions = (await second.endpoint.asend(again)).result
        again = call(third, answers_to(questions, city="London"))
        return (await third.endpoint.asend(again)).result

    return run(main)


def test_a_call_is_repeated_with_the_answers(token: str):
    def clients() -> tuple[Client, Client, Client]:
        client = client_of(token)
        return client, client, client

    result = greet_with(clients)
    assert result["content"] == [{"type": "text", "text": "Hello Ada of London."}]
    assert result["resultType"] == "complete"
    assert not models.OpenQuestion.objects.exists()


@pytest.mark.parametrize("running_server", ["legacy"], indirect=True)
def test_a_call_repeated_during_a_database_outage_can_be_repeated_again(
    token: str, monkeypatch: pytest.MonkeyPatch
):
    async def main() -> Any:
        client = client_of(token)
        questions = (await client.endpoint.asend(call(client))).result
        again = call(client, answers_to(questions, name="Ada"))
        with monkeypatch.context() as away:

            def refusal(_: ongoing_call.OngoingCall) -> None:
                raise DatabaseError("It is away.")

            away.setattr(ongoing_call.OngoingCall, "refusal", refusal)
            with contextlib.suppress(DatabaseError):
                assert (await client.endpoint.asend(again)).status >= 400
        questions = (await client.endpoint.asend(again)).result
        return (await client.endpoint.asend(call(client, answers_to(questions, city="London")))).result

    assert run(main)["content"] == [{"type": "text", "text": "Hello Ada of London."}]


def test_each_repetition_of_a_call_may_reach_another_process(token: str):
    result = greet_with(lambda: (client_of(token), client_of(token), client_of(token)))
    assert result["content"] == [{"type": "text", "text": "Hello Ada of London."}]
    assert not models.OpenQuestion.objects.exists()


@pytest.mark.parametrize("how", ["token", "tool", "arguments", "state"])
def test_a_call_s_request_state_is_refused_for_other_calls(token: str, server: str, how: str):
    async def main() -> Any:
        client = client_of(token)
        questions = (await client.endpoint.asend(call(client))).result
        again = answers_to(questions, name="Eve")
        other = client
        if how == "token":
            issued = await threads.run(lambda: tokens.issue(SETUP, agent="ada").text)
            other = client_of(issued, client.endpoint)
        elif how == "tool":
            again["name"] = "desk__think"
        elif how == "arguments":
            again["arguments"] = {"a": 1}
        else:
            again["requestState"] = again["requestState"][:-1]
        return (await other.endpoint.asend(call(other, again))).error

    assert run(main)["code"] == protocol.INVALID_PARAMS


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("key", ["desk__greet", ENTRY])
def test_a_call_switched_off_while_a_question_is_open_does_not_continue(
    token: str, key: str, is_elsewhere: bool
):
    async def main() -> Any:
        client = client_of(token)
        questions = (await client.endpoint.asend(call(client))).result
        await threads.run(lambda: switches.override(SETUP.replace(confirm=True), "ada", key, False))
        other = client_of(token) if is_elsewhere else client
        answer = await other.endpoint.asend(call(other, answers_to(questions, name="Ada")))
        await until(lambda: not models.OpenQuestion.objects.exists())
        return answer.json()

    response = run(main)
    assert "Ada" not in str(response)
    assert "error" in response or response["result"]["isError"]
    # No call is left that could continue.
    assert models.CallRecord.objects.filter(tool="desk__greet", outcome="ok").count() <= 1


@pytest.mark.parametrize(
    "answer",
    [
        {"requestState": "s"},
        {"inputRequests": ["q"]},
        {"inputRequests": {"q": {"method": "elicitation/create"}}},
        {"inputRequests": {"q": {"method": "elicitation/create", "params": ["x"]}}},
    ],
)
def test_a_server_without_permission_cannot_ask_through_its_result(
    transactional_db: None, tmp_path: Path, answer: dict[str, Any]
):
    masking.forget()
    script = scripting.Script(tmp_path)
    script.offers({"server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}})
    script.results_in({"resultType": "input_required", "content": [], **answer})
    configured.add(SETUP, "stranger", script.connection, trusted=True)
    server_lists.refresh(["stranger"], lambda name, answer: configured.record(SETUP, name, answer))
    belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["stranger__result"]}]})
    client = client_of(tokens.issue(SETUP, agent="ada").text)
    sent = {"name": "stranger__result", "arguments": {}, "_meta": ELICITATION}

    async def main() -> Any:
        return (await client.endpoint.asend(client.request("tools/call", sent))).result

    try:
        result = run(main)
    finally:
        plugins.stop()
        snapshots.forget()
    assert result["resultType"] == "complete"
    assert result["content"] == [
        {"type": "text", "text": "The server asks for input that is not available here."}
    ]


def test_a_client_without_the_capability_is_not_asked(token: str):
    async def main() -> Any:
        client = client_of(token)
        return await client.endpoint.asend(client.request("tools/call", GREET))

    assert "input_required" not in str(run(main).json())


def test_a_waiting_call_is_cancelled_when_its_client_leaves_another_process(token: str, server: str):
    if server == "modern":
        pytest.skip("nothing waits")

    async def main() -> None:
        client, other = client_of(token), client_of(token)
        questions = (await client.endpoint.asend(call(client))).result
        again = answers_to(questions, name="Ada")
        first = other.endpoint.exchange(call(other, again))
        first.disconnect()
        await first.task
        await until(lambda: not models.OpenQuestion.objects.exists())

    run(main)


def test_a_waiting_call_ends_when_the_server_stops(token: str, server: str):
    if server == "modern":
        pytest.skip("nothing waits")

    async def main() -> None:
        client = client_of(token)
        assert (await client.endpoint.asend(call(client))).result["resultType"] == "input_required"
        await threads.run(plugins.stop)
        await until(lambda: not models.OpenQuestion.objects.exists())

    run(main)
