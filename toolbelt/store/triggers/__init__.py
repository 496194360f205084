"""The database triggers that move the revision.

Every write of configuration must move the revision: by the ORM, a bulk update, a fixture, or at the database's own
prompt. The database therefore does so itself. There are two families of tables: the catalog's move the catalog's stamp,
an agent's move that agent's. Sessions and the audit log move nothing. The database refuses an UPDATE of the log, but
not a DELETE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from toolbelt.store.triggers import postgresql, sqlite
from toolbelt.store.triggers import tables as families


class Language(Protocol):
    """The SQL of one database. ``statements`` returns the statements that create triggers, by name."""

    def statements(self, tables: families.Tables) -> dict[str, str]: ...

    def present(self, connection: BaseDatabaseWrapper, tables: families.Tables) -> set[str]: ...

    def prepare(self, tables: families.Tables) -> list[str]: ...

    def drop(self, tables: families.Tables, names: set[str]) -> list[str]: ...

    def move_everything(self, tables: families.Tables) -> list[str]: ...


CHANNEL = postgresql.CHANNEL

_LANGUAGES: Mapping[str, Language] = {"sqlite": sqlite, "postgresql": postgresql}


def install(connection: BaseDatabaseWrapper) -> bool:
    """Create the missing triggers; return whether there were any.

    If so, something may have been written unnoticed, so everything counts as changed. A trigger is identified by its
    name: a new version requires a migration, before which all are removed.
    """
    language, tables = _LANGUAGES[connection.vendor], _existing_tables(connection)
    missing_names = missing(connection)
    if tables is None or not missing_names:
        return False
    statements = language.statements(tables)
    _execute(
        connection,
        [
            *language.prepare(tables),
            *(statements[name] for name in missing_names),
            *language.move_everything(tables),
        ],
    )
    return True


def remove(connection: BaseDatabaseWrapper) -> None:
    """Remove all triggers, before tables are rebuilt."""
    language, tables = _LANGUAGES[connection.vendor], families.all_tables()
    _execute(connection, language.drop(tables, language.present(connection, tables)))


def missing(connection: BaseDatabaseWrapper) -> tuple[str, ...]:
    """Return the names of missing triggers; none if the tables do not exist yet."""
    language, tables = _LANGUAGES[connection.vendor], _existing_tables(connection)
    if tables is None:
        return ()
    present = language.present(connection, tables)
    return tuple(name for name in language.statements(tables) if name not in present)


def _existing_tables(connection: BaseDatabaseWrapper) -> families.Tables | None:
    return families.existing(frozenset(connection.introspection.table_names()))


def _execute(connection: BaseDatabaseWrapper, statements: list[str]) -> None:
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
