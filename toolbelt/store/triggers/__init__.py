"""Are the triggers there that keep the revision true?

Whoever writes configuration moves the revision: the ORM, a bulk update, a fixture, a hand at the database's own
prompt. So the database itself must see to it. Tables are in two families: what exists (the catalog) moves the
catalog's stamp, what belongs to one agent moves that agent's. Sessions and the audit log move nothing. An UPDATE
of the log is refused, whoever asks for it; a DELETE is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from toolbelt.store.triggers import postgresql, sqlite
from toolbelt.store.triggers import tables as families


class Language(Protocol):
    """How one database says it. ``wanted`` gives the statement that makes each trigger, by the trigger's name."""

    def wanted(self, tables: families.Tables) -> dict[str, str]: ...

    def present(self, connection: BaseDatabaseWrapper, tables: families.Tables) -> set[str]: ...

    def prepare(self, tables: families.Tables) -> list[str]: ...

    def drop(self, tables: families.Tables, names: set[str]) -> list[str]: ...

    def move_everything(self, tables: families.Tables) -> list[str]: ...


CHANNEL = postgresql.CHANNEL

_LANGUAGES: Mapping[str, Language] = {"sqlite": sqlite, "postgresql": postgresql}


def install(connection: BaseDatabaseWrapper) -> bool:
    """Make the triggers that are missing; say whether any was.

    Then something may have been written that nobody saw: so everything counts as changed, once. A trigger is known by
    its name: a new version of its text comes with a migration, before which all are removed.
    """
    language, tables = _LANGUAGES[connection.vendor], _there(connection)
    absent = missing(connection)
    if tables is None or not absent:
        return False
    wanted = language.wanted(tables)
    _execute(
        connection,
        [
            *language.prepare(tables),
            *(wanted[name] for name in absent),
            *language.move_everything(tables),
        ],
    )
    return True


def remove(connection: BaseDatabaseWrapper) -> None:
    """Take all the triggers away, as tables are about to be rebuilt."""
    language, tables = _LANGUAGES[connection.vendor], families.named()
    _execute(connection, language.drop(tables, language.present(connection, tables)))


def missing(connection: BaseDatabaseWrapper) -> tuple[str, ...]:
    """Name the triggers that should be there and are not; none as long as the tables are not there either."""
    language, tables = _LANGUAGES[connection.vendor], _there(connection)
    if tables is None:
        return ()
    present = language.present(connection, tables)
    return tuple(name for name in language.wanted(tables) if name not in present)


def _there(connection: BaseDatabaseWrapper) -> families.Tables | None:
    return families.among(frozenset(connection.introspection.table_names()))


def _execute(connection: BaseDatabaseWrapper, statements: list[str]) -> None:
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
