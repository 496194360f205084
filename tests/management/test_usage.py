"""Tests that the command `usage` prints unused tools, and the tokens and calls of agents and tools."""

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command

from tests import factories
from tests.control.conftest import operator, stored
from toolbelt import models
from toolbelt.store import clock, context_use

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")


@pytest.fixture(autouse=True)
def used(stored: None) -> None:
    models.Tool.objects.filter(key="clock").update(tokens=10)
    models.Tool.objects.filter(key="git__log").update(tokens=100)
    models.Tool.objects.filter(key="git__status").update(tokens=30)
    factories.call("clock", agent="ada")
    factories.call("git__log", agent="bob")
    factories.call("git__log", agent="bob")
    today = clock.now().date()
    context_use.add_all([context_use.Use("ada", today, 2, 40, 50), context_use.Use("bob", today, 1, 90, 95)])


def run(*args: str) -> str:
    out = io.StringIO()
    call_command("usage", *args, stdout=out)
    return out.getvalue()


def test_unused_tools_are_those_that_an_agent_has_and_did_not_call() -> None:
    document = json.loads(run("--json"))
    assert [(row["tool"], row["unused_by"], row["calls"]) for row in document["unused"]] == [
        ("git__status", ["bob"], 0),
        ("clock", ["bob"], 1),
    ]
    assert [(row["tool"], row["agents"]) for row in document["tools"]] == [
        ("git__log", ["bob"]),
        ("git__status", ["bob"]),
        ("clock", ["ada", "bob"]),
    ]
    bob = document["agents"][0]
    assert {name: bob[name] for name in ("agent", "tools", "unused", "calls", "answers", "sent")} == {
        "agent": "bob",
        "tools": 3,
        "unused": 2,
        "calls": 2,
        "answers": 1,
        "sent": 90,
    }


def test_one_agents_usage_counts_only_its_calls() -> None:
    document = json.loads(run("--json", "--agent", "ada"))
    assert [row["agent"] for row in document["agents"]] == ["ada"]
    assert document["unused"] == []
    assert "Every tool that is on was called" in run("--agent", "ada")
    with pytest.raises(CommandError, match=r"no agent named 'aad'\. Did you mean ada"):
        run("--agent", "aad")


def test_calls_before_the_period_do_not_count() -> None:
    models.CallRecord.objects.update(at=clock.now().replace(year=2020))
    assert [row["calls"] for row in json.loads(run("--json"))["agents"]] == [0, 0]


def test_a_table_is_printed_as_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(run("--csv", "tools"))))
    assert [(row["tool"], row["tokens"], row["agents"]) for row in rows][-1] == ("clock", "10", "ada bob")


def test_the_text_names_the_most_expensive_unused_tool_first() -> None:
    printed = run().splitlines()
    assert "2 tools on but not called in 30 days, 40 tokens with a request of each agent:" in printed
    assert printed[-2].split() == ["git__status", "30", "1", "bob"]


@pytest.mark.parametrize("days", ["0", "-1", "x", "99999"])
def test_a_period_that_is_no_number_of_days_is_refused(days: str) -> None:
    with pytest.raises(CommandError, match="is not a number of days: choose one from 1 to 400"):
        run(f"--days={days}")
