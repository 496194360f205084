"""Tests that a client gets the progress of a real upstream server, and that the server learns of a cancelled call."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp import offering
from tests.mcp.conftest import NEW, OLD, Client, Endpoint, Request, run
from tests.plugins.upstream import scripting
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.core import schema
from toolbelt.mcp import protocol
from toolbelt.runtime import masking, prepared_answers

PROGRESS = {"name": "files__progress", "arguments": {}, "_meta": {"progressToken": "t1"}}
HANG = {"name": "files__hang", "arguments": {}}


@pytest.fixture
def script(transactional_db: None, server_directory: Path) -> Iterator[scripting.Script]:
    """Yield a server whose tools are ada's."""
    tools = [f"files__{tool}" for tool in ("progress", "hang", "echo", "result")]
    with offering.scripted(server_directory, {"agents": [{"key": "ada", "tools": tools}]}) as script:
        yield script


@pytest.fixture(params=[OLD, NEW])
def client(request: Any, script: scripting.Script) -> Client:
    token = tokens.issue(SETUP, agent="ada").text
    return Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=request.param)


def wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not until():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_progress_of_the_server_is_told_under_the_client_s_own_token(client: Client):
    (*told, last) = client.ask("tools/call", PROGRESS, id_=7).messages()
    assert {one["method"] for one in told} == {protocol.PROGRESS}
    assert [one["params"] for one in told] == [
        {"progressToken": "t1", "progress": step, "total": 2, "message": f"step {step}"} for step in (1, 2)
    ]
    assert last["id"] == 7
    assert last["result"]["content"] == [{"type": "text", "text": "done"}]


def test_a_call_that_is_taken_back_is_taken_back_from_the_server(client: Client, script: scripting.Script):
    async def main() -> Any:
        endpoint = client.endpoint
        exchange = endpoint.exchange(client.request("tools/call", HANG, id_=7))
        await asyncio.to_thread(wait, script.has_begun_to_hang)
        if client.version == NEW:
            exchange.leave()
        else:
            about = {"requestId": 7}
            await endpoint.asend(client.request("notifications/cancelled", about, id_=None))
        await asyncio.to_thread(wait, script.has_heard_of_a_cancellation)
        await exchange.task
        # The connection is of use to the next one.
        echo = {"name": "files__echo", "arguments": {"a": 1}}
        return await endpoint.asend(client.request("tools/call", echo))

    assert run(main).result["content"] == [{"type": "text", "text": '{"a": 1}'}]
    assert script.starts == 1
    assert sorted(models.CallRecord.objects.values_list("outcome", flat=True)) == ["cancelled", "ok"]


def test_each_client_s_own_session_has_the_state_of_an_upstream_server_to_itself(script: scripting.Script):
    belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["files__who", "files__echo"]}]})
    token = tokens.issue(SETUP, agent="ada").text
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=OLD)

    def process(session: str) -> str:
        asked = dataclasses.replace(client, session=session)
        return str(asked.call("files__who").result["content"][0]["text"])

    assert process("tb.one") == process("tb.one")
    assert len({process("tb.one"), process("tb.other"), process("")}) == 3


def test_a_client_that_ends_its_session_ends_the_connections_of_that_session_alone(script: scripting.Script):
    belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["files__who"]}]})
    token = tokens.issue(SETUP, agent="ada").text
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=OLD, session="tb.one")
    other = dataclasses.replace(client, session="tb.other")

    def processes() -> list[str]:
        return [one.call("files__who").result["content"][0]["text"] for one in (client, other)]

    before = processes()
    gone = Request(method="DELETE", token=token, headers={"mcp-session-id": "tb.one"})
    assert client.endpoint.send(gone).status == 405

    after = processes()
    assert after[0] != before[0]
    assert after[1] == before[1]


TEXT = {"type": "text", "text": "one\ntwo\n", "annotations": {"audience": ["user"]}, "_meta": {"a": 1}}
BLOCKS: list[dict[str, Any]] = [
    TEXT,
    {"type": "image", "data": "AA==", "mimeType": "image/png", "annotations": {"priority": 0.5}},
    {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "_meta": {"b": 2}},
    {"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "size": 3},
    {
        "type": "resource",
        "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "b", "_meta": {}},
    },
    {"type": "text", "text": ""},
]


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [TEXT], "structuredContent": {"content": "one\ntwo\n"}},
        {
            "content": BLOCKS,
            "structuredContent": {"n": [1, None]},
            "_meta": {"fastmcp": {"wrap_result": True}},
        },
        {"content": [*BLOCKS, *reversed(BLOCKS)]},
        {"content": []},
        {"content": [], "structuredContent": {"n": 1}},
        {"content": [{**TEXT, "annotations": {"priority": 1, "unknown": None}, "unknown": [1, 1.0]}]},
    ],
    ids=["text and structure", "all there is", "order", "nothing", "structure alone", "unknown words"],
)
def test_the_server_s_own_answer_is_handed_on_whole(
    client: Client, script: scripting.Script, answer: dict[str, Any]
):
    script.results_in(answer)
    result = client.call("files__result").result
    assert schema.canonical(result["content"]) == schema.canonical(answer["content"]), "1 is not 1.0"
    assert result.get("structuredContent") == answer.get("structuredContent")
    assert result["isError"] is False
    meta = result.get("_meta", {})
    assert {key: meta.get(key) for key in answer.get("_meta", {})} == answer.get("_meta", {})


def test_a_failure_is_handed_on_whole_and_recorded_as_one(client: Client, script: scripting.Script):
    script.results_in({"content": BLOCKS, "structuredContent": {"n": 1}, "isError": True, "_meta": {"c": 3}})
    result = client.call("files__result").result
    assert (result["content"], result["structuredContent"]) == (BLOCKS, {"n": 1})
    assert result["isError"] is True
    assert result["_meta"]["c"] == 3
    assert result["_meta"]["toolbelt/refusal"]["code"] == "tool-failed"
    assert list(models.CallRecord.objects.values_list("outcome", flat=True)) == ["tool-failed"]


def test_a_server_does_not_speak_as_toolbelt_or_as_the_protocol(client: Client, script: scripting.Script):
    forged = {
        "toolbelt/refusal": {"code": "tool-denied"},
        "io.modelcontextprotocol/serverInfo": {"name": "x"},
    }
    script.results_in({"content": [], "_meta": forged})
    meta = client.call("files__result").result.get("_meta", {})
    assert "toolbelt/refusal" not in meta
    assert meta.get("io.modelcontextprotocol/serverInfo", {}).get("name") != "x"


@pytest.mark.parametrize("fails", [False, True])
def test_no_part_of_an_answer_holds_a_secret(client: Client, script: scripting.Script, fails: bool):
    masking.add("sesame-7000")
    said = json.loads(json.dumps(BLOCKS).replace('"b"', '"sesame-7000"').replace("one", "sesame-7000"))
    about = {"annotations": {"audience": ["user"]}, "_meta": {"of": "sesame-7000"}}
    answer = {
        "content": [{**said[0], **about}, *said[1:]],
        "structuredContent": {"sesame-7000": ["sesame-7000"]},
    }
    script.results_in({**answer, "isError": fails, "_meta": {"d": "sesame-7000"}})
    result = client.call("files__result").result
    assert result["isError"] is fails
    assert "sesame" not in json.dumps(result)
    assert result["structuredContent"] == {"[withheld]": ["[withheld]"]}


def test_all_that_is_handed_on_counts_against_the_size(
    client: Client, script: scripting.Script, settings: Any
):
    settings.TOOLBELT_CALL_RESULT_BYTES = 5_000
    for answer in (
        {"content": [{**TEXT, "_meta": {"a": "x" * 6_000}}]},
        {"content": [], "_meta": {"a": "x" * 6_000}},
        {"content": [{"type": "text", "text": "x" * 3_000}], "structuredContent": {"a": "x" * 3_000}},
    ):
        script.results_in(answer)
        result = client.call("files__result").result
        assert result["_meta"]["toolbelt/refusal"]["code"] == "tool-failed"
        assert len(json.dumps(result)) < 2_000
    script.results_in(
        {"content": [{"type": "text", "text": "no"}], "isError": True, "_meta": {"a": "x" * 6_000}}
    )
    assert client.call("files__result").result["content"] == [{"type": "text", "text": "no"}]
