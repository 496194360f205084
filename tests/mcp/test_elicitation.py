"""Tests of questions of upstream servers to the users of MCP clients up to revision 2025-11-25."""

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
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.mcp import protocol
from toolbelt.runtime import feed, threads
from toolbelt.runtime.calls import elicitation
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import process_connections, server_notifications
from toolbelt.store import holds, snapshots

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
    """Yield a server whose tools are granted to ada and which may ask her."""
    keys = [f"files__{tool}" for tool in ("ask", "log", "echo")]
    belt = {
        "tools": [{"key": ENTRY, "plugin": "files", "kind": "elicitation"}],
        "agents": [{"key": "ada", "tools": [*keys, ENTRY]}, {"key": "bob", "tools": keys}],
    }
    with offering.scripted(server_directory, belt, title="Files") as script:
        process_connections.apply_catalog(snapshots.catalog())
        yield script


@pytest.fixture
def client(script: scripting.Script) -> Client:
    return of_agent("ada")


def of_agent(agent: str, version: str = OLD, capabilities: Mapping[str, Any] | None = None) -> Client:
    """Return a client that has completed the handshake with these capabilities, in its session."""
    token = tokens.issue(SETUP, agent=agent).text
    about = Client(
        endpoint=Endpoint(prepared_answers.answers()), token=token, version=version, path=f"/mcp/{agent}"
    )
    announced = {"elicitation": {}} if capabilities is None else capabilities
    handshake = about.ask(
        "initialize", {"protocolVersion": version, "capabilities": announced, "clientInfo": {}}
    )
    return Client(
        endpoint=Endpoint(prepared_answers.answers()),
        token=token,
        version=version,
        path=f"/mcp/{agent}",
        session=handshake.headers["mcp-session-id"],
    )


def answer_to(question: Mapping[str, Any], result: Any, client: Client) -> Any:
    body = {"jsonrpc": "2.0", "id": question["id"], "result": result}
    request = client.request("ping")
    return type(request)(body=body, path=request.path, token=request.token, headers=request.headers)


async def until(is_so: Callable[[], bool]) -> None:
    def wait() -> None:
        end = time.monotonic() + 20
        while not is_so():
            assert time.monotonic() < end
            time.sleep(0.01)

    await threads.run(wait)


async def tool_result(exchange: Exchange) -> Any:
    """Return the result of the server's tool."""
    result = (await exchange.message())["result"]
    await exchange.task
    return json.loads(result["content"][0]["text"])


def deny_elicitation() -> None:
    switches.override(SETUP.replace(confirm=True), "ada", ENTRY, False)


def run_with_question(
    client: Client, act: Callable[[Exchange, Any], Any], call: Mapping[str, Any] = ASK
) -> Any:
    """Call the tool, and run this function with its question."""

    async def main() -> Any:
        exchange = client.endpoint.exchange(client.request("tools/call", call, id_=7))
        return await act(exchange, await exchange.message())

    return run(main)


def outcomes() -> list[tuple[str, str]]:
    return [*models.CallRecord.objects.order_by("id").values_list("tool", "outcome")]


def test_a_question_is_sent_on_the_call_s_stream_and_answered(client: Client):
    async def act(exchange: Exchange, question: Any) -> Any:
        assert question["method"] == "elicitation/create"
        assert question["params"] == {
            "mode": "form",
            "message": "Files asks: Who are you?",
            "requestedSchema": SCHEMA,
        }
        answered = await client.endpoint.asend(answer_to(question, ANSWER, client))
        assert (answered.status, answered.body) == (202, b"")
        return await tool_result(exchange)

    assert run_with_question(client, act) == ANSWER
    assert outcomes() == [(ENTRY, "ok"), ("files__ask", "ok")]
    assert not models.OpenQuestion.objects.exists()


def test_an_answer_received_by_another_process_reaches_the_server(client: Client):
    other = Client(**{**fields_of(client), "endpoint": Endpoint(prepared_answers.answers())})

    async def act(exchange: Exchange, question: Any) -> Any:
        assert (await other.endpoint.asend(answer_to(question, ANSWER, client))).status == 202
        # Only the first answer counts.
        await other.endpoint.asend(answer_to(question, {"action": "decline"}, client))
        return await tool_result(exchange)

    assert run_with_question(client, act) == ANSWER
    assert not models.OpenQuestion.objects.exists()


def fields_of(client: Client) -> dict[str, Any]:
    return {name: getattr(client, name) for name in ("endpoint", "token", "version", "path", "session")}


@pytest.mark.parametrize("differs", ["token", "session", "agent"])
def test_only_the_client_that_was_asked_can_answer(client: Client, differs: str):
    other = {
        "token": lambda: Client(**{**fields_of(client), "token": tokens.issue(SETUP, agent="ada").text}),
        "session": lambda: Client(**{**fields_of(client), "session": f"{client.session}f"}),
        "agent": lambda: of_agent("bob"),
    }[differs]()

    async def act(exchange: Exchange, question: Any) -> Any:
        for process in (client.endpoint, Endpoint(prepared_answers.answers())):
            wrong = answer_to(question, {"action": "accept", "content": {"name": "Eve"}}, other)
            assert (await process.asend(wrong)).status == 202
        await client.endpoint.asend(answer_to(question, ANSWER, client))
        return await tool_result(exchange)

    assert run_with_question(client, act) == ANSWER


def test_a_question_without_a_grant_is_answered_as_unsupported(
    script: scripting.Script,
):
    result = of_agent("bob").ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    assert outcomes() == [(ENTRY, "tool-denied"), ("files__ask", "ok")]


def test_a_client_without_the_capability_is_not_asked(script: scripting.Script):
    result = of_agent("ada", capabilities={}).ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    assert outcomes() == [(ENTRY, "tool-unavailable"), ("files__ask", "ok")]


def test_questions_beyond_the_limit_are_neither_checked_nor_recorded(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(elicitation, "MAX_QUESTIONS_PER_CALL", 0)
    result = of_agent("bob").ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    assert outcomes() == [("files__ask", "ok")]


def test_the_grant_is_checked_when_the_question_is_asked(client: Client):
    deny_elicitation()
    result = client.ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED


def test_a_server_may_not_ask_while_a_stop_of_its_questions_is_held(client: Client):
    holds.add("tool", ENTRY, lambda: None)
    try:
        result = client.ask("tools/call", ASK).result
        assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    finally:
        holds.forget()


def test_an_answer_is_not_forwarded_after_the_grant_was_withdrawn(client: Client):
    async def act(exchange: Exchange, question: Any) -> Any:
        await threads.run(deny_elicitation)
        await client.endpoint.asend(answer_to(question, ANSWER, client))
        return await tool_result(exchange)

    assert run_with_question(client, act) == UNSUPPORTED
    assert outcomes() == [(ENTRY, "tool-denied"), ("files__ask", "ok")]


def test_cancelling_a_call_cancels_its_question(client: Client, script: scripting.Script):
    async def act(exchange: Exchange, question: Any) -> None:
        about = {"requestId": 7}
        await client.endpoint.asend(client.request("notifications/cancelled", about, id_=None))
        last = await exchange.message()
        if last.get("method") == "notifications/cancelled":
            # The cancellation of the question may arrive first.
            assert last["params"] == {"requestId": question["id"]}
            last = await exchange.message()
        assert last["error"]["code"] == protocol.CANCELLED
        await exchange.task
        await until(script.has_heard_of_a_cancellation)
        await until(lambda: len(outcomes()) == 2 and not models.OpenQuestion.objects.exists())

    run_with_question(client, act)
    assert sorted(outcomes()) == [("files__ask", "cancelled"), (ENTRY, "cancelled")]
    assert not models.OpenQuestion.objects.exists()


def test_a_question_is_cancelled_when_the_client_disconnects(client: Client):
    async def act(exchange: Exchange, question: Any) -> None:
        exchange.disconnect()
        await exchange.task

    run_with_question(client, act)
    assert outcomes() == [(ENTRY, "ok"), ("files__ask", "ok")]
    assert models.CallRecord.objects.get(tool=ENTRY).error == "The user's answer: cancel."
    assert not models.OpenQuestion.objects.exists()


def test_a_question_is_cancelled_when_the_server_shuts_down(client: Client):
    async def act(exchange: Exchange, question: Any) -> Any:
        feed.end()
        return await tool_result(exchange)

    assert run_with_question(client, act) == {"action": "cancel"}
    assert not models.OpenQuestion.objects.exists()


def test_an_unanswered_question_times_out_as_cancelled(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(elicitation, "MAX_SECONDS", 0.3)

    async def act(exchange: Exchange, question: Any) -> Any:
        taken_back = await exchange.message()
        assert taken_back["params"] == {"requestId": question["id"]}
        return await tool_result(exchange)

    assert run_with_question(client, act) == {"action": "cancel"}
    assert outcomes() == [(ENTRY, "timed-out"), ("files__ask", "ok")]


def test_waiting_for_the_user_does_not_count_toward_the_call_s_time_limit(client: Client, settings: Any):
    settings.TOOLBELT_CALL_SECONDS = 1.0

    async def act(exchange: Exchange, question: Any) -> Any:
        await asyncio.sleep(1.5)
        await client.endpoint.asend(answer_to(question, ANSWER, client))
        return await tool_result(exchange)

    assert run_with_question(client, act) == ANSWER


def test_unrequested_fields_of_an_answer_are_not_forwarded(client: Client):
    async def act(exchange: Exchange, question: Any) -> Any:
        more = {**ANSWER, "content": {**ANSWER["content"], "password": "x"}, "_meta": {"a": 1}}
        await client.endpoint.asend(answer_to(question, more, client))
        return await tool_result(exchange)

    assert run_with_question(client, act) == ANSWER


def test_a_client_error_cancels_the_question(client: Client):
    async def act(exchange: Exchange, question: Any) -> Any:
        request = answer_to(question, None, client)
        request.body.update(error={"code": -32603, "message": "no"})
        request.body.pop("result")
        await client.endpoint.asend(request)
        return await tool_result(exchange)

    assert run_with_question(client, act) == {"action": "cancel"}


def test_a_question_with_an_invalid_schema_is_refused_and_recorded(client: Client):
    nested = {**SCHEMA, "properties": {"a": {"type": "object"}}}
    result = client.ask("tools/call", {**ASK, "arguments": {**QUESTION, "requestedSchema": nested}}).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    assert outcomes() == [(ENTRY, "invalid-arguments"), ("files__ask", "ok")]


def test_an_older_client_gets_the_question_in_its_revision_s_form(script: scripting.Script):
    client = of_agent("ada", version=OLDER)

    async def act(exchange: Exchange, question: Any) -> Any:
        assert question["params"] == {"message": "Files asks: Who are you?", "requestedSchema": SCHEMA}
        await client.endpoint.asend(answer_to(question, ANSWER, client))
        return await tool_result(exchange)

    assert run_with_question(client, act) == ANSWER


def test_a_url_question_is_sent_only_to_a_client_with_the_capability(script: scripting.Script):
    page = {"mode": "url", "message": "Log in.", "url": "https://files.example/login", "elicitationId": "e1"}
    result = of_agent("ada").ask("tools/call", {**ASK, "arguments": page}).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    client = of_agent("ada", capabilities={"elicitation": {"form": {}, "url": {}}})

    async def act(exchange: Exchange, question: Any) -> Any:
        assert question["params"] == {**page, "message": "Files asks: Log in."}
        await client.endpoint.asend(answer_to(question, {"action": "accept"}, client))
        return await tool_result(exchange)

    assert run_with_question(client, act, {**ASK, "arguments": page}) == {"action": "accept"}


def test_the_elicitation_capability_is_announced_to_a_server_unless_blocked(
    client: Client, script: scripting.Script
):
    client.call("files__echo")
    assert script.capabilities["elicitation"] == {"form": {}, "url": {}}
    belts.import_(
        SETUP, {"tools": [{"key": ENTRY, "plugin": "files", "kind": "elicitation", "blocked": True}]}
    )
    client.call("files__echo")
    assert "elicitation" not in script.capabilities


def test_a_question_is_refused_if_it_could_belong_to_two_agents(client: Client, script: scripting.Script):
    entries.change(SETUP, "plugin", "files", {"upstream": {**script.connection, "sharing": "shared"}})
    bob = of_agent("bob")

    async def main() -> None:
        endpoint = client.endpoint
        first = endpoint.exchange(client.request("tools/call", ASK, id_=7))
        question = await first.message()
        second = endpoint.exchange(bob.request("tools/call", {"name": "files__echo"}))
        await until(lambda: script.second_answer is not None)
        await endpoint.asend(answer_to(question, ANSWER, client))
        assert await tool_result(first) == ANSWER
        await second.started()
        await second.rest()

    run(main)
    assert script.second_answer == UNSUPPORTED


def test_a_question_without_an_entry_creates_an_entry_to_review(script: scripting.Script):
    belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["files__ask"]}]})
    models.Tool.objects.filter(key=ENTRY).delete()
    snapshots.forget()
    result = of_agent("ada").ask("tools/call", ASK).result
    assert json.loads(result["content"][0]["text"]) == UNSUPPORTED
    server_notifications.finish(20)
    entry = models.Tool.objects.get(key=ENTRY)
    assert (entry.kind, entry.seen) == ("elicitation", False)
