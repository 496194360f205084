"""Questions of upstream servers to the users of MCP clients up to 2025-11-25, over a real server's pipes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp import offering
from tests.mcp.conftest import OLD, OLDER, Client, Endpoint, Exchange, run
from tests.plugins.upstream import scripting
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.mcp import protocol
from toolbelt.runtime import (
    elicitation,
    feed,
    prepared_answers,
    threads,
    upstream_connections,
    upstream_news,
)
from toolbelt.store import snapshots

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Your name"}},
    "required": ["name"],
}
QUESTION: dict[str, Any] = {"message": "Who are you?", "requestedSchema": SCHEMA}
ASK: dict[str, Any] = {"name": "files__ask", "arguments": QUESTION}
ANSWER: dict[str, Any] = {"action": "accept", "content": {"name": "Ada Lovelace"}}
UNSUPPORTED = {"code": protocol.INVALID_PARAMS, "message": "Elicitation not supported"}
ENTRY = "files__elicitation"


@pytest.fixture
def script(transactional_db: None, server_directory: Path) -> Iterator[scripting.Script]:
    """Yield a server whose tools are ada's, and which may ask."""
    keys = [f"files__{tool}" for tool in ("ask", "log", "echo")]
    belt = {
        "tools": [{"key": ENTRY, "plugin": "files", "kind": "elicitation"}],
        "agents": [{"key": "ada", "tools": [*keys, ENTRY]}, {"key": "bob", "tools": keys}],
    }
    with offering.scripted(server_directory, belt, title="Files") as script:
        upstream_connections.attend(snapshots.catalog())
        yield script


@pytest.fixture
def client(script: scripting.Script) -> Client:
    return of_agent("ada")


def of_agent(agent: str, version: str = OLD, capabilities: Mapping[str, Any] | None = None) -> Client:
    """Shake hands as a client with these capabilities, and go on in its session."""
    token = tokens.issue(SETUP, agent=agent).text
    about = Client(
        endpoint=Endpoint(prepared_answers.answers()), token=token, version=version, path=f"/mcp/{agent}"
    )
    told = {"elicitation": {}} if capabilities is None else capabilities
    begun = about.ask("initialize", {"protocolVersion": version, "capabilities": told, "clientInfo": {}})
    return Client(
        endpoint=Endpoint(prepared_answers.answers()),
        token=token,
        version=version,
        path=f"/mcp/{agent}",
        session=begun.headers["mcp-session-id"],
    )


def answer_to(asked: Mapping[str, Any], result: Any, client: Client) -> Any:
    body = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
    request = client.request("ping")
    return type(request)(body=body, path=request.path, token=request.token, headers=request.headers)


async def until(is_so: Callable[[], bool]) -> None:
    def wait() -> None:
        end = time.monotonic() + 20
        while not is_so():
            assert time.monotonic() < end
            time.sleep(0.01)

    await threads.run(wait)


async def said(exchange: Exchange) -> Any:
    """Return what the server's tool said at the end."""
    result = (await exchange.message())["result"]
    await exchange.task
    return json.loads(result["content"][0]["text"])


def flip() -> None:
    switches.override(SETUP.replace(confirm=True), "ada", ENTRY, False)


def asking(client: Client, act: Callable[[Exchange, Any], Any], call: Mapping[str, Any] = ASK) -> Any:
    """Let the tool ask, and do something with the question."""

    async def main() -> Any:
        exchange = client.endpoint.exchange(client.request("tools/call", call, id_=7))
        return await act(exchange, await exchange.message())

    return run(main)


def outcomes() -> list[tuple[str, str]]:
    return [*models.CallRecord.objects.order_by("id").values_list("tool", "outcome")]


def test_the_user_is_asked_on_the_stream_of_the_call_and_the_server_gets_the_answer(client: Client):
    async def act(exchange: Exchange, asked: Any) -> Any:
        assert asked["method"] == "elicitation/create"
        assert asked["params"] == {
            "mode": "form",
            "message": "Files asks: Who are you?",
            "requestedSchema": SCHEMA,
        }
        answered = await client.endpoint.asend(answer_to(asked, ANSWER, client))
        assert (answered.status, answered.body) == (202, b"")
        return await said(exchange)

    assert asking(client, act) == ANSWER
    assert outcomes() == [(ENTRY, "ok"), ("files__ask", "ok")]
    assert not models.OpenQuestion.objects.exists()


def test_an_answer_that_another_process_gets_arrives(client: Client):
    other = Client(**{**vars_of(client), "endpoint": Endpoint(prepared_answers.answers())})

    async def act(exchange: Exchange, asked: Any) -> Any:
        assert (await other.endpoint.asend(answer_to(asked, ANSWER, client))).status == 202
        # It counts once.
        await other.endpoint.asend(answer_to(asked, {"action": "decline"}, client))
        return await said(exchange)

    assert asking(client, act) == ANSWER
    assert not models.OpenQuestion.objects.exists()


def vars_of(client: Client) -> dict[str, Any]:
    return {name: getattr(client, name) for name in ("endpoint", "token", "version", "path", "session")}


@pytest.mark.parametrize("differs", ["token", "session", "agent"])
def test_nobody_else_answers(client: Client, differs: str):
    other = {
        "token": lambda: Client(**{**vars_of(client), "token": tokens.issue(SETUP, agent="ada").text}),
        "session": lambda: Client(**{**vars_of(client), "session": f"{client.session}f"}),
        "agent": lambda: of_agent("bob"),
    }[differs]()

    async def act(exchange: Exchange, asked: Any) -> Any:
        for process in (client.endpoint, Endpoint(prepared_answers.answers())):
            wrong = answer_to(asked, {"action": "accept", "content": {"name": "Eve"}}, other)
            assert (await process.asend(wrong)).status == 202
        await client.endpoint.asend(answer_to(asked, ANSWER, client))
        return await said(exchange)

    assert asking(client, act) == ANSWER


def test_a_server_whose_entry_is_not_granted_is_answered_as_by_a_client_that_cannot_ask(
    script: scripting.Script,
):
    result = of_agent("bob").ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    assert outcomes() == [(ENTRY, "tool-denied"), ("files__ask", "ok")]


def test_a_client_that_has_not_announced_it_is_not_asked(script: scripting.Script):
    result = of_agent("ada", capabilities={}).ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    assert outcomes() == [(ENTRY, "tool-unavailable"), ("files__ask", "ok")]


def test_of_a_server_that_asks_without_end_nothing_more_is_judged_or_recorded(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(elicitation, "MAX_ASKED", 0)
    result = of_agent("bob").ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    assert outcomes() == [("files__ask", "ok")]


def test_the_gate_is_asked_at_the_moment_of_the_question(client: Client):
    flip()
    result = client.ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED


def test_an_answer_that_comes_after_the_switch_was_turned_off_is_not_handed_on(client: Client):
    async def act(exchange: Exchange, asked: Any) -> Any:
        await threads.run(flip)
        await client.endpoint.asend(answer_to(asked, ANSWER, client))
        return await said(exchange)

    assert asking(client, act) == UNSUPPORTED
    assert outcomes() == [(ENTRY, "tool-denied"), ("files__ask", "ok")]


def test_a_call_that_is_taken_back_takes_its_question_back(client: Client, script: scripting.Script):
    async def act(exchange: Exchange, asked: Any) -> None:
        about = {"requestId": 7}
        await client.endpoint.asend(client.request("notifications/cancelled", about, id_=None))
        last = await exchange.message()
        if last.get("method") == "notifications/cancelled":
            # It may be told that the question is off, too, if that comes first.
            assert last["params"] == {"requestId": asked["id"]}
            last = await exchange.message()
        assert last["error"]["code"] == protocol.CANCELLED
        await exchange.task
        await until(script.has_heard_of_a_cancellation)
        await until(lambda: len(outcomes()) == 2 and not models.OpenQuestion.objects.exists())

    asking(client, act)
    assert sorted(outcomes()) == [("files__ask", "cancelled"), (ENTRY, "cancelled")]
    assert not models.OpenQuestion.objects.exists()


def test_a_client_that_goes_away_is_waited_for_no_longer(client: Client):
    async def act(exchange: Exchange, asked: Any) -> None:
        exchange.leave()
        await exchange.task

    asking(client, act)
    assert outcomes() == [(ENTRY, "ok"), ("files__ask", "ok")]
    assert models.CallRecord.objects.get(tool=ENTRY).error == "The user's answer: cancel."
    assert not models.OpenQuestion.objects.exists()


def test_a_server_that_shuts_down_waits_for_no_user(client: Client):
    async def act(exchange: Exchange, asked: Any) -> Any:
        feed.end()
        return await said(exchange)

    assert asking(client, act) == {"action": "cancel"}
    assert not models.OpenQuestion.objects.exists()


def test_a_user_who_takes_too_long_has_cancelled(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(elicitation, "MAX_SECONDS", 0.3)

    async def act(exchange: Exchange, asked: Any) -> Any:
        taken_back = await exchange.message()
        assert taken_back["params"] == {"requestId": asked["id"]}
        return await said(exchange)

    assert asking(client, act) == {"action": "cancel"}
    assert outcomes() == [(ENTRY, "timed-out"), ("files__ask", "ok")]


def test_the_time_of_the_call_stands_still_while_the_user_thinks(client: Client, settings: Any):
    settings.TOOLBELT_CALL_SECONDS = 1.0

    async def act(exchange: Exchange, asked: Any) -> Any:
        await asyncio.sleep(1.5)
        await client.endpoint.asend(answer_to(asked, ANSWER, client))
        return await said(exchange)

    assert asking(client, act) == ANSWER


def test_only_what_was_asked_for_is_handed_on(client: Client):
    async def act(exchange: Exchange, asked: Any) -> Any:
        more = {**ANSWER, "content": {**ANSWER["content"], "password": "x"}, "_meta": {"a": 1}}
        await client.endpoint.asend(answer_to(asked, more, client))
        return await said(exchange)

    assert asking(client, act) == ANSWER


def test_an_error_of_the_client_is_a_cancellation(client: Client):
    async def act(exchange: Exchange, asked: Any) -> Any:
        request = answer_to(asked, None, client)
        request.body.update(error={"code": -32603, "message": "no"})
        request.body.pop("result")
        await client.endpoint.asend(request)
        return await said(exchange)

    assert asking(client, act) == {"action": "cancel"}


def test_a_question_that_may_not_be_asked_is_refused_and_recorded(client: Client):
    nested = {**SCHEMA, "properties": {"a": {"type": "object"}}}
    result = client.ask("tools/call", {**ASK, "arguments": {**QUESTION, "requestedSchema": nested}}).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    assert outcomes() == [(ENTRY, "invalid-arguments"), ("files__ask", "ok")]


def test_an_older_client_is_asked_in_its_words(script: scripting.Script):
    client = of_agent("ada", version=OLDER)

    async def act(exchange: Exchange, asked: Any) -> Any:
        assert asked["params"] == {"message": "Files asks: Who are you?", "requestedSchema": SCHEMA}
        await client.endpoint.asend(answer_to(asked, ANSWER, client))
        return await said(exchange)

    assert asking(client, act) == ANSWER


def test_a_page_is_opened_only_by_a_client_that_can(script: scripting.Script):
    page = {"mode": "url", "message": "Log in.", "url": "https://files.example/login", "elicitationId": "e1"}
    result = of_agent("ada").ask("tools/call", {**ASK, "arguments": page}).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    client = of_agent("ada", capabilities={"elicitation": {"form": {}, "url": {}}})

    async def act(exchange: Exchange, asked: Any) -> Any:
        assert asked["params"] == {**page, "message": "Files asks: Log in."}
        await client.endpoint.asend(answer_to(asked, {"action": "accept"}, client))
        return await said(exchange)

    assert asking(client, act, {**ASK, "arguments": page}) == {"action": "accept"}


def test_a_server_is_told_that_it_may_ask_as_long_as_an_operator_lets_it(
    client: Client, script: scripting.Script
):
    client.call("files__echo")
    assert script.capabilities["elicitation"] == {"form": {}, "url": {}}
    belts.import_(
        SETUP, {"tools": [{"key": ENTRY, "plugin": "files", "kind": "elicitation", "blocked": True}]}
    )
    client.call("files__echo")
    assert "elicitation" not in script.capabilities


def test_a_question_that_two_agents_could_have_is_refused(client: Client, script: scripting.Script):
    configured.reconnect(SETUP.actor, "files", {**script.connection, "sharing": "shared"})
    bob = of_agent("bob")

    async def main() -> None:
        endpoint = client.endpoint
        first = endpoint.exchange(client.request("tools/call", ASK, id_=7))
        asked = await first.message()
        second = endpoint.exchange(bob.request("tools/call", {"name": "files__echo"}))
        await until(lambda: script.second_answer is not None)
        await endpoint.asend(answer_to(asked, ANSWER, client))
        assert await said(first) == ANSWER
        await second.begun()
        await second.rest()

    run(main)
    assert script.second_answer == UNSUPPORTED


def test_a_server_that_asks_without_an_entry_gets_one_to_review(script: scripting.Script):
    belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["files__ask"]}]})
    models.Tool.objects.filter(key=ENTRY).delete()
    snapshots.forget()
    result = of_agent("ada").ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    upstream_news.finish(20)
    entry = models.Tool.objects.get(key=ENTRY)
    assert (entry.kind, entry.seen) == ("elicitation", False)
