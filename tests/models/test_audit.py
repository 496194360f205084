"""Audit entries can only be added."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction

from toolbelt import models
from toolbelt.core import errors

pytestmark = pytest.mark.django_db


def recorded() -> models.AuditEntry:
    return models.AuditEntry.objects.create(
        actor="olive",
        via="screen",
        action="switch.set",
        subject_kind="agent",
        subject_key="ada",
        key="dev",
        after=True,
    )


CHANGES: dict[str, Callable[[models.AuditEntry], object]] = {
    "saved again": lambda entry: entry.save(),
    "deleted": lambda entry: entry.delete(),
    "updated with others": lambda entry: models.AuditEntry.objects.update(actor="mallory"),
    "deleted with others": lambda entry: models.AuditEntry.objects.all().delete(),
    "updated in bulk": lambda entry: models.AuditEntry.objects.bulk_update([entry], ["actor"]),
    "changed through its relations": lambda entry: entry.undone_by.update(actor="mallory"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_entry_cannot_be(change: Callable[[models.AuditEntry], object]) -> None:
    entry = recorded()
    entry.actor = "mallory"

    with pytest.raises(errors.Refused, match="only ever added to"):
        change(entry)
    assert models.AuditEntry.objects.get().actor == "olive"


def test_the_database_refuses_to_change_an_entry_whoever_asks() -> None:
    recorded()

    with (
        pytest.raises(DatabaseError, match="only ever added to"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE toolbelt_auditentry SET actor = 'mallory'")
    assert models.AuditEntry.objects.get().actor == "olive"


def test_raw_sql_may_delete_entries() -> None:
    recorded()

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM toolbelt_auditentry")
    assert not models.AuditEntry.objects.exists()


def test_entries_may_be_added_together() -> None:
    models.AuditEntry.objects.bulk_create(
        [
            models.AuditEntry(actor="olive", via="import", action="tool.create", subject_key=key)
            for key in "ab"
        ]
    )

    assert [entry.subject_key for entry in models.AuditEntry.objects.all()] == ["b", "a"]


def test_an_entry_says_what_it_is_about() -> None:
    assert str(recorded()) == "switch.set ada dev"
