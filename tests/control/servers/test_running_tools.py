"""Tests that tools that no process can run are stored with their plugin, and that a restart is not an outage."""

from __future__ import annotations

import datetime as dt

import pytest

from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.servers import running_tools
from toolbelt.core import admitting as refusals
from toolbelt.runtime import calls, surfaces
from toolbelt.store import clock, revisions, running_processes

NOON = dt.datetime(2026, 5, 4, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
BELT = {
    "plugins": [
        {"name": "kb", "namespace": "kb", "in_code": True},
        {"name": "web", "namespace": "web", "in_code": True},
        {"name": "shop", "namespace": "shop"},
    ],
    "tools": [
        {"key": "kb__find", "plugin": "kb"},
        {"key": "kb__add", "plugin": "kb"},
        {"key": "kb__old", "plugin": "kb", "retired": True},
        {"key": "web__fetch", "plugin": "web"},
        {"key": "shop__refund", "plugin": "shop"},
    ],
    "agents": [
        {"key": "ada", "tools": ["kb__add", "kb__find", "web__fetch", "shop__refund"]},
        {"key": "bob", "tools_config": {"kb__find": True}},
    ],
}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stored() -> None:
    belts.import_(writing.by("olive", via="command"), BELT, is_state=True)


def active() -> list[str]:
    return [tool.name for tool in surfaces.ask("ada").tools]


def warnings(agent: str = "ada") -> list[tuple[str, str]]:
    return [(warning.code, warning.message) for warning in surfaces.ask(agent).warnings]


def test_tools_that_no_process_can_run_are_unavailable_with_one_warning() -> None:
    running_tools.report("one", ["kb__find"])

    assert active() == ["kb__find", "shop__refund"]
    assert surfaces.ask("ada").resolution.decision("kb__add").code == "not-running"
    assert warnings() == [
        (
            "not-running",
            "2 granted tools are not running: kb__add, web__fetch."
            " Restart Toolbelt's servers with their plugin, or disable the plugin.",
        )
    ]
    assert warnings("bob") == []
    answer = calls.run("ada", "kb__add", {})
    assert isinstance(answer, refusals.Refusal)
    assert answer.code == "tool-unavailable"
    entry = models.AuditEntry.objects.filter(subject_kind="plugin", subject_key="kb").latest("id")
    assert (entry.actor, entry.via, entry.reason) == ("toolbelt", "system", running_tools.MISSING_REASON)


def test_a_retired_tool_is_not_reported_as_not_running() -> None:
    running_tools.report("one", ["kb__find"])
    assert models.Plugin.objects.get(name="kb").not_running == ["kb__add"]


def test_a_tool_that_any_process_can_run_is_available() -> None:
    running_tools.report("one", ["kb__find"], may_mark_missing=False)
    running_tools.report("two", ["kb__add", "web__fetch"])
    assert warnings() == []


def test_a_starting_process_makes_tools_available_but_none_unavailable() -> None:
    running_tools.report("one", ["kb__find"], may_mark_missing=False)
    assert warnings() == []
    running_tools.report("one", ["kb__find"])
    running_tools.report("two", ["web__fetch"], may_mark_missing=False)
    assert active() == ["kb__find", "shop__refund", "web__fetch"]


def test_the_last_announcement_of_a_process_expires_after_ten_minutes() -> None:
    with clock.stopped(NOON):
        running_tools.report("old", ["kb__add", "web__fetch"])
    with clock.stopped(NOON + 9 * MINUTE):
        running_tools.report("new", ["kb__find"])
        assert warnings() == []
    with clock.stopped(NOON + 11 * MINUTE):
        running_tools.report("new", ["kb__find"])
        assert [code for code, _ in warnings()] == ["not-running"]
        assert models.RunningProcess.objects.count() == 1


def test_an_announcement_without_changes_makes_no_new_revision() -> None:
    running_tools.report("one", ["kb__find"])
    before = revisions.number()
    running_tools.report("one", ["kb__find"])
    assert revisions.number() == before


def test_bringing_tools_back_loads_plugins_only_if_tools_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running_tools, "_runnable", lambda: pytest.fail("no plugin needs to be loaded"))
    running_tools.restore()
    running_tools.report("one", [])
    monkeypatch.setattr(running_tools, "_runnable", lambda: ["kb__add"])
    running_tools.restore()
    assert "kb__add" in active()


def test_tools_wait_for_a_restart_only_while_a_process_is_known_to_run() -> None:
    with clock.stopped(NOON):
        running_tools.report("old", ["kb__find"], may_mark_missing=False)
    assert running_processes.runnable() is None
    assert running_tools.not_running(["kb__add"]) == ()
    running_tools.report("one", ["kb__find"], may_mark_missing=False)
    assert running_tools.not_running(["kb__add", "kb__find"]) == ("kb__add",)
