"""Tests that every change is recorded completely in the audit log, and can be found again."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from toolbelt import models
from toolbelt.store import audit, audit_writing

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


def record(**fields: Any) -> int:
    return audit_writing.record(
        **{
            "actor": "olive",
            "via": "screen",
            "action": "switch.set",
            "subject_kind": "agent",
            "subject_key": "ada",
            "key": "dev",
            "before": None,
            "after": True,
            **fields,
        }
    )


def ids(page: audit.Page) -> list[int]:
    return [entry.id for entry in page.entries]


def test_entries_in_a_dated_block_have_its_time_and_later_ones_the_current_time(db: None) -> None:
    then = timezone.now() - 30 * 24 * HOUR
    with audit_writing.dated(then):
        first = record()
        audit_writing.record_all(
            actor="olive",
            via="import",
            subject_kind="tool",
            changes=[("tool.change", "git", {}, {"blocked": True})],
            batch=uuid.uuid4(),
        )
    last = record()
    at = dict(models.AuditEntry.objects.values_list("pk", "at"))
    assert [at.pop(first) == then, at.pop(last) > then + 24 * HOUR, *at.values()] == [True, True, then]


def test_an_entry_is_read_as_it_was_recorded() -> None:
    models.Agent.objects.create(key="ada")  # The first write, which the entry names.
    batch = uuid.uuid4()
    number = record(before={"b": 1.0, "a": [None]}, after=False, reason="Too loud.", batch=batch)

    entry = audit.find(number)

    assert entry is not None
    assert abs(timezone.now() - entry.at) < HOUR
    assert entry == audit.Entry(
        id=number,
        at=entry.at,
        actor="olive",
        via="screen",
        action="switch.set",
        subject_kind="agent",
        subject_key="ada",
        key="dev",
        before={"b": 1.0, "a": [None]},
        after=False,
        reason="Too loud.",
        batch=batch,
        undoes=None,
        undone=None,
        revision=models.Revision.objects.get().number,
    )
    assert audit.find(number + 1) is None


def test_an_entry_is_rolled_back_with_its_change() -> None:
    with transaction.atomic():
        record()
        transaction.set_rollback(True)

    assert not models.AuditEntry.objects.exists()


def test_an_entry_links_to_the_change_it_undoes_and_the_one_that_undid_it() -> None:
    first = record()
    second = record(undoes=first, actor="otto")

    taken_back, taking_back = audit.find(first), audit.find(second)

    assert taking_back is not None
    assert taken_back is not None
    assert taking_back.undoes == first
    assert taken_back.undone is not None
    assert (taken_back.undone.id, taken_back.undone.actor) == (second, "otto")


def test_an_entry_tells_whether_its_batch_has_other_entries_on_any_page() -> None:
    batch = uuid.uuid4()
    record(batch=batch)
    record()
    record(batch=uuid.uuid4())
    record(batch=batch, key="ops")
    of_several = [entry.of_several for entry in audit.page().entries]
    assert of_several == [True, False, False, True]
    assert [entry.of_several for entry in audit.page(size=1, key="dev").entries] == [False]
    assert [entry.of_several for entry in audit.page(size=1, key="ops").entries] == [True]


@pytest.mark.parametrize(
    ("filters", "expected_numbers"),
    [
        ({}, [4, 3, 2, 1]),
        ({"actor": "otto"}, [2]),
        ({"subject_kind": "agent"}, [3, 2, 1]),
        ({"subject_kind": "agent", "subject_key": "bea"}, [3]),
        ({"key": "dev"}, [3, 2, 1]),
        ({"action": "switch.clear"}, [3]),
        ({"via": "import"}, [4]),
        ({"actor": "olive", "via": "screen"}, [3, 1]),
        ({"actor": "nobody"}, []),
    ],
)
def test_a_page_contains_the_matching_entries_newest_first(
    filters: dict[str, Any], expected_numbers: list[int]
) -> None:
    recorded = [
        record(),
        record(actor="otto"),
        record(subject_key="bea", action="switch.clear"),
        record(via="import", subject_kind="tool", subject_key="run", key=""),
    ]

    page = audit.page(**filters)

    assert ids(page) == [recorded[number - 1] for number in expected_numbers]
    assert page.total == len(expected_numbers)


def test_a_page_can_be_limited_to_a_period() -> None:
    number = record()
    entry = audit.find(number)
    assert entry is not None

    assert ids(audit.page(since=entry.at, until=entry.at + HOUR)) == [number]
    assert ids(audit.page(until=entry.at)) == []
    assert ids(audit.page(since=entry.at + HOUR)) == []


def test_pages_are_traversed_from_newest_to_oldest_and_back() -> None:
    one, two, three, four, five = (record() for _ in range(5))

    first = audit.page(size=2)
    assert (ids(first), first.has_newer, first.has_older, first.total) == ([five, four], False, True, 5)
    second = audit.page(size=2, older_than=four)
    assert (ids(second), second.has_newer, second.has_older) == ([three, two], True, True)
    last = audit.page(size=2, older_than=two)
    assert (ids(last), last.has_newer, last.has_older) == ([one], True, False)
    assert ids(audit.page(size=2, newer_than=one)) == [three, two]


def test_the_number_of_queries_does_not_depend_on_undone_changes(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(3):
        record(undoes=record())

    # A page that is not full needs no count query.
    with django_assert_num_queries(2):
        assert audit.page().total == 6
    with django_assert_num_queries(3):
        assert audit.page(size=6).has_older is False
    with django_assert_num_queries(3):
        assert audit.page(size=5).has_older is True


def test_the_newest_entry_is_returned_by_agent_and_by_key() -> None:
    record()
    dev, bea = record(after=False), record(subject_key="bea")
    run = record(key="run", action="override.set")
    record(subject_kind="tool", subject_key="run", key="")

    newest = audit.newest("agent", ["ada", "bea", "nobody"])
    assert {key: entry.id for key, entry in newest.items()} == {"ada": run, "bea": bea}
    assert audit.newest("agent", ["bea"]).keys() == {"bea"}
    assert {key: entry.id for key, entry in audit.newest_by_key("agent", "ada").items()} == {
        "dev": dev,
        "run": run,
    }


def test_logged_values_are_the_distinct_recorded_values() -> None:
    record(actor="otto")
    record()
    record(action="switch.clear")

    assert audit.logged_values("actor") == ["olive", "otto"]
    assert audit.logged_values("action") == ["switch.clear", "switch.set"]
