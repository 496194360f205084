"""Tests that due schedules are delivered once."""

import datetime as dt
import io
import json
import sys
import threading
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.servers import plugins
from toolbelt.core import admitting as gate
from toolbelt.runtime import calls, schedule
from toolbelt.runtime import plugins as live
from toolbelt.store import locks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scheduled(tmp_path: Path, settings):
    """Let an agent schedule a note in five minutes, through the real plugin."""
    file = tmp_path / "plugins.yaml"
    file.write_text("tool_plugins:\n  - id: scheduler\n")
    settings.TOOLBELT_PLUGINS_FILE = str(file)
    operator = writing.by("olive", via="command")
    plugins.sync(operator, live.live())
    belts.import_(operator, {"agents": [{"key": "ada", "tools_config": {"scheduler__schedule": True}}]})
    when = (timezone.now() + dt.timedelta(minutes=5)).isoformat(timespec="seconds")
    answer = calls.run("ada", "scheduler__schedule", {"when": when, "note": "Water the plants"})
    assert not isinstance(answer, gate.Refusal), answer


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock of schedules an hour ahead."""
    now = timezone.now() + dt.timedelta(hours=1)
    monkeypatch.setattr("toolbelt.runtime.schedule.timezone.now", lambda: now)


def run(*args: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("run_schedule", *args, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--every", "-1"), "--every must be at least 1 second"),
        (("--every", "0"), "--every must be at least 1 second"),
        (("--to", "'x"), "cannot be read: No closing quotation"),
    ],
)
def test_invalid_arguments_are_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*words)


def test_a_schedule_is_not_delivered_before_it_is_due(scheduled: None) -> None:
    assert run() == ("", "")


def test_a_due_schedule_is_printed_once(scheduled: None, later: None) -> None:
    line, _ = run()

    assert (json.loads(line)["agent"], json.loads(line)["note"]) == ("ada", "Water the plants")
    assert run() == ("", "")


def test_a_schedule_stays_due_if_the_program_fails(scheduled: None, later: None) -> None:
    failing_program = f"{sys.executable} -c 'raise SystemExit(3)'"

    assert "stays due" in run("--to", failing_program)[1]
    assert "Water the plants" in run()[0]


def test_the_program_receives_the_schedule_on_stdin(scheduled: None, later: None, tmp_path: Path) -> None:
    received = tmp_path / "received.json"
    program = f'{sys.executable} -c \'import sys; open("{received}", "w").write(sys.stdin.read())\''

    run("--to", program)

    assert json.loads(received.read_text())["note"] == "Water the plants"


def test_only_one_worker_runs_at_a_time(scheduled: None, later: None) -> None:
    locked, release = threading.Event(), threading.Event()

    def other_worker() -> None:
        with locks.try_lock(schedule.NAMESPACE):
            locked.set()
            release.wait(10)
        connection.close()

    other = threading.Thread(target=other_worker)
    other.start()
    locked.wait(10)
    try:
        out, err = run()
    finally:
        release.set()
        other.join()

    assert (out, err) == ("", "Another worker is running.\n")
    assert "Water the plants" in run()[0]
