"""Tests that tools and toolkits are purged from conversations on the command line."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.control.conftest import operator, stored
from toolbelt.control.catalog import entries, purging
from toolbelt.control.reports import queries

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")


def run(*args: str) -> list[str]:
    out = io.StringIO()
    call_command("purge", *args, stdout=out)
    return out.getvalue().splitlines()


def test_a_purge_needs_a_confirmation_and_a_dry_run_shows_what_it_concerns() -> None:
    number = queries.changes(size=1).entries[0].id
    assert run("clock", "--dry-run")[:3] == [
        "Tool clock would be purged.",
        "No live conversations.",
        "ada, bob have it as it is now, on or on request. If that must not be read either, edit or block it first.",
    ]
    with pytest.raises(CommandError, match=r"No live conversations.*add --confirm"):
        run("clock")
    assert purging.last("tool", "clock") is None
    assert queries.changes(size=1).entries[0].id == number
    printed = run("clock", "--confirm", "--reason", "A leak.")
    assert printed[0] == "Tool clock is purged."
    assert purging.last("tool", "clock") is not None
    entry = queries.changes(size=1).entries[0]
    assert (entry.reason, printed[-1]) == ("A leak.", f"Change {entry.id}.")


def test_a_name_of_both_kinds_needs_its_kind(operator: object) -> None:
    write: Any = operator
    entries.create(write, "toolkit", {"key": "slot", "members": ["git__log"]})
    entries.remove(write, "toolkit", "slot")
    entries.create(write, "tool", {"key": "slot"})
    with pytest.raises(CommandError, match="write tool:slot or toolkit:slot"):
        run("slot", "--confirm")
    assert run("toolkit:slot", "--confirm")[0] == "Toolkit slot is purged."
    with pytest.raises(CommandError, match=r"no tool or toolkit named 'clok'. Did you mean clock"):
        run("clok")
