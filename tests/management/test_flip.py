"""Tests that the commands flip switches like the dashboard does, and record expired grants."""

import datetime as dt
import io

import pytest
from django.core.management import CommandError, call_command

from tests.control.conftest import operator, stored
from toolbelt import testing
from toolbelt.control.access import tools_config
from toolbelt.control.catalog import entries
from toolbelt.store import clock, snapshots

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")


def run(*args: str) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out)
    return out.getvalue()


def test_a_switch_and_an_override_are_set_and_cleared() -> None:
    assert run("flip", "ada", "reading", "on").startswith("reading is on for ada. Tools: 1 → 3.")
    run("flip", "ada", "git__log", "off")
    assert tools_config.read("ada") == {"git__log": False, "reading": True}
    run("flip", "ada", "reading", "default")
    assert tools_config.read("ada") == {"git__log": False}
    run("flip", "ada", "git__log", "unset")
    assert tools_config.read("ada") == {}
    run("flip", "ada", "git__log", "off")
    assert run("flip", "ada", "git__log", "off").startswith("No changes: ")


def test_for_and_until_set_an_end_and_end_grants_records_it() -> None:
    run("flip", "ada", "reading", "on", "--for", "2h")
    run("flip", "bob", "clock", "off", "--until", "2099-01-02T03:04:05Z")

    assert snapshots.find("bob", None).agent.ends["clock"].at == dt.datetime(
        2099, 1, 2, 3, 4, 5, tzinfo=dt.UTC
    )
    end = snapshots.find("ada", None).agent.ends["reading"].at
    assert run("end_grants") == "Nothing has ended since the last run.\n"
    with clock.stopped(end):
        assert run("end_grants") == "1 ended.\n"


def test_a_flip_that_requires_confirmation_names_the_option() -> None:
    with pytest.raises(CommandError, match=r"git__push.*--confirm"):
        run("flip", "ada", "pushing", "on")
    run("flip", "ada", "pushing", "on", "--confirm")


def test_a_dry_run_prints_the_effect_and_confirmations_and_writes_nothing() -> None:
    printed = run("flip", "ada", "pushing", "on", "--dry-run").splitlines()
    assert printed[0].startswith("pushing would be on for ada. Tools: 1 → 2.")
    assert printed[1] == "Adds: git__push."
    assert printed[-2] == "To confirm: Enables destructive tools: git__push."
    assert printed[-1] == "Nothing was changed."
    assert tools_config.read("ada") == {}


def test_turning_on_a_tool_that_awaits_review_says_so() -> None:
    entries.change(testing.OPERATOR, "tool", "git__log", {"seen": False})
    note = "It awaits review; no agent has it yet."

    assert note in run("flip", "ada", "git__log", "on")
    assert note not in run("flip", "ada", "git__log", "off")
    assert note not in run("flip", "ada", "reading", "on")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["flip", "ada", "reading", "up"], "argument STATE: invalid choice"),
        (["belt", "show"], "argument ACTION: invalid choice"),
        (["role"], "arguments are required: ACTION"),
        (["role", "give", "anna", "boss"], "argument ROLE: invalid choice"),
        (["token"], "arguments are required: ACTION"),
    ],
)
def test_usage_errors_name_arguments_as_the_usage_does(command: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*command)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ada", "raeding", "on"], r"no tool or toolkit named 'raeding'\. Did you mean reading\?"),
        (["adda", "reading", "on"], r"no agent named 'adda'\. Did you mean ada\?"),
        (["ada", "reading", "on", "--for", "2 hours"], "90m, 2h or 3d"),
        (["ada", "reading", "on", "--for", "0h"], "90m, 2h or 3d"),
        (["ada", "reading", "on", "--until", "tomorrow"], "2026-11-22T14:05:00Z"),
        (["ada", "reading", "on", "--until", "2001-01-01T00:00:00Z"], "is in the past"),
    ],
)
def test_invalid_arguments_are_refused_with_a_remedy(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("flip", *arguments)


def test_all_agents_are_flipped_in_one_step_wherever_the_option_stands() -> None:
    entries.change(testing.OPERATOR.replace(confirm=True), "agent", "bob", {"archived": True})
    entries.create(testing.OPERATOR, "agent", {"key": "cleo", "tools_config": {"reading": True}})

    printed = run("flip", "--for", "2h", "--all-agents", "reading", "on").splitlines()
    assert printed[0].startswith("ada: tools 1 → 3, tokens ")
    assert printed[-1].endswith("for 1 agent; 1 agent already had it.")
    assert tools_config.read("ada") == {"reading": True}
    assert "reading" in snapshots.find("ada", None).agent.ends

    run("flip", "reading", "default", "--all-agents")
    assert (tools_config.read("ada"), tools_config.read("cleo")) == ({}, {})
    assert tools_config.read("bob") == {"reading": True}


def test_flipping_all_agents_is_confirmed_and_all_or_nothing() -> None:
    with pytest.raises(CommandError, match=r"ada: Enables destructive tools: git__push.*--confirm"):
        run("flip", "--all-agents", "pushing", "on")
    assert tools_config.read("ada") == {}

    printed = run("flip", "--all-agents", "pushing", "on", "--dry-run").splitlines()
    assert [line for line in printed if "To confirm" in line]
    assert printed[-1] == "Nothing was changed."
    assert tools_config.read("ada") == {}

    run("flip", "--all-agents", "pushing", "on", "--confirm")
    assert tools_config.read("ada") == {"pushing": True}


def test_an_agent_and_all_agents_cannot_both_be_named() -> None:
    with pytest.raises(CommandError, match="argument STATE: invalid choice"):
        run("flip", "--all-agents", "ada", "reading", "on")
