"""Does a client hear of the progress of a real upstream server, and that server of a call that is taken back?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client, Endpoint, run
from tests.plugins.upstream import scripting
from toolbelt import models
from toolbelt.control import belts, tokens
from toolbelt.control import upstreams as configured
from toolbelt.mcp import protocol
from toolbelt.runtime import plugins, ready, upstreams
from toolbelt.store import snapshots

PROGRESS = {"name": "files__progress", "arguments": {}, "_meta": {"progressToken": "t1"}}
HANG = {"name": "files__hang", "arguments": {}}


@pytest.fixture
def script(transactional_db: None, tmp_path: Path) -> Iterator[scripting.Script]:
    """Give a server whose tools are ada's."""
    script = scripting.Script(tmp_path)
    configured.add(SETUP, "files", script.connection, trusted=True)
    upstreams.refresh(["files"], lambda name, answer: configured.record(SETUP, name, answer))
    agent = {"key": "ada", "tools": ["files__progress", "files__hang", "files__echo"]}
    belts.import_(SETUP, {"agents": [agent]})
    yield script
    plugins.stop()
    snapshots.forget()


@pytest.fixture(params=[OLD, NEW])
def client(request: Any, script: scripting.Script) -> Client:
    token = tokens.issue(SETUP, agent="ada").text
    return Client(endpoint=Endpoint(ready.answers()), token=token, version=request.param)


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
