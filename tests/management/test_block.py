"""Tests that tools, toolkits and plugins are blocked and unblocked on the command line."""

import datetime as dt
import io

import pytest
from django.core.management import CommandError, call_command

from tests.control.conftest import operator, stored
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries
from toolbelt.store import clock

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")


def run(*args: str) -> list[str]:
    out = io.StringIO()
    call_command(*args, stdout=out)
    return out.getvalue().splitlines()


def test_blocking_prints_who_loses_what_and_unblocking_who_gets_it_back() -> None:
    printed = run("block", "reading", "--reason", "A leak.")
    assert printed[:3] == [
        "Toolkit reading is blocked for everyone.",
        "bob loses 2 tools.",
        "No live conversations.",
    ]
    assert entries.read("toolkit", "reading")["blocked"] is True
    assert queries.changes(size=1).entries[0].reason == "A leak."
    assert run("block", "reading") == ["No changes: toolkit reading is already blocked for everyone."]

    assert run("unblock", "reading")[:2] == ["Toolkit reading is not blocked.", "bob gets back 2 tools."]
    assert "blocked" not in entries.read("toolkit", "reading")
    assert run("unblock", "reading") == ["No changes: toolkit reading is already not blocked."]


def test_a_dry_run_prints_the_same_and_changes_nothing() -> None:
    number = queries.changes(size=1).entries[0].id
    assert run("block", "clock", "--dry-run") == [
        "Tool clock would be blocked for everyone.",
        "ada loses 1 tool.",
        "bob loses 1 tool.",
        "No live conversations.",
        "Nothing was changed.",
    ]
    assert "blocked" not in entries.read("tool", "clock")
    assert queries.changes(size=1).entries[0].id == number


def test_what_no_agent_has_affects_no_agent() -> None:
    assert run("block", "git__push")[1] == "No agent is affected."


def test_a_name_of_several_kinds_needs_its_kind(operator: object) -> None:
    entries.create(operator, "toolkit", {"key": "git", "members": ["git__log"]})  # type: ignore[arg-type]
    with pytest.raises(CommandError, match="toolkit and of a plugin: write toolkit:git or plugin:git"):
        run("block", "git")
    assert run("block", "plugin:git")[0] == "Plugin git is blocked for everyone."
    assert "blocked" not in entries.read("toolkit", "git")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("raeding", "no tool, toolkit or plugin named 'raeding'. Did you mean reading"),
        ("plugin:gti", "no plugin named 'gti'. Did you mean git"),
    ],
)
def test_an_unknown_target_names_near_ones(target: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("block", target)


def test_a_block_may_end() -> None:
    with clock.stopped(dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)):
        assert run("block", "reading", "--until", "2031-05-04T14:00:00Z")[:2] == [
            "Toolkit reading is blocked for everyone until 2031-05-04 14:00 UTC.",
            "bob loses 2 tools.",
        ]
        assert run("block", "reading", "--until", "2031-05-04T14:00:00Z") == [
            "No changes: toolkit reading is already blocked for everyone until 2031-05-04 14:00 UTC."
        ]
        assert run("block", "reading", "--until", "2031-05-04T15:00:00Z")[:2] == [
            "Toolkit reading is blocked for everyone until 2031-05-04 15:00 UTC.",
            "Before, it was blocked until 2031-05-04 14:00 UTC.",
        ]
        assert run("block", "reading")[0] == "Toolkit reading is blocked for everyone."
        with pytest.raises(CommandError, match="already blocked, without an end"):
            run("block", "reading", "--until", "2031-05-04T15:00:00Z")
        with pytest.raises(CommandError, match="in the past"):
            run("block", "clock", "--until", "2031-05-04T11:00:00Z")


def test_a_block_for_a_while_ends_then() -> None:
    run("block", "reading", "--for", "90m")
    end = dt.datetime.fromisoformat(entries.read("toolkit", "reading")["block_ends"])
    assert dt.timedelta(minutes=89) < end - clock.now() <= dt.timedelta(minutes=90)
    with clock.stopped(end):
        assert run("unblock", "reading") == ["No changes: toolkit reading is already not blocked."]
