"""Tests that documents are stored as exact text, and that invalid ones are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from tests import factories
from toolbelt import models
from toolbelt.core import schema

pytestmark = pytest.mark.django_db


def stored_text(table: str, column: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM {table}")  # noqa: S608 (names in this test)
        return str(cursor.fetchone()[0])


@pytest.mark.parametrize(
    "document",
    [
        {"maximum": 1e21, "minimum": 1.0, "step": 1e-7},
        {"b": 1, "a": {"d": [True, None], "c": 'é ü 漢 \u2028 \\ " \x01'}},
        {"description": "100% of {braces} and %s and $1"},
    ],
)
def test_a_document_is_stored_as_its_exact_canonical_text(document: dict[str, Any]) -> None:
    row = factories.tool("run", input_schema=document)

    assert stored_text("toolbelt_tool", "input_schema") == schema.canonical(document)
    row.refresh_from_db()
    assert json.dumps(row.input_schema) == json.dumps(json.loads(schema.canonical(document)))


def test_an_absent_document_is_stored_as_sql_null() -> None:
    factories.tool("run", output_schema=None)

    assert models.Tool.objects.filter(output_schema__isnull=True).count() == 1


def test_documents_can_be_bulk_written_and_filtered() -> None:
    row = factories.tool("run")
    row.annotations, row.output_schema = {"a": 1.0}, None
    models.Tool.objects.bulk_update([row], ["annotations", "output_schema"])
    models.Tool.objects.filter(key="run").update(input_schema={"type": "object", "title": "x"})

    reloaded = models.Tool.objects.get(annotations={"a": 1.0})
    assert (reloaded.annotations, reloaded.output_schema) == ({"a": 1.0}, None)
    assert reloaded.input_schema == {"type": "object", "title": "x"}


@pytest.mark.parametrize("junk", ["no json", "[]", '"text"', "null", "{", "1"])
def test_the_database_refuses_a_document_of_the_wrong_shape(junk: str) -> None:
    factories.tool("run")

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE toolbelt_tool SET annotations = %s", [junk])


def test_the_database_refuses_a_mapping_in_a_list_field() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        factories.loadout("house", plugins={"git": True})


def test_a_document_of_any_shape_can_be_a_scalar() -> None:
    entry = models.AuditEntry.objects.create(
        actor="olive",
        via="screen",
        action="switch.set",
        subject_kind="agent",
        subject_key="ada",
        before=False,
    )

    entry.refresh_from_db()
    assert (entry.before, entry.after) == (False, None)
    assert models.AuditEntry.objects.filter(after__isnull=True).exists()
