"""The tests of tools that the agent's own program runs, which the adapters of all four frameworks must pass.

A part imports them, and provides a fixture ``start``: it returns a player (see scenario.py) whose adapter has the given
connection, local tools and settings. The tests run over HTTP and in process, except those of an unreachable server.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import in_process
import kit
import pytest
import scenario

from toolbelt.adapters.connection import http

AGENT, PLUGIN = "clerk", "till"
REFUND, FIND = "till__refund", "till__find_order"

Start = Callable[..., scenario.Play]


@dataclass
class Shop:
    """A program with two tools. ``ran`` lists the calls that ran; ``is_cut_off`` cuts its connection to Toolbelt.

    With ``is_in_process``, Toolbelt runs in the same process, so there is no connection to cut.
    """

    is_in_process: bool = False
    ran: list[Any] = field(default_factory=list)
    is_cut_off: bool = False

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """Return the functions, as a program would pass them to its framework."""

        def refund(order: int, reason: str = "") -> str:
            """Refund an order."""
            self.ran.append(("refund", order, reason))
            return f"Order {order} is refunded."

        def find_order(order: int) -> str:
            """Find an order."""
            raise LookupError(f"There is no order {order}.")

        return [refund, find_order]

    def play(self, start: Start, **more: Any) -> scenario.Play:
        """Return a player whose model can call these tools."""
        connection = in_process.connection(AGENT) if self.is_in_process else self._http_connection()
        play = start(connection, local_tools=self.tools, plugin=PLUGIN, **more)
        if not _declared:
            _declared.append(play(kit.session(), "Hello.", ["Hello."]).answer)
            # Each framework derives a different schema from the same function.
            kit.approve(PLUGIN)
        return play

    def _http_connection(self) -> http.Http:
        blocking = http.BlockingHttp(
            kit.ADDRESS, AGENT, token(), transport=_CuttableTransport(self), pauses=()
        )
        return http.Http(
            kit.ADDRESS, AGENT, token(), transport=_CuttableAsyncTransport(self), pauses=(), blocking=blocking
        )


class _CuttableTransport(httpx.BaseTransport):
    """A transport to Toolbelt that can be cut."""

    def __init__(self, shop: Shop) -> None:
        self._shop, self._inner = shop, httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._shop.is_cut_off:
            raise httpx.ConnectError("cut")
        return self._inner.handle_request(request)


class _CuttableAsyncTransport(httpx.AsyncBaseTransport):
    """A transport for event loops, of which a framework may start several."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._shop.is_cut_off:
            raise httpx.ConnectError("cut")
        async with httpx.AsyncHTTPTransport() as inner:
            response = await inner.handle_async_request(request)
            content = await response.aread()
        headers = [(name, value) for name, value in response.headers.items() if name != "content-encoding"]
        return httpx.Response(response.status_code, headers=headers, content=content)


# The model's reply when the tools were first declared.
_declared: list[str] = []


@functools.cache
def token() -> str:
    """Issue a token for the agent whose program has the tools."""
    return kit.manage("token", "issue", "--agent", AGENT)


@contextlib.contextmanager
def overridden(tool: str, on: bool) -> Iterator[None]:
    """Override a tool for the agent, and turn it on afterwards."""
    kit.override(tool, on, AGENT)
    try:
        yield
    finally:
        kit.override(tool, True, AGENT)


def recorded(play: scenario.Play, session: str) -> dict[str, Any]:
    """Wait until the call of a session is recorded, and return it. Other sessions' calls may be recorded meanwhile."""
    [call] = kit.recorded(1, agent=AGENT, session=scenario.recorded_session(play, session))
    return call


@pytest.fixture(params=["http", "in process"])
def shop(request: pytest.FixtureRequest) -> Shop:
    return Shop(is_in_process=request.param == "in process")


CALL = scenario.Call(REFUND, {"order": 7, "reason": "broken"})


def test_a_tool_of_the_program_runs_once_it_is_admitted_and_is_recorded(start: Start, shop: Shop) -> None:
    play, session = shop.play(start), kit.session()
    run = play(session, "Refund order 7.", [CALL, "Done."])
    assert {REFUND, FIND} <= set(run.steps[0].tools)
    assert run.steps[0].tools[REFUND]["required"][0] == "order"
    assert shop.ran == [("refund", 7, "broken")]
    [result] = run.results
    assert "Order 7 is refunded." in result.text
    assert not result.is_error
    assert run.answer == "Done."
    assert recorded(play, session)["outcome"] == "ok"


def test_a_tool_that_an_operator_turns_off_during_the_run_does_not_run(start: Start, shop: Shop) -> None:
    def off_then_call() -> scenario.Reply:
        kit.override(REFUND, False, AGENT)
        return CALL

    play = shop.play(start)
    with overridden(REFUND, True):
        run = play(kit.session(), "Refund order 7.", [off_then_call, "I cannot."])
    [refused] = run.results
    assert "tool-" in refused.text
    assert refused.is_error is not False
    assert shop.ran == []
    assert [REFUND in step.tools for step in run.steps] == [True, False]
    assert run.answer == "I cannot."


def test_arguments_are_checked_before_a_tool_runs(start: Start, shop: Shop) -> None:
    wrong = scenario.Call(REFUND, {"order": "seven"})
    run = shop.play(start)(kit.session(), "Refund order 7.", [wrong, "I cannot."])
    assert "invalid-arguments" in run.results[0].text
    assert shop.ran == []


def test_an_exception_in_a_tool_is_recorded_and_the_framework_handles_it(start: Start, shop: Shop) -> None:
    play, session = shop.play(start), kit.session()
    script: scenario.Script = [scenario.Call(FIND, {"order": 8}), "I cannot."]
    # Some frameworks end the run, others let the model read the exception.
    with contextlib.suppress(LookupError):
        assert play(session, "Find order 8.", script).results[0].text
    call = recorded(play, session)
    assert call["outcome"] == "tool-failed"
    assert call["error"] == "LookupError: There is no order 8."


def test_calls_are_refused_while_toolbelt_is_unreachable_and_the_run_continues(start: Start) -> None:
    shop = Shop()

    def cut_off_then_call() -> scenario.Reply:
        shop.is_cut_off = True
        return CALL

    run = shop.play(start)(kit.session(), "Refund order 7.", [cut_off_then_call, "Later."])
    assert "unreachable" in run.results[0].text
    assert shop.ran == []
    assert run.steps[1].tools == run.steps[0].tools
    assert run.answer == "Later."


def test_with_offline_allow_tools_run_while_toolbelt_is_unreachable_and_are_recorded_later(
    start: Start,
) -> None:
    shop, session = Shop(), kit.session()

    def cut_off_then_call() -> scenario.Reply:
        shop.is_cut_off = True
        return CALL

    play = shop.play(start, offline="allow")
    play(session, "Refund order 7.", [cut_off_then_call, "Done."])
    assert shop.ran == [("refund", 7, "broken")]
    shop.is_cut_off = False
    play(session, "Thanks.", ["You are welcome."])
    call = recorded(play, session)
    assert call["outcome"] == "ok"
    assert "without an admission" in call["error"]


def test_a_denied_tool_is_refused_while_toolbelt_is_unreachable_even_with_offline_allow(start: Start) -> None:
    shop = Shop()

    def cut_off_then_call() -> scenario.Reply:
        shop.is_cut_off = True
        return CALL

    play = shop.play(start, offline="allow")
    # Pydantic AI counts a call of a tool that it did not offer as a retry.
    with overridden(REFUND, False), contextlib.suppress(Exception):
        play(kit.session(), "Refund order 7.", [cut_off_then_call, "I cannot."])
    assert shop.ran == []


@pytest.mark.parametrize("plugin", ["", "nothing"])
def test_a_plugin_that_the_agent_may_not_declare_is_an_error_that_names_it(start: Start, plugin: str) -> None:
    connection = http.Http(kit.ADDRESS, AGENT, token())
    with pytest.raises(Exception, match=plugin or "plugin="):
        start(connection, local_tools=Shop().tools, plugin=plugin)(kit.session(), "Refund.", ["Done."])
