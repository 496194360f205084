"""Tests that audit entries can be added but not changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction

from toolbelt import models
from toolbelt.core import errors

pytestmark = pytest.mark.django_db


def create_entry() -> models.AuditEntry:
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
    "updated in a query": lambda entry: models.AuditEntry.objects.update(actor="mallory"),
    "deleted in a query": lambda entry: models.AuditEntry.objects.all().delete(),
    "updated in bulk": lambda entry: models.AuditEntry.objects.bulk_update([entry], ["actor"]),
    "changed through its relations": lambda entry: entry.undone_by.update(actor="mallory"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_entry_cannot_be_changed_or_deleted(change: Callable[[models.AuditEntry], object]) -> None:
    entry = create_entry()
    entry.actor = "mallory"

    with pytest.raises(errors.Refused, match="only ever added to"):
        change(entry)
    assert models.AuditEntry.objects.get().actor == "olive"


def test_the_database_refuses_to_update_an_entry_in_sql() -> None:
    create_entry()

    with (
        pytest.raises(DatabaseError, match="only ever added to"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE toolbelt_auditentry SET actor = 'mallory'")
    assert models.AuditEntry.objects.get().actor == "olive"


def test_entries_can_be_deleted_in_raw_sql() -> None:
    create_entry()

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM toolbelt_auditentry")
    assert not models.AuditEntry.objects.exists()


def test_entries_can_be_created_in_bulk() -> None:
    models.AuditEntry.objects.bulk_create(
        [
            models.AuditEntry(actor="olive", via="import", action="tool.create", subject_key=key)
            for key in "ab"
        ]
    )

    assert [entry.subject_key for entry in models.AuditEntry.objects.all()] == ["b", "a"]


def test_the_text_of_an_entry_names_its_action_and_subject() -> None:
    assert str(create_entry()) == "switch.set ada dev"
