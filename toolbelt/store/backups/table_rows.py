"""Copying all rows from one database to another, of the same or of the other kind.

Values are converted by Django's fields, and keys are kept. The target's triggers are absent meanwhile, so nothing is
numbered or stamped by the copying itself; creating them again moves every revision on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib import auth
from django.core.management.color import no_style
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db import models as orm
from django.db.models.functions import Cast

from toolbelt import models
from toolbelt.models.fields import JSONText
from toolbelt.store import revisions, triggers

FILE_ALIAS = "toolbelt_backup"
_BATCH = 500


def open_file(file: Path) -> None:
    """Let Django open a SQLite file as the database ``FILE_ALIAS``."""
    settings = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(file)}
    configured = connections.configure_settings({DEFAULT_DB_ALIAS: {}, FILE_ALIAS: settings})
    connections.settings[FILE_ALIAS] = configured[FILE_ALIAS]


def close_file() -> None:
    """Close the file, and forget it."""
    connections[FILE_ALIAS].close()
    del connections[FILE_ALIAS]
    del connections.settings[FILE_ALIAS]


def copy(source: str, target: str) -> None:
    """Replace all rows of the target by those of the source, as they were at one moment. Both are migrated."""
    number = last_number(target)
    with transaction.atomic(using=source), transaction.atomic(using=target):
        if connections[source].vendor == "postgresql":
            with connections[source].cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        triggers.remove(connections[target])
        tables = [*_models()]
        with connections[target].cursor() as cursor:
            for model in tables:
                # Constraints are checked at the end of the transaction.
                cursor.execute(f"DELETE FROM {connections[target].ops.quote_name(model._meta.db_table)}")  # noqa: S608
            for model in tables:
                _copy_rows(model, source, target, cursor)
            for statement in connections[target].ops.sequence_reset_sql(no_style(), tables):
                cursor.execute(statement)
        move_on(target, number)


def move_on(alias: str, after: int) -> None:
    """Let everything count as changed, with a higher number than ``after`` and than the database had."""
    with transaction.atomic(using=alias), revisions.moving_on(alias):
        triggers.remove(connections[alias])
        models.Revision.objects.using(alias).filter(number__lt=after).update(number=after)
        triggers.install(connections[alias])


def last_number(alias: str) -> int:
    """Return the number of the database's last write of configuration; 0 if it has no tables."""
    if models.Revision._meta.db_table not in connections[alias].introspection.table_names():
        return 0
    return models.Revision.objects.using(alias).values_list("number", flat=True).first() or 0


def counts(alias: str = DEFAULT_DB_ALIAS) -> dict[str, int]:
    """Return the numbers of a database's agents, users and audit entries; empty if it has no tables of Toolbelt's."""
    existing = set(connections[alias].introspection.table_names())
    counted: dict[str, type[orm.Model]] = {
        "agents": models.Agent,
        "users": auth.get_user_model(),
        "audit entries": models.AuditEntry,
    }
    return {
        name: model._base_manager.using(alias).count()
        for name, model in counted.items()
        if model._meta.db_table in existing
    }


def _models() -> Iterator[type[orm.Model]]:
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and not model._meta.proxy and not model._meta.swapped:
            yield model


def _copy_rows(model: type[orm.Model], source: str, target: str, cursor: Any) -> None:
    connection = connections[target]
    fields = [field for field in model._meta.concrete_fields if not field.generated]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in fields)
    statement = (
        f"INSERT INTO {quote(model._meta.db_table)} ({columns})"  # noqa: S608 (names of this project's tables)
        f" VALUES ({', '.join(['%s'] * len(fields))})"
    )
    selected = (
        # Its text as it is: reading the value would not tell the JSON null from no value.
        Cast(field.attname, orm.TextField()) if isinstance(field, JSONText) else field.attname
        for field in fields
    )
    rows = model._base_manager.using(source).order_by("pk").values_list(*selected)
    batch: list[list[Any]] = []
    for row in rows.iterator(chunk_size=_BATCH):
        batch.append(
            [
                value if isinstance(field, JSONText) else field.get_db_prep_save(value, connection)
                for field, value in zip(fields, row, strict=True)
            ]
        )
        if len(batch) == _BATCH:
            cursor.executemany(statement, batch)
            batch = []
    if batch:
        cursor.executemany(statement, batch)
