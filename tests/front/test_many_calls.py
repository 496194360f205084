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
# More than the pool has connections, three times over.
CALLS = 3 * POOL
HOLD = {"tool": "holding__hold"}


class Story:
    """A server whose agent ada has a tool that holds; bob is another agent, and an operator watches over both."""

    def __init__(self, server: processes.Served, marks: holding.Marks) -> None:
        self.server, self.marks = server, marks
        self.ada, self.bob = (tokens.issue(SETUP, agent=agent).text for agent in ("ada", "bob"))
        self.olga = of_operator("olga", superuser=True)
        self.pool = concurrent.futures.ThreadPoolExecutor(64)

    def call(self, many: int) -> list[concurrent.futures.Future[Any]]:
        """Call the tool so many times at once."""
        return [self.pool.submit(self._call) for _ in range(many)]

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
def story(transactional_db: None, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return what begins a story with so many workers, and places for so many calls."""
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

    def told(server: processes.Served) -> Story:
        return Story(server, holding.Marks(marks))

    yield lambda **given: (begin(**given), told)
    (marks / "go").touch()


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about")


@pytest.mark.slow
def test_calls_that_take_long_keep_nobody_waiting_and_a_stop_ends_them(story: Any) -> None:
    begin, told = story(places=CALLS)
    with begin as server:
        act = told(server)
        calls = act.call(CALLS)
        until(lambda: len(act.marks.begun()) == CALLS)

        flipped = act.ask(act.olga, "PUT", "/api/v1/agents/bob/switches/held", {"on": True, "confirm": True})
        asked = act.ask(act.bob, "GET", "/api/v1/agents/bob/surface")
        ready = act.ask("", "GET", "/readyz")
        stopped = act.stop_all()
        answers = [call.result(60) for call in calls]

    assert [one.status_code for one in (flipped, asked, ready, stopped)] == [200] * 4
    # The pool lets a request wait for ten seconds, and then gives up.
    assert max(one.elapsed.total_seconds() for one in (flipped, asked, ready, stopped)) < 5
    assert {answer["code"] for answer in answers} == {"tool-denied"}
    assert act.marks.cancelled() == CALLS


@pytest.mark.soak
def test_no_call_of_fifty_begins_after_the_answer_to_a_stop_on_three_workers(story: Any) -> None:
    begin, told = story(places=1, workers=3)
    with begin as server:
        act = told(server)
        calls = act.call(50)
        until(lambda: bool(act.marks.begun()))
        time.sleep(2)
        assert act.stop_all().status_code == 200
        answered = time.time()
        act.marks.let_go()
        answers = [call.result(90) for call in calls]

    begun = act.marks.begun()
    assert begun
    assert len(begun) <= 3
    assert [moment for moment in begun if moment > answered] == []
    assert {answer.get("code") for answer in answers} <= {None, "tool-denied"}
    assert len([answer for answer in answers if answer.get("code") == "tool-denied"]) >= 47


@pytest.mark.slow
def test_no_record_of_an_answered_call_is_lost_when_a_server_is_told_to_end(story: Any) -> None:
    begin, told = story(places=CALLS)
    with begin as server:
        act = told(server)
        act.marks.let_go()
        answers = [call.result(60) for call in act.call(40)]

    assert [answer["is_error"] for answer in answers] == [False] * 40
    assert models.CallRecord.objects.filter(outcome="ok").count() == 40


@pytest.mark.slow
def test_a_server_that_is_killed_loses_no_change_and_only_the_last_records(story: Any) -> None:
    begin, told = story(places=CALLS)
    with begin as server:
        act = told(server)
        act.marks.let_go()
        answers = [call.result(60) for call in act.call(40)]
        time.sleep(1)  # much longer than records wait
        flipped = act.ask(act.olga, "PUT", "/api/v1/agents/bob/switches/held", {"on": True, "confirm": True})
        server.process.kill()

    assert [answer["is_error"] for answer in answers] == [False] * 40
    assert models.CallRecord.objects.filter(outcome="ok").count() == 40
    assert flipped.status_code == 200
    assert models.ToolkitSwitch.objects.get(agent__key="bob").on is True
