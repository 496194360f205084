"""Fast fixtures: rows that are imported once and then inserted directly.

A process imports a configuration through `toolbelt.control` once, and inserts the resulting rows from then on. The rows
that migrations create are restored in the same way after a test that commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast

from django.apps import apps
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import OperationalError, connection, transaction
from django.db import models as orm
from django.test import Client
from pytest_django import DjangoDbBlocker

from toolbelt import models
from toolbelt.store import revisions, snapshots
from toolbelt.web.login import browsers

# Tables that only triggers write to.
_BY_TRIGGERS = {models.Revision, models.AgentRevision}
_Rows = list[tuple[str, list[tuple[Any, ...]]]]
# By name: the rows, and the return value of the call that stored them.
_cache: dict[str, tuple[_Rows, Any]] = {}

# How often the database is emptied again after a test whose threads still write.
EMPTYING_TRIES = 3

Stored = TypeVar("Stored")


def stored(name: str, store: Callable[[], Stored]) -> Stored:
    """Store what ``store`` stores in an empty database, and return what it returns.

    From the second call with the same ``name`` on, the rows are inserted directly. If the database is not empty,
    ``store`` is called.
    """
    snapshots.forget()
    if not _is_empty():
        return store()
    if name not in _cache:
        returned = store()
        _cache[name] = [(model, rows) for model, rows in map(_rows, _models()) if rows], returned
        return returned
    tables, returned = _cache[name]
    with connection.cursor() as cursor:
        for statement, rows in tables:
            cursor.executemany(statement, rows)
        # Rows with explicit IDs do not advance PostgreSQL's sequences, and a flush may have reset these.
        for statement in connection.ops.sequence_reset_sql(no_style(), _models()):
            cursor.execute(statement)
    # They are as if they had been written through control.
    revisions.account()
    return cast("Stored", returned)


def demo() -> None:
    """Store the demo in the database, which takes a second the first time in a process."""
    stored("demo", lambda: call_command("loaddata", "demo", verbosity=0))


def _is_empty() -> bool:
    tables = [connection.ops.quote_name(model._meta.db_table) for model in _models()]
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables))  # noqa: S608
        return not cursor.fetchone()[0]


@contextmanager
def shared(blocker: DjangoDbBlocker) -> Iterator[None]:
    """Keep the rows stored in this context for all tests of a module, each of which rolls back only its own."""
    with blocker.unblock():
        snapshots.forget()
        outer = transaction.atomic()
        outer.__enter__()
    try:
        with blocker.unblock():
            yield
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            outer.__exit__(None, None, None)
            snapshots.forget()


def logged_in(user: AbstractBaseUser) -> Client:
    """Return a client with a session of the user, without the other effects of a login."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    # As after a first request.
    session[browsers._NOTED] = [session.session_key, time.time()]
    session.save()
    browser = Client()
    browser.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    return browser


def emptying() -> Callable[[object], None]:
    """Return a function that empties the database after a test that commits, and restores the rows of migrations.

    Django's flush recreates all permissions and checks each trigger, which takes longer than most tests.
    """
    initial_rows = [
        _rows(model) for model in apps.get_models(include_auto_created=True) if model not in _BY_TRIGGERS
    ]
    inserts = [_insert_all(statement, rows) for statement, rows in initial_rows if rows]
    deletes = _deletes(connection.introspection.django_table_names(only_existing=True, include_views=False))

    def empty_once() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            for statement in deletes:
                cursor.execute(statement)
            for statement, values in inserts:
                cursor.execute(statement, values)

    def empty(case: object) -> None:
        for tries_left in reversed(range(EMPTYING_TRIES)):
            try:
                empty_once()
                break
            except OperationalError:
                # On a busy machine, a thread of the test still writes.
                if not tries_left:
                    raise
        ContentType.objects.clear_cache()

    return empty


def _deletes(tables: Iterable[str]) -> list[str]:
    """Return the statements that empty the tables, in one if possible, and those written by triggers last."""
    last = {model._meta.db_table for model in _BY_TRIGGERS}
    quoted = [connection.ops.quote_name(table) for table in sorted(tables, key=last.__contains__)]
    statements = [f"DELETE FROM {table}" for table in quoted]  # noqa: S608
    return statements if connection.vendor == "sqlite" else ["; ".join(statements)]


def _insert_all(statement: str, rows: list[tuple[Any, ...]]) -> tuple[str, list[Any]]:
    """Return a statement that inserts all rows, and its parameters."""
    head, _, marks = statement.partition(" VALUES ")
    return f"{head} VALUES {', '.join([marks] * len(rows))}", [value for row in rows for value in row]


@cache
def _models() -> list[type[orm.Model]]:
    """Return the models, each after those that it refers to."""
    models_: list[type[orm.Model]] = []

    def add(model: type[orm.Model]) -> None:
        if model in models_ or model in _BY_TRIGGERS or model._meta.app_label != "toolbelt":
            return
        for field in model._meta.fields:
            if isinstance(field, orm.ForeignKey) and field.related_model is not model:
                add(field.related_model)
        models_.append(model)

    for model in apps.get_app_config("toolbelt").get_models(include_auto_created=True):
        add(model)
    return models_


def _rows(model: type[orm.Model]) -> tuple[str, list[tuple[Any, ...]]]:
    quote: Callable[[Any], str] = connection.ops.quote_name
    table = quote(model._meta.db_table)
    columns = [quote(field.column) for field in model._meta.concrete_fields]
    names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        # The names are those of tables and columns.
        cursor.execute(f"SELECT {names} FROM {table} ORDER BY {quote(model._meta.pk.column)}")  # noqa: S608
        rows = cursor.fetchall()
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608
    return statement, [tuple(row) for row in rows]
