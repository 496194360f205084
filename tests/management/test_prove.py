"""Tests that a change is proved on the command line, for people, programs and pull requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from tests import factories
from tests.control.conftest import BELT, operator, stored
from tests.factories import call as recorded
from tests.management import running
from toolbelt.control import writing
from toolbelt.control.access import switches

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")


def prove(*words: str, exit_code: int = 0) -> str:
    out, _, code = running.run("prove", *words)
    assert code == exit_code, out
    return out


@pytest.fixture
def calls(stored: None) -> None:
    facts = factories.facts("git__log")
    for session in ("s1", "s2", "s2"):
        recorded("git__log", agent="bob", session=session, **facts)
    recorded("git__log", agent="bob")


@pytest.fixture
def off(tmp_path: Path) -> str:
    file = tmp_path / "belt.json"
    file.write_text(json.dumps({"agents": [{"key": "bob", "tools_config": {"reading": False}}]}))
    return str(file)


def test_a_belt_that_refuses_recorded_calls_exits_with_2(calls: None, off: str) -> None:
    lines = prove(off, exit_code=2).splitlines()

    assert lines[0] == (
        "In the last 30 days this would have refused at least 3 calls of 1 agent in 2 sessions."
    )
    assert lines[1].startswith("75% of 4 recorded calls")
    assert lines[-1].split() == [
        *("bob", "git__log", "runs", "is", "refused", "3", "3", "2"),
        *("toolkit", "reading", "is", "off"),
    ]


def test_a_belt_that_changes_no_recorded_call_exits_with_0(calls: None, tmp_path: Path) -> None:
    file = tmp_path / "belt.json"
    file.write_text(json.dumps(BELT))

    assert prove(str(file)).startswith("In the last 30 days no call was recorded that this concerns.")


def test_json_has_the_numbers_and_the_rows(calls: None, off: str) -> None:
    document = json.loads(prove(off, "--json", exit_code=2))

    assert (document["refused"], document["calls"], document["unproven"]) == (3, 4, {"no-facts": 1})
    [row] = document["rows"]
    assert (row["today"], row["changed"], row["sessions"]) == ("admitted", "refused", 2)


def test_markdown_is_a_table_that_names_of_others_cannot_break(calls: None, off: str) -> None:
    text = prove(off, "--markdown", exit_code=2)

    assert "| `bob` | `git__log` | runs | is refused | 3 | 3 | 2 | toolkit reading is off |" in text


def test_an_undo_is_proved_by_its_number(calls: None, off: str) -> None:
    write = writing.by("olive", via="screen")
    change = switches.flip(write, "bob", "reading", None)

    assert json.loads(prove("--undo", str(change.entry), "--json", exit_code=2))["admitted"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Name one of these"),
        (("{off}", "--undo", "1"), "Name one of these"),
        (("--undo", "99999"), "99999"),
        (("{off}", "--days", "0"), "0 is not a number of days"),
        (("{off}", "--only", "agent"), "no such section"),
        (("{off}", "--coverage", "90"), "75.0%"),
        (("/nowhere.yaml",), "cannot be read"),
    ],
)
def test_what_cannot_be_proved_is_an_error(
    calls: None, off: str, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        prove(*(word.replace("{off}", off) for word in words))


def test_wrong_arguments_exit_with_1_because_2_says_that_calls_differ() -> None:
    from toolbelt.management.commands import prove as command

    parser: Any = command.Command().create_parser("manage.py", "prove")
    parser.called_from_command_line = True
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--days", "many"])
    assert ended.value.code == 1


def test_a_self_check_prints_how_many_verdicts_replays_reproduce(calls: None) -> None:
    # The records of this test name no revision.
    assert prove("--self-check") == "No call of the last 30 days can be replayed as it was decided.\n"
    assert json.loads(prove("--self-check", "--json"))["mismatches"] == []
    with pytest.raises(CommandError, match="--self-check proves no change"):
        prove("--self-check", "--undo", "1")


def test_calls_are_decided_as_everything_was_then_if_asked(calls: None, off: str) -> None:
    # They were recorded without a revision.
    lines = prove(off, "--basis", "then").splitlines()

    assert lines[0] == "In the last 30 days this would have changed no recorded call."
    assert lines[1].startswith("0% of 4 recorded calls")
