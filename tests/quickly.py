"""How does each of a thousand tests start from the same rows, without each of them storing those by hand?

What a configuration becomes is worked out once in a process, by the door that it goes through. From then on its rows
are inserted as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.core.management.color import no_style
from django.db import connection
from django.db import models as orm

from toolbelt import models
from toolbelt.store import snapshots

# Triggers write these.
_BY_TRIGGERS = {models.Revision, models.AgentRevision}
_Rows = list[tuple[str, list[tuple[Any, ...]]]]
_kept: dict[str, _Rows] = {}


def stored(name: str, store: Callable[[], object]) -> None:
    """Let that be stored which ``store`` stores in an empty database; ``name`` says what that is, to know it again."""
    snapshots.forget()
    if name not in _kept:
        store()
        _kept[name] = [(model, rows) for model, rows in map(_rows, _models()) if rows]
        return
    with connection.cursor() as cursor:
        for statement, rows in _kept[name]:
            cursor.executemany(statement, rows)
        # Rows that come with their numbers do not move PostgreSQL's counters, and a flush may have set those back.
        for statement in connection.ops.sequence_reset_sql(no_style(), _models()):
            cursor.execute(statement)


def _models() -> list[type[orm.Model]]:
    """Give the tables, each after those that it refers to."""
    found: list[type[orm.Model]] = []

    def add(model: type[orm.Model]) -> None:
        if model in found or model in _BY_TRIGGERS or model._meta.app_label != "toolbelt":
            return
        for field in model._meta.fields:
            if isinstance(field, orm.ForeignKey) and field.related_model is not model:
                add(field.related_model)
        found.append(model)

    for model in apps.get_app_config("toolbelt").get_models(include_auto_created=True):
        add(model)
    return found


def _rows(model: type[orm.Model]) -> tuple[str, list[tuple[Any, ...]]]:
    quote: Callable[[Any], str] = connection.ops.quote_name
    table = quote(model._meta.db_table)
    columns = [quote(field.column) for field in model._meta.concrete_fields]
    names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        # Names of tables and columns.
        cursor.execute(f"SELECT {names} FROM {table} ORDER BY {quote(model._meta.pk.column)}")  # noqa: S608
        rows = cursor.fetchall()
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608
    return statement, [tuple(row) for row in rows]
