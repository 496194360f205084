"""The revision of the configuration, and the lock of its writers."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.db import connection, connections, transaction
from django.db.models import signals

from toolbelt import conf, models
from toolbelt.core import errors
from toolbelt.store import triggers


def lock() -> None:
    """Serialize writers of configuration; the lock is held until the transaction ends.

    SQLite took its write lock when the transaction began (``transaction_mode``: IMMEDIATE).
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "The lock lasts until the transaction ends: open one first."
        )
    locked = models.Revision.objects.select_for_update().filter(pk=models.Revision.THE_ONE)
    if locked.first() is None:
        models.Revision.objects.bulk_create([models.Revision()], ignore_conflicts=True)
        locked.get()


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


def _after_migrating(using: str, **options: Any) -> None:
    triggers.install(connections[using])


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
