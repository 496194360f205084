"""Tests that progress and results of upstream servers reach clients, and cancellations reach the servers."""

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
from toolbelt.runtime import masking
from toolbelt.runtime.surfaces import prepared_answers

PROGRESS = {"name": "files__progress", "arguments": {}, "_meta": {"progressToken": "t1"}}
HANG = {"name": "files__hang", "arguments": {}}


@pytest.fixture
def script(transactional_db: None, server_directory: Path) -> Iterator[scripting.Script]:
    """Yield a server whose tools are granted to ada."""
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


def test_upstream_progress_is_sent_with_the_client_s_progress_token(client: Client):
    (*notifications, last) = client.ask("tools/call", PROGRESS, id_=7).messages()
    assert {message["method"] for message in notifications} == {protocol.PROGRESS}
    assert [message["params"] for message in notifications] == [
        {"progressToken": "t1", "progress": step, "total": 2, "message": f"step {step}"} for step in (1, 2)
    ]
    assert last["id"] == 7
    assert last["result"]["content"] == [{"type": "text", "text": "done"}]


def test_cancelling_a_call_cancels_it_at_the_server(client: Client, script: scripting.Script):
    async def main() -> Any:
        endpoint = client.endpoint
        exchange = endpoint.exchange(client.request("tools/call", HANG, id_=7))
        await asyncio.to_thread(wait, script.has_begun_to_hang)
        if client.version == NEW:
            exchange.disconnect()
        else:
            about = {"requestId": 7}
            await endpoint.asend(client.request("notifications/cancelled", about, id_=None))
        await asyncio.to_thread(wait, script.has_heard_of_a_cancellation)
        await exchange.task
        # The connection can be used by the next call.
        echo = {"name": "files__echo", "arguments": {"a": 1}}
        return await endpoint.asend(client.request("tools/call", echo))

    assert run(main).result["content"] == [{"type": "text", "text": '{"a": 1}'}]
    assert script.starts == 1
    assert sorted(models.CallRecord.objects.values_list("outcome", flat=True)) == ["cancelled", "ok"]


def test_each_client_session_has_its_own_upstream_state(script: scripting.Script):
    belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["files__who", "files__echo"]}]})
    token = tokens.issue(SETUP, agent="ada").text
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=OLD)

    def process(session: str) -> str:
        session_client = dataclasses.replace(client, session=session)
        return str(session_client.call("files__who").result["content"][0]["text"])

    assert process("tb.one") == process("tb.one")
    assert len({process("tb.one"), process("tb.other"), process("")}) == 3


def test_ending_a_session_closes_only_its_own_upstream_connections(script: scripting.Script):
    belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["files__who"]}]})
    token = tokens.issue(SETUP, agent="ada").text
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=OLD, session="tb.one")
    other = dataclasses.replace(client, session="tb.other")

    def processes() -> list[str]:
        return [caller.call("files__who").result["content"][0]["text"] for caller in (client, other)]

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
def test_a_server_s_result_is_forwarded_unchanged(
    client: Client, script: scripting.Script, answer: dict[str, Any]
):
    script.results_in(answer)
    result = client.call("files__result").result
    assert schema.canonical(result["content"]) == schema.canonical(answer["content"]), "1 is not 1.0"
    assert result.get("structuredContent") == answer.get("structuredContent")
    assert result["isError"] is False
    meta = result.get("_meta", {})
    assert {key: meta.get(key) for key in answer.get("_meta", {})} == answer.get("_meta", {})


def test_a_server_s_error_result_is_forwarded_and_recorded_as_failed(
    client: Client, script: scripting.Script
):
    script.results_in({"content": BLOCKS, "structuredContent": {"n": 1}, "isError": True, "_meta": {"c": 3}})
    result = client.call("files__result").result
    assert (result["content"], result["structuredContent"]) == (BLOCKS, {"n": 1})
    assert result["isError"] is True
    assert result["_meta"]["c"] == 3
    assert result["_meta"]["toolbelt/refusal"]["code"] == "tool-failed"
    assert list(models.CallRecord.objects.values_list("outcome", flat=True)) == ["tool-failed"]


def test_reserved_metadata_of_a_server_is_removed(client: Client, script: scripting.Script):
    forged = {
        "toolbelt/refusal": {"code": "tool-denied"},
        "io.modelcontextprotocol/serverInfo": {"name": "x"},
    }
    script.results_in({"content": [], "_meta": forged})
    meta = client.call("files__result").result.get("_meta", {})
    assert "toolbelt/refusal" not in meta
    assert meta.get("io.modelcontextprotocol/serverInfo", {}).get("name") != "x"


@pytest.mark.parametrize("fails", [False, True])
def test_secrets_are_withheld_from_every_part_of_a_result(
    client: Client, script: scripting.Script, fails: bool
):
    masking.add("sesame-7000")
    blocks = json.loads(json.dumps(BLOCKS).replace('"b"', '"sesame-7000"').replace("one", "sesame-7000"))
    about = {"annotations": {"audience": ["user"]}, "_meta": {"of": "sesame-7000"}}
    answer = {
        "content": [{**blocks[0], **about}, *blocks[1:]],
        "structuredContent": {"sesame-7000": ["sesame-7000"]},
    }
    script.results_in({**answer, "isError": fails, "_meta": {"d": "sesame-7000"}})
    result = client.call("files__result").result
    assert result["isError"] is fails
    assert "sesame" not in json.dumps(result)
    assert result["structuredContent"] == {"[withheld]": ["[withheld]"]}


def test_a_server_may_have_a_size_limit_of_its_own(client: Client, script: scripting.Script, settings: Any):
    settings.TOOLBELT_CALL_RESULT_BYTES = 1_000
    script.results_in({"content": [{"type": "text", "text": "x" * 3_000}]})
    assert client.call("files__result").result["isError"]
    upstream = {**script.connection, "result_bytes": 5_000}
    belts.import_(
        SETUP, {"plugins": [{"name": "files", "namespace": "files", "trusted": True, "upstream": upstream}]}
    )
    assert not client.call("files__result").result.get("isError")


def test_every_part_of_a_result_counts_toward_the_size_limit(
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
