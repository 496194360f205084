"""Tests that long calls do not delay other requests, and that an emergency stop ends them."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.conftest import SETUP, of_operator
from tests.front import holding, processes
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import plugins
from toolbelt.plugins import registry

POOL = 4
# Three times the connections of the pool.
CALLS = 3 * POOL
HOLD = {"tool": "holding__hold"}


class Scenario:
    """A server whose agent ada has a tool that blocks, a second agent bob, and an operator."""

    def __init__(self, server: processes.Served, marks: holding.Marks) -> None:
        self.server, self.marks = server, marks
        self.ada, self.bob = (tokens.issue(SETUP, agent=agent).text for agent in ("ada", "bob"))
        self.olga = of_operator("olga", superuser=True)
        self.pool = concurrent.futures.ThreadPoolExecutor(64)

    def call(self, count: int) -> list[concurrent.futures.Future[Any]]:
        """Start this many simultaneous calls of the tool."""
        return [self.pool.submit(self._call) for _ in range(count)]

    def ask(self, token: str, method: str, path: str, body: Any = None) -> httpx.Response:
        """Send one request."""
        with self.server.client(token) as client:
            return client.request(method, path, json=body)

    def stop_all(self) -> httpx.Response:
        """Press the emergency stop for the plugin."""
        return self.ask(self.olga, "PATCH", "/api/v1/plugins/holding", {"changes": {"blocked": True}})

    def _call(self) -> Any:
        return self.ask(self.ada, "POST", "/api/v1/agents/ada/calls", HOLD).json()


@pytest.fixture
def start_scenario(transactional_db: None, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Yield a function that starts a server with this many workers and call slots."""
    file = tmp_path / "plugins.yaml"
    file.write_text("tool_plugins:\n  - module: tests.front.holding\n    class_name: Holding\n")
    own = registry.ToolPluginRegistry()
    plugins.sync(SETUP, [own.register(holding.Holding())])
    belts.import_(
        SETUP,
        {
            "toolkits": [{"key": "held", "members": ["holding__hold"]}],
            "agents": [{"key": "ada", "tools": ["holding__hold"]}, {"key": "bob"}],
        },
    )
    marks = tmp_path / "marks"
    marks.mkdir()

    def begin(places: int, workers: int = 1) -> Any:
        return processes.served(
            workers=workers,
            environment={
                # Unlike tests, an installation has a pool of connections.
                "TOOLBELT_ENV": "development",
                "TOOLBELT_ENV_FILE": "/dev/null",
                "TOOLBELT_DATABASE_POOL": str(POOL),
                "TOOLBELT_PLUGINS_FILE": str(file),
                "TOOLBELT_CALLS_PER_PLUGIN": str(places),
                holding.DIRECTORY: str(marks),
            },
        )

    def open_scenario(server: processes.Served) -> Scenario:
        return Scenario(server, holding.Marks(marks))

    yield lambda **given: (begin(**given), open_scenario)
    (marks / "go").touch()


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("the condition was not met in time")


@pytest.mark.slow
def test_long_calls_delay_no_other_request_and_blocking_the_plugin_cancels_them(start_scenario: Any) -> None:
    # One agent has at most half of the slots.
    begin, open_scenario = start_scenario(places=2 * CALLS)
    with begin as server:
        scenario = open_scenario(server)
        calls = scenario.call(CALLS)
        until(lambda: len(scenario.marks.started()) == CALLS)

        flipped = scenario.ask(
            scenario.olga, "PUT", "/api/v1/agents/bob/switches/held", {"on": True, "confirm": True}
        )
        asked = scenario.ask(scenario.bob, "GET", "/api/v1/agents/bob/surface")
        ready = scenario.ask("", "GET", "/readyz")
        stopped = scenario.stop_all()
        answers = [call.result(60) for call in calls]

    assert [response.status_code for response in (flipped, asked, ready, stopped)] == [200] * 4
    # The pool lets a request wait for ten seconds, and then gives up.
    assert max(response.elapsed.total_seconds() for response in (flipped, asked, ready, stopped)) < 5
    assert {answer["code"] for answer in answers} == {"tool-denied"}
    assert scenario.marks.cancelled() == CALLS


@pytest.mark.soak
def test_no_queued_call_starts_on_any_worker_after_the_plugin_is_blocked(start_scenario: Any) -> None:
    begin, open_scenario = start_scenario(places=1, workers=3)
    with begin as server:
        scenario = open_scenario(server)
        calls = scenario.call(50)
        until(lambda: bool(scenario.marks.started()))
        time.sleep(2)
        assert scenario.stop_all().status_code == 200
        answered = time.time()
        scenario.marks.release()
        answers = [call.result(90) for call in calls]

    begun = scenario.marks.started()
    assert begun
    assert len(begun) <= 3
    assert [moment for moment in begun if moment > answered] == []
    assert {answer.get("code") for answer in answers} <= {None, "tool-denied"}
    assert len([answer for answer in answers if answer.get("code") == "tool-denied"]) >= 47


@pytest.mark.slow
def test_shutdown_loses_no_record_of_an_answered_call(start_scenario: Any) -> None:
    begin, open_scenario = start_scenario(places=CALLS)
    with begin as server:
        scenario = open_scenario(server)
        scenario.marks.release()
        answers = [call.result(60) for call in scenario.call(40)]

    assert [answer["is_error"] for answer in answers] == [False] * 40
    assert models.CallRecord.objects.filter(outcome="ok").count() == 40


@pytest.mark.slow
def test_a_killed_server_loses_no_change_and_no_earlier_record(start_scenario: Any) -> None:
    begin, open_scenario = start_scenario(places=CALLS)
    with begin as server:
        scenario = open_scenario(server)
        scenario.marks.release()
        answers = [call.result(60) for call in scenario.call(40)]
        time.sleep(1)  # much longer than records wait
        flipped = scenario.ask(
            scenario.olga, "PUT", "/api/v1/agents/bob/switches/held", {"on": True, "confirm": True}
        )
        server.process.kill()

    assert [answer["is_error"] for answer in answers] == [False] * 40
    assert models.CallRecord.objects.filter(outcome="ok").count() == 40
    assert flipped.status_code == 200
    assert models.ToolkitSwitch.objects.get(agent__key="bob").on is True
