"""Checks that the database can be reached, read and written, fits this version, and announces changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from django import db
from django.db import connection, transaction
from django.db.migrations import executor
from django.utils import timezone

from toolbelt import conf, models
from toolbelt.control.doctor import findings
from toolbelt.control.reports import audit_serializer
from toolbelt.core import texts
from toolbelt.store import faults, revisions
from toolbelt.store.state_probe import postgresql

# JSON functions, which columns are checked with, are always part of SQLite from this version on.
MIN_SQLITE = (3, 38)
MIN_POSTGRESQL = 15
# How much the clocks may differ: tokens and grants end by the time of the process that checks them.
MAX_CLOCK_SECONDS = 5.0
# How long a notification of the database may take.
NOTIFICATION_SECONDS = 2.0
CHANNEL = "toolbelt_doctor"
LISTEN = f"LISTEN {CHANNEL}"
_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "glusterfs"}
)


def unreachable() -> findings.Finding | None:
    """Return the finding that the database cannot be used at all; None if it can."""
    if (path := _file()) is not None and not path.exists():
        if not path.parent.is_dir():
            return findings.Finding(
                code="database-missing",
                message=f"The directory {path.parent} of the database file does not exist.",
                way_out="Create the directory, or correct DATABASE_URL.",
            )
        # Connecting would create an empty file.
        return findings.Finding(
            code="database-missing",
            message=f"The database file {path} does not exist.",
            way_out=f"Correct DATABASE_URL, or create the database with `{conf.COMMAND} migrate`.",
        )
    try:
        if connection.vendor == "postgresql":
            # Without the pool, which only reports that it has no connection.
            psycopg.connect(**{**postgresql.parameters(connection), "connect_timeout": 5}).close()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except (db.Error, psycopg.Error) as error:
        cause = error.__cause__ or error
        reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        if "django_migrations" in reason:
            return findings.Finding(
                code="migrations-pending",
                message="The database has no tables.",
                way_out=f"Run `{conf.COMMAND} migrate`, or correct DATABASE_URL.",
            )
        if connection.vendor == "sqlite" and not isinstance(error, db.OperationalError):
            return _damaged(reason)
        return findings.Finding(
            code="database-unreachable",
            message=f"The database cannot be used: {reason}.",
            way_out="Check that the database runs, and that DATABASE_URL names its host, port, user, password and"
            " database.",
        )
    return None


def examine() -> Iterator[findings.Finding]:
    """Yield the findings about a database that can be reached."""
    yield from _version()
    yield from _migrations()
    yield from _writable()
    if connection.vendor == "sqlite":
        yield from _damage()
        yield from _journal()
    else:
        yield from _notifications()
    yield from _clock()
    yield from _unlogged()


def _unlogged() -> Iterator[findings.Finding]:
    try:
        unlogged = revisions.find_unlogged()
    except db.Error:
        # The migrations are pending, which is a finding of its own.
        return
    if unlogged is not None:
        words = audit_serializer.unlogged_words(unlogged)
        yield findings.Finding(
            level="note",
            code="written-around-the-log",
            message=f"{words[0].upper()}{words[1:]}, by SQL or loaddata for example: what it was before is unknown.",
            way_out="Nothing has to be done: the next entry of the audit log states it. Change the configuration with"
            " Toolbelt's pages, API and commands, which record what they change.",
        )


def _version() -> Iterator[findings.Finding]:
    opened: Any = connection
    version: tuple[int, ...]
    minimum: tuple[int, ...]
    if opened.vendor == "sqlite":
        version, minimum, name = opened.Database.sqlite_version_info, MIN_SQLITE, "SQLite"
    else:
        version, minimum, name = divmod(opened.pg_version, 10_000), (MIN_POSTGRESQL,), "PostgreSQL"
    if version < minimum:
        yield findings.Finding(
            code="database-version",
            message=f"{name} {_dotted(version)} is too old.",
            way_out=f"Upgrade {name} to {_dotted(minimum)} or newer.",
        )


def _migrations() -> Iterator[findings.Finding]:
    plan = executor.MigrationExecutor(connection)
    pending = plan.migration_plan(plan.loader.graph.leaf_nodes())
    if pending:
        names = texts.listing([f"{migration.app_label}.{migration.name}" for migration, _ in pending], 3)
        missing = f"{len(pending)} migration{' is' if len(pending) == 1 else 's are'} missing"
        yield findings.Finding(
            code="migrations-pending",
            message=f"The database is older than this version of Toolbelt: {missing} ({names}).",
            way_out=f"Back up the database, then run `{conf.COMMAND} migrate`.",
        )
    existing = plan.loader.disk_migrations
    unknown = sorted(
        name
        for app, name in plan.loader.applied_migrations
        if app == "toolbelt" and (app, name) not in existing
    )
    if unknown:
        yield findings.Finding(
            code="migrations-unknown",
            message=f"The database is newer than this version of Toolbelt: it has the migration {unknown[-1]}.",
            way_out="Install the version of Toolbelt that the database was last used with, or a newer one.",
        )


def _writable() -> Iterator[findings.Finding]:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # It deletes nothing, but needs everything that a write needs.
            cursor.execute("DELETE FROM django_migrations WHERE 1 = 0")
    except db.Error as error:
        unavailable = faults.classify(error)
        yield findings.Finding(
            code="database-not-writable",
            message=str(unavailable or error.__cause__ or error),
            way_out="Let Toolbelt's user write to the database and, for SQLite, to its directory; end a process that"
            " holds a lock, a standby's recovery, or a full disk.",
        )


def _damage() -> Iterator[findings.Finding]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA quick_check(1)")
            [(answer,)] = cursor.fetchall()
    except db.Error as error:
        answer = str(error)
    if answer != "ok":
        yield _damaged(answer.splitlines()[-1])


def _damaged(reason: str) -> findings.Finding:
    return findings.Finding(
        code="database-damaged",
        message=f"The database file is damaged: {reason}.",
        way_out="Stop Toolbelt, keep a copy of the file, and restore a backup:"
        f" `{conf.COMMAND} restore FILE --replace`.",
    )


def _journal() -> Iterator[findings.Finding]:
    """Yield a finding if other processes do not see a change of the SQLite file at once, or at all."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        [(mode,)] = cursor.fetchall()
    path = _file()
    system = _file_system(path) if path is not None else ""
    if mode != "wal" and path is not None:
        yield findings.Finding(
            code="changes-not-seen",
            message=f"The SQLite file is in the journal mode {mode!r}, in which readers and writers block each other.",
            way_out="Put the file on a local disk whose file system supports shared memory.",
        )
    elif system in _NETWORK_FILE_SYSTEMS:
        yield findings.Finding(
            code="changes-not-seen",
            message=f"The SQLite file is on a network file system ({system}), where processes on different machines do"
            " not see each other's changes, and can damage the file.",
            way_out="Move the file to a local disk, or use PostgreSQL.",
        )


def _notifications() -> Iterator[findings.Finding]:
    """Yield a finding if a commit of one process is not announced to the others."""
    parameters = {**postgresql.parameters(connection), "prepare_threshold": None}
    try:
        with (
            psycopg.connect(**parameters, autocommit=True) as listener,
            psycopg.connect(**parameters, autocommit=True) as writer,
        ):
            listener.execute(LISTEN)
            writer.execute(f"NOTIFY {CHANNEL}")
            if [*listener.notifies(timeout=NOTIFICATION_SECONDS, stop_after=1)]:
                return
    except psycopg.Error:
        pass  # it was reachable a moment ago: the listener is what fails
    yield findings.Finding(
        code="changes-not-seen",
        message="PostgreSQL's notifications do not arrive, so processes notice each other's changes later, by polling.",
        way_out="Connect to PostgreSQL directly, or set the pooler between to session mode (for PgBouncer:"
        " pool_mode = session).",
    )


def _clock() -> Iterator[findings.Finding]:
    now = timezone.now()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            [(server,)] = cursor.fetchall()
        seconds = abs((server - now).total_seconds())
        if seconds > MAX_CLOCK_SECONDS:
            yield findings.Finding(
                code="clock",
                message=f"The clocks of this machine and of the database server differ by {seconds:.0f} s.",
                way_out="Let both synchronize their clocks (NTP): tokens and grants end by this machine's time.",
            )
    newest = _newest_change()
    if newest is not None and (newest - now).total_seconds() > 60:
        yield findings.Finding(
            code="clock",
            message=f"The audit log has an entry from the future ({newest:%Y-%m-%d %H:%M} UTC), so this machine's clock"
            f" ({now:%Y-%m-%d %H:%M} UTC) is slow, or was fast before.",
            way_out="Let the machine synchronize its clock (NTP): tokens and grants end by its time.",
        )


def _newest_change() -> dt.datetime | None:
    try:
        return models.AuditEntry.objects.order_by("-pk").values_list("at", flat=True).first()
    except db.Error:
        return None  # a missing migration, which is a finding of its own


def _file() -> Path | None:
    if connection.vendor != "sqlite" or connection.is_in_memory_db():  # type: ignore[attr-defined]
        return None
    name: Any = connection.settings_dict["NAME"]
    return Path(name).resolve()


def _file_system(path: Path) -> str:
    """Return the type of the file system that a file is on; empty if it is unknown."""
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return ""
    mounts = [fields for line in lines if len(fields := line.split()) > 2 and path.is_relative_to(fields[1])]
    return max(mounts, key=lambda fields: len(fields[1]))[2] if mounts else ""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(number) for number in version)
