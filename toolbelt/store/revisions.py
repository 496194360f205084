"""The revision of the configuration, the lock of its writers, and the check that the audit log has every write.

Triggers move the number with every write, whoever makes it. When Toolbelt takes the lock for a write, the number must
be the one that its previous write left: if it is not, the log lacks a write, and the next entry says so.
"""

from __future__ import annotations

import contextlib
import contextvars
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db import models as orm
from django.db.models import signals

from toolbelt import conf, models
from toolbelt.core import errors
from toolbelt.store import triggers


@dataclass(slots=True)
class _Write:
    """A write that runs. ``unlogged`` is what was written around the log before it, until an entry notes it;
    ``has_entry``: it has one.
    """

    unlogged: Mapping[str, Any] | None
    has_entry: bool = False


_running: contextvars.ContextVar[_Write | None] = contextvars.ContextVar("write", default=None)


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Serialize writers of configuration as :func:`lock` does, and count what the block writes as logged."""
    outer = _running.get()
    if outer is not None:
        unlogged = outer.unlogged
        try:
            lock()
            yield
        except BaseException:
            # The entry that noted it is rolled back.
            outer.unlogged = unlogged
            raise
        return
    write = _Write(_unlogged(lock()))
    token = _running.set(write)
    try:
        yield
    finally:
        _running.reset(token)
    if write.unlogged is not None:
        return
    if write.has_entry:
        models.Revision.objects.update(logged=orm.F("number"))
    else:
        account()


def note_entry() -> tuple[int, Mapping[str, Any] | None]:
    """Return the number of the last write, and what was written around the log before this write, for the one entry
    that notes it; None: nothing.
    """
    write, unlogged = _running.get(), None
    if write is not None:
        write.has_entry = True
        unlogged, write.unlogged = write.unlogged, None
    return number(), unlogged


def find_unlogged() -> Mapping[str, Any] | None:
    """Return what was written around the log since the last entry; None: nothing.

    That is the number of the last write before it (``since``), whether it changed the catalog, and the ``agents`` that
    it changed. If neither, an agent was deleted.
    """
    row = models.Revision.objects.filter(pk=models.Revision.THE_ONE).first()
    return None if row is None else _unlogged(row)


def account(using: str = DEFAULT_DB_ALIAS) -> None:
    """Count everything that was written until now as logged."""
    behind = models.Revision.objects.using(using).exclude(logged=orm.F("number"))
    # An update without rows would be announced to other processes, too.
    if behind.exists():
        behind.update(logged=orm.F("number"))


@contextlib.contextmanager
def moving_on(using: str) -> Iterator[None]:
    """Count what the block writes as logged, if everything before it is."""
    is_whole = not models.Revision.objects.using(using).exclude(logged=orm.F("number")).exists()
    yield
    if is_whole:
        account(using)


def _unlogged(row: models.Revision) -> dict[str, Any] | None:
    # The log of a new installation begins with what it has.
    if row.logged == row.number or not models.AuditEntry.objects.exists():
        return None
    moved = models.AgentRevision.objects.filter(number__gt=row.logged).values("agent_id")
    agents = models.Agent.objects.filter(pk__in=moved).order_by("key").values_list("key", flat=True)
    return {"since": row.logged, "catalog": row.catalog_number > row.logged, "agents": list(agents)}


def lock() -> models.Revision:
    """Serialize writers of configuration until the transaction ends; return the revision.

    SQLite took its write lock when the transaction began (``transaction_mode``: IMMEDIATE).
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "The lock lasts until the transaction ends: open one first."
        )
    locked = models.Revision.objects.select_for_update().filter(pk=models.Revision.THE_ONE)
    row = locked.first()
    if row is None:
        models.Revision.objects.bulk_create([models.Revision(logged=0)], ignore_conflicts=True)
        row = locked.get()
    return row


def number() -> int:
    """Return the number of the last write of configuration."""
    return (
        models.Revision.objects.filter(pk=models.Revision.THE_ONE).values_list("number", flat=True).first()
        or 0
    )


def number_of(agent: str) -> int:
    """Return the number of the last write that may concern this agent: its own, or the catalog's. Raise NotFound."""
    agent_id = models.Agent.objects.filter(key=agent).values_list("pk", flat=True).first()
    if agent_id is None:
        raise errors.NotFound("agent", agent, models.Agent.objects.values_list("key", flat=True))
    of_agent = models.AgentRevision.objects.filter(pk=agent_id).values_list("number", flat=True).first()
    of_catalog = models.Revision.objects.values_list("catalog_number", flat=True).first()
    return max(of_agent or 0, of_catalog or 0)


def connect() -> None:
    """Maintain the triggers through migrations, and check for missing ones."""
    config = apps.get_app_config("toolbelt")
    signals.pre_migrate.connect(_before_migrating, sender=config, dispatch_uid="toolbelt.revisions")
    signals.post_migrate.connect(_after_migrating, sender=config, dispatch_uid="toolbelt.revisions")
    for model in (models.Revision, models.AgentRevision):
        signals.pre_save.connect(_before_saving, sender=model, dispatch_uid="toolbelt.revisions")
    checks.register(check, checks.Tags.database)


def check(
    app_configs: Sequence[AppConfig] | None, databases: Iterable[str] | None = None, **options: Any
) -> list[checks.CheckMessage]:
    """Return a warning for each database without all triggers. It is no error, because `migrate` fixes it and runs the
    checks first.
    """
    return [
        checks.Warning(
            f"Writes may go unnoticed. Triggers missing in the database {alias!r}: {len(missing)}.",
            hint=f"Run `{conf.COMMAND} migrate`, which creates them. Until then, agents may get outdated answers.",
            id="toolbelt.W002",
        )
        for alias in databases or ()
        if (missing := triggers.missing(connections[alias]))
    ]


def _before_migrating(using: str, plan: Sequence[tuple[Any, bool]] = (), **options: Any) -> None:
    # SQLite rebuilds a table to change it, and fails while a trigger refers to one that is briefly missing.
    if any(migration.app_label == "toolbelt" for migration, _ in plan):
        triggers.remove(connections[using])


def _after_migrating(using: str, plan: Sequence[tuple[Any, bool]] = (), **options: Any) -> None:
    is_ours = any(migration.app_label == "toolbelt" for migration, _ in plan)
    # The installation of triggers writes, but changes nothing. An older migration may have no column for that.
    with moving_on(using) if is_ours and _has_column(using) else contextlib.nullcontext():
        triggers.install(connections[using])


def _has_column(using: str) -> bool:
    connection_, table = connections[using], models.Revision._meta.db_table
    with connection_.cursor() as cursor:
        if table not in connection_.introspection.table_names(cursor):
            return False
        columns = connection_.introspection.get_table_description(cursor, table)
    return any(column.name == "logged" for column in columns)


def _before_saving(
    instance: models.Revision | models.AgentRevision, raw: bool, using: str, **options: Any
) -> None:
    """Set a new stamp on a revision from a fixture, because its stamp identifies the state of another database."""
    if not raw:
        return
    now = models.Revision.objects.using(using).filter(pk=models.Revision.THE_ONE).first()
    instance.number = max(instance.number, now.number if now else 0) + 1
    if isinstance(instance, models.AgentRevision):
        instance.stamp = secrets.token_hex(16)
    else:
        instance.catalog_number, instance.catalog_stamp = instance.number, secrets.token_hex(16)
