"""Tests that a write around the audit log is noticed, and that nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from tests import fast_fixtures
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries, recounting
from toolbelt.control.config import belts
from toolbelt.core import errors
from toolbelt.store import audit, revisions, triggers

BELT: dict[str, Any] = {
    "tools": [{"key": "clock"}],
    "toolkits": [{"key": "kb", "members": ["clock"]}],
    "agents": [{"key": "ada"}, {"key": "bob"}],
}
WRITE = writing.by("olive", via="screen").replace(confirm=True)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stored")]


@pytest.fixture
def stored(db: None) -> None:
    fast_fixtures.stored("unlogged", lambda: belts.import_(WRITE, BELT))


def flip(on: bool | None = True, agent: str = "ada") -> audit.Entry:
    entry = audit.find(switches.flip(WRITE, agent, "kb", on).entry or 0)
    assert entry is not None
    return entry


def around_the_log(statement: str) -> Callable[[], None]:
    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return run


def test_an_entry_has_the_number_of_the_write_that_it_records() -> None:
    entry = flip()
    assert (entry.revision, entry.unlogged) == (revisions.number(), None)
    later = flip(None)
    assert (later.revision or 0) > (entry.revision or 0)
    assert later.unlogged is None


@pytest.mark.parametrize(
    ("statement", "catalog", "agents"),
    [
        ("UPDATE toolbelt_agent SET role = 'x' WHERE key = 'bob'", False, ["bob"]),
        ("UPDATE toolbelt_agent SET role = 'x'", False, ["ada", "bob"]),
        ("UPDATE toolbelt_tool SET title = 'x'", True, []),
        ("DELETE FROM toolbelt_agent WHERE key = 'bob'", False, []),
    ],
)
def test_the_next_entry_says_what_was_written_around_the_log(
    statement: str, catalog: bool, agents: list[str]
) -> None:
    since = revisions.number()
    around_the_log(statement)()
    expected = {"since": since, "catalog": catalog, "agents": agents}
    assert revisions.find_unlogged() == expected
    assert flip().unlogged == expected
    assert revisions.find_unlogged() is None
    assert flip(None).unlogged is None


def test_what_a_refused_write_would_have_noted_is_noted_by_the_next_one() -> None:
    around_the_log("UPDATE toolbelt_tool SET title = 'x'")()

    def write_and_fail() -> None:
        with writing.begin():
            entries.change(WRITE, "agent", "ada", {"role": "x"})
            entries.change(WRITE, "agent", "nobody", {"role": "x"})

    with writing.begin(), pytest.raises(errors.NotFound):
        write_and_fail()
    with pytest.raises(errors.NotFound):
        switches.flip(WRITE, "ada", "nothing", True)
    assert flip().unlogged is not None


def test_a_dry_run_notes_nothing() -> None:
    around_the_log("UPDATE toolbelt_tool SET title = 'x'")()
    with writing.dry_run():
        flip()
    assert flip().unlogged is not None


@pytest.mark.parametrize(
    "write",
    [
        recounting.recount_tokens,
        lambda: entries.remove(WRITE, "agent", "bob"),
        lambda: entries.change(WRITE, "toolkit", "kb", {"title": "x"}),
        lambda: triggers.install(connection),
        lambda: call_command("migrate", verbosity=0),
    ],
)
def test_toolbelts_own_writes_are_not_around_the_log(write: Callable[[], object]) -> None:
    models.Tool.objects.filter(key="clock").update(tokens=1)
    revisions.account()
    write()
    assert revisions.find_unlogged() is None
    assert flip().unlogged is None


def test_a_rolled_back_write_was_none() -> None:
    with transaction.atomic():
        flip()
        transaction.set_rollback(True)
    assert revisions.find_unlogged() is None


def test_a_new_installation_begins_with_what_it_has(db: None) -> None:
    models.AuditEntry.objects.all()._raw_delete(connection.alias)
    around_the_log("UPDATE toolbelt_tool SET title = 'x'")()
    assert revisions.find_unlogged() is None
    assert flip().unlogged is None
