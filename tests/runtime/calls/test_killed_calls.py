"""Tests that a process that is killed at any point of an approved call lets it run once at most, and never without."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.runtime import sample_plugins
from tests.runtime.calls import killed_calls
from tests.runtime.conftest import Install
from tests.store import conftest
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
from toolbelt.core import admitting, errors
from toolbelt.runtime import calls

pytestmark = pytest.mark.django_db(transaction=True)

OLIVE = writing.by("olive", via="screen")
BELT: dict[str, Any] = {
    "agents": [{"key": "ada", "tools": ["kb__search"]}],
    "gate_rules": [{"key": "ask", "effect": "ask"}],
}


class Callers:
    """Starts processes that call."""

    def __init__(self, directory: Path, plugins_file: str) -> None:
        self.ran = directory / "ran.txt"
        self.ran.touch()
        self._environment = {
            **os.environ,
            "DATABASE_URL": conftest.address(),
            "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TOOLBELT_PLUGINS_FILE": plugins_file,
            "RAN": str(self.ran),
        }

    def start(self, order: str, point: str = "") -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", killed_calls.__name__, order, point],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self, order: str, point: str) -> bool:
        """Call in another process, and return whether it was killed."""
        return self.start(order, point).wait(90) == -signal.SIGKILL

    def call(self, order: str) -> str:
        """Call in this process, and return the code of the answer."""
        answer = calls.run("ada", "kb__search", {"query": order})
        return answer.code if isinstance(answer, admitting.Refusal) else "ok"

    def runs(self) -> Counter[str]:
        return Counter(self.ran.read_text().split())


@pytest.fixture
def callers(install: Install, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callers:
    install("Kb", **BELT)
    made = Callers(tmp_path, settings.TOOLBELT_PLUGINS_FILE)

    async def search(self: Any, args: dict[str, Any]) -> Any:
        killed_calls.note_run(str(made.ran), args["query"])
        return {}

    monkeypatch.setattr(sample_plugins.Kb, "search", search)
    return made


def approve_all() -> int:
    done = 0
    for approval in call_approvals.listed(state="pending"):
        try:
            call_approvals.approve(OLIVE, approval.key, approval.shown)
        except errors.Refused:
            continue
        done += 1
    return done


def states() -> list[str]:
    return list(models.Approval.objects.order_by("id").values_list("state", flat=True))


# Where it is killed: what is stored then, how often the tool has run, and the answer to the next call.
AFTERWARDS = {
    "asked": (["pending"], 0, "approval-pending"),
    "approved": (["approved"], 0, "ok"),
    "spending": (["approved"], 0, "ok"),
    "spent": (["spent"], 0, "approval-pending"),
    "ran": (["spent"], 1, "approval-pending"),
}


@pytest.mark.parametrize("point", killed_calls.POINTS)
def test_a_call_that_is_killed_runs_once_at_most_and_the_next_one_knows(callers: Callers, point: str) -> None:
    stored, ran, answer = AFTERWARDS[point]
    if point != "asked":
        assert callers.call("a") == "approval-pending"
        approve_all()
    assert callers.kill("a", point)
    assert (states(), callers.runs()["a"]) == (stored, ran)
    assert callers.call("a") == answer
    # However it ended, another yes runs it once more, and no more.
    approve_all()
    callers.call("a")
    spent = models.Approval.objects.exclude(spent=None).count()
    assert callers.runs()["a"] <= spent
    assert callers.call("a") == "approval-pending"
    assert models.Approval.objects.filter(state="spent").count() == (point in ("spent", "ran"))


@pytest.mark.soak
def test_of_many_processes_that_are_killed_none_runs_a_call_twice_or_without_a_yes(callers: Callers) -> None:
    orders, chance = ["a", "b", "c"], random.Random(33)  # noqa: S311 (not used for security)
    end = time.monotonic() + 120
    is_over = threading.Event()

    def decide() -> None:
        try:
            while not is_over.is_set():
                approve_all()
                time.sleep(0.1)
        finally:
            connection.close()

    operators = [threading.Thread(target=decide) for _ in range(2)]
    for operator in operators:
        operator.start()
    try:
        while time.monotonic() < end:
            points = [chance.choice(("", "", *killed_calls.POINTS)) for _ in range(6)]
            running = [callers.start(chance.choice(orders), point) for point in points]
            for process in running:
                process.wait(90)
    finally:
        is_over.set()
        for operator in operators:
            operator.join()
    for order in orders:
        spent = [row for row in models.Approval.objects.exclude(spent=None) if row.preview["query"] == order]
        assert callers.runs()[order] <= len(spent)
        assert all(row.approved_by == ["olive"] for row in spent)
    done = models.Approval.objects.filter(state="done", outcome="ok").count()
    assert 0 < done <= callers.runs().total()
