"""Tests that clients of each revision wait for approval as they can, and that the official client survives it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import mcp_types as types
import pytest
from asgiref.sync import sync_to_async

from tests import concurrently
from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client, Endpoint, run
from tests.mcp.test_official_client import connected, served
from tests.runtime import sample_plugins
from tests.runtime.conftest import Install
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.control.people import tokens
from toolbelt.mcp import input_required
from toolbelt.runtime.calls import approval_waits

ERAS = {"legacy": OLD, "auto": NEW}
QUERY = {"query": "order 12"}
RULE = {"key": "ask", "effect": "ask", "tools": ["kb__search"], "reason": "A person looks at this."}
# A call of a session that has not, or of none.
PAST = {"key": "unchecked", "effect": "ask", "tools": ["kb__search"], "without": ["checked"]}
AGENT = {"key": "ada", "tools": ["kb__search", "kb__plain"], "mcp_loading": "list"}
OLIVE = writing.by("olive", via="screen")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the arguments with which the tool has run."""
    return sample_plugins.recorded_searches(monkeypatch)


@pytest.fixture
def token(transactional_db: None, install: Install, ran: list[Any]) -> str:
    install("Kb", gate_rules=[RULE, PAST], agents=[AGENT])
    return tokens.issue(SETUP, agent="ada").text


@pytest.fixture
def stored(transactional_db: None) -> None:
    """Store nothing: the fixture ``token`` installs what the tests need."""


def edit() -> None:
    found = call_approvals.find(models.Approval.objects.latest("id").key)
    call_approvals.edit_and_approve(OLIVE, found.key, {"query": "order 13"}, found.shown)


def approve() -> None:
    found = call_approvals.find(models.Approval.objects.latest("id").key)
    call_approvals.approve(OLIVE, found.key, found.shown)


async def until_waiting() -> None:
    async with asyncio.timeout(20):
        while not approval_waits.waiting():  # noqa: ASYNC110 (set by another task)
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def official(endpoint: Endpoint, token: str, mode: str) -> Any:
    async with (
        endpoint.serving(),
        served(endpoint) as address,
        connected(f"{address}/mcp/ada", token, mode) as (client, _),
    ):
        assert client.protocol_version == ERAS[mode]
        yield client


def text(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_waits_and_gets_the_result_once_it_is_approved(
    token: str, endpoint: Endpoint, ran: list[Any], mode: str
) -> None:
    async def act() -> None:
        async with official(endpoint, token, mode) as client:
            calling = asyncio.create_task(client.call_tool("kb__search", QUERY))
            await until_waiting()
            await concurrently.do(approve)
            result = await calling
            assert not result.is_error
            assert text(result) == '{"results":[]}'

    run(act)
    assert ran == [QUERY]
    # It is spent, although nothing was configured otherwise since the call arrived.
    assert models.Approval.objects.get().state == "done"


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_reads_what_an_operator_changed_behind_the_result(
    token: str, endpoint: Endpoint, ran: list[Any], mode: str
) -> None:
    async def act() -> None:
        async with official(endpoint, token, mode) as client:
            calling = asyncio.create_task(client.call_tool("kb__search", QUERY))
            await until_waiting()
            await concurrently.do(edit)
            *_, last = (await calling).content
            assert last.text.endswith('query is "order 13" instead of "order 12".')

    run(act)
    assert ran == [{"query": "order 13"}]


OPEN = {"type": "object", "properties": {"results": {"type": "array"}}, "required": ["results"]}
OUTPUTS: dict[str, tuple[dict[str, Any], bool]] = {
    "open": (OPEN, True),
    "closed": ({**OPEN, "additionalProperties": False}, False),
    "a mapping": ({"type": "object", "additionalProperties": True, "maxProperties": 1}, False),
    "of its own": ({**OPEN, "additionalProperties": {}}, False),
}


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_official_client_accepts_what_was_changed_in_structured_content(
    token: str, endpoint: Endpoint, mode: str, output: str
) -> None:
    accepts, has_notice = OUTPUTS[output]
    models.Tool.objects.filter(key="kb__search").update(output_schema=accepts)

    async def act() -> None:
        async with official(endpoint, token, mode) as client:
            calling = asyncio.create_task(client.call_tool("kb__search", QUERY))
            await until_waiting()
            await concurrently.do(edit)
            # It checks the structured content against the tool's schema.
            result = await calling
            notice = result.meta["toolbelt/notice"]
            assert notice in [block.text for block in result.content]
            expected = {"toolbelt_notice": notice} if has_notice else {}
            assert result.structured_content == {"results": [], **expected}

    run(act)


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_gets_the_words_if_no_one_decides_and_can_call_again(
    token: str, endpoint: Endpoint, ran: list[Any], mode: str, settings: Any
) -> None:
    settings.TOOLBELT_APPROVAL_WAIT = 0.05

    async def act() -> None:
        async with official(endpoint, token, mode) as client:
            result = await client.call_tool("kb__search", QUERY)
            key = (await sync_to_async(models.Approval.objects.get)()).key
            assert result.is_error
            assert text(result) == (
                f"A person looks at this. Waiting for approval {key}. Call again with exactly the same arguments."
            )
            await concurrently.do(approve)
            assert not (await client.call_tool("kb__search", QUERY)).is_error

    run(act)
    assert ran == [QUERY]


def test_the_official_client_of_the_first_era_gets_progress_while_it_waits(
    token: str, endpoint: Endpoint, ran: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_waits, "TICK_SECONDS", 0.05)
    said: list[str | None] = []

    async def act() -> None:
        enough = asyncio.Event()

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            said.append(message)
            if len(said) > 2:
                enough.set()

        async with official(endpoint, token, "legacy") as client:
            calling = asyncio.create_task(client.call_tool("kb__search", QUERY, progress_callback=progress))
            async with asyncio.timeout(20):
                await enough.wait()
            await concurrently.do(approve)
            assert not (await calling).is_error

    run(act)
    key = models.Approval.objects.get().key
    assert set(said) == {f"Waiting for approval {key}."}


def modern(token: str, endpoint: Endpoint, **params: Any) -> Any:
    client = Client(endpoint=endpoint, token=token, version=NEW)
    return client.ask("tools/call", {"name": "kb__search", "arguments": QUERY, **params})


def test_a_modern_client_repeats_the_call_with_nothing_but_the_state_at_any_process(
    token: str, endpoint: Endpoint, ran: list[Any], settings: Any
) -> None:
    settings.TOOLBELT_APPROVAL_WAIT = 0.01
    result = modern(token, endpoint).result
    assert (result["resultType"], "inputRequests" in result) == ("input_required", False)
    state = result["requestState"]
    assert QUERY["query"] not in state
    # The state is for this call only.
    other = modern(token, endpoint, arguments={"query": "x"}, requestState=state)
    assert other.error["code"] == -32602
    approve()
    # Another process has none of it.
    again = modern(token, Endpoint(endpoint.answers), requestState=state).result
    assert (again["resultType"], again["isError"]) == ("complete", False)
    assert ran == [QUERY]


def test_a_modern_client_repeats_the_call_eight_times_at_most(
    token: str, endpoint: Endpoint, ran: list[Any], settings: Any
) -> None:
    settings.TOOLBELT_APPROVAL_WAIT = 0.01
    result, rounds = modern(token, endpoint).result, 0
    while result["resultType"] == "input_required":
        rounds += 1
        result = modern(token, endpoint, requestState=result["requestState"]).result
    assert rounds == input_required.MAX_ROUNDS == 8
    assert result["isError"]
    assert result["_meta"]["toolbelt/refusal"]["code"] == "approval-pending"
    assert models.Approval.objects.count() == 1


@pytest.mark.parametrize("version", ERAS.values())
def test_a_call_without_a_wait_is_answered_at_once(
    token: str, endpoint: Endpoint, settings: Any, version: str
) -> None:
    settings.TOOLBELT_APPROVAL_WAIT = 0
    client = Client(endpoint=endpoint, token=token, version=version)
    assert client.call("kb__search", QUERY).result["isError"]
    dispatched = client.call("call_tool", {"tool": "kb__search", "arguments": QUERY})
    assert dispatched.result["isError"]


@pytest.mark.parametrize("version", ERAS.values())
def test_a_client_that_leaves_while_it_waits_spends_nothing(
    token: str, endpoint: Endpoint, ran: list[Any], version: str
) -> None:
    client = Client(endpoint=endpoint, token=token, version=version)

    async def act() -> None:
        async with endpoint.serving():
            request = client.request("tools/call", {"name": "kb__search", "arguments": QUERY})
            exchange = endpoint.exchange(request)
            await until_waiting()
            exchange.disconnect()
            await exchange.task
            assert approval_waits.waiting() == 0
            await concurrently.do(approve)

    run(act)
    assert ran == []
    assert client.call("kb__search", QUERY).result["isError"] is False
    assert ran == [QUERY]
