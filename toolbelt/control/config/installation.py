"""Status of this installation: software, database, cache and retention; never a secret.

Process details are those of the process that handles the request: behind a load balancer, each process has its own.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import django
from django.conf import settings
from django.core import checks
from django.core.cache import cache
from django.db import Error, connection
from django.db.migrations import executor
from django.utils import timezone

import toolbelt
from toolbelt import conf
from toolbelt.core import belts
from toolbelt.core.search import sentence_model
from toolbelt.store import databases, entries, learned_words, locks, retention, revisions

RetentionStats = retention.RetentionStats
# When this process started: the module is imported with the first pages.
_STARTED = timezone.now()
_KEY = "toolbelt:status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """The database: its product, its response time (milliseconds), and the migrations that it lacks."""

    vendor: str
    version: str
    milliseconds: float
    pending: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The cache: whether processes share it, and its response time; ``error`` if it does not respond."""

    name: str
    is_shared: bool
    milliseconds: float
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The status. ``findings`` are the messages of Django's and Toolbelt's own checks."""

    versions: Mapping[str, str]
    environment: str
    started: dt.datetime
    process: int
    now: dt.datetime
    zone: str
    database: Database
    cache: Cache
    revision: int
    retention: Mapping[str, RetentionStats]
    learned: learned_words.Coverage
    is_learning: bool
    sentence_model: sentence_model.Status
    findings: Sequence[str]


def status() -> Installation:
    """Return the status of this installation."""
    return Installation(
        versions={
            "Toolbelt": toolbelt.__version__,
            "Django": django.get_version(),
            "Python": platform.python_version(),
        },
        environment=settings.ENVIRONMENT,
        started=_STARTED,
        process=os.getpid(),
        now=timezone.now(),
        zone=timezone.get_current_timezone_name(),
        database=_database(),
        cache=cache_status(),
        revision=revisions.number(),
        retention={
            "calls": retention.calls(),
            "changes": retention.changes(),
            "sessions": retention.sessions(),
        },
        learned=learned_words.coverage(),
        is_learning=conf.LEARN_FROM_USE,
        sentence_model=sentence_model.status(),
        findings=_findings(),
    )


def is_configured() -> bool:
    """Return whether anything is configured."""
    return any(entries.names(kind) for kind in belts.KINDS)


@contextlib.contextmanager
def migrating(on_wait: Callable[[], object]) -> Iterator[None]:
    """Let no other process migrate the database within the block. Call ``on_wait`` once if one does."""
    if connection.vendor == "sqlite" and connection.is_in_memory_db():  # type: ignore[attr-defined]
        yield
        return
    with locks.wait_for_lock("migrate", on_wait):
        yield


def is_database_busy() -> bool:
    """Return whether requests wait for a database connection; raise OperationalError if the database is unavailable."""
    return databases.is_busy()


def _database() -> Database:
    started = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT sqlite_version()" if connection.vendor == "sqlite" else "SHOW server_version")
        milliseconds = 1000 * (time.perf_counter() - started)
        version = str(cursor.fetchone()[0])
    plan = executor.MigrationExecutor(connection)
    pending = plan.migration_plan(plan.loader.graph.leaf_nodes())
    return Database(
        vendor=connection.display_name,
        version=version,
        milliseconds=milliseconds,
        pending=[f"{migration.app_label}.{migration.name}" for migration, _ in pending],
    )


def cache_status() -> Cache:
    """Return the status of the cache."""
    backend = settings.CACHES["default"]["BACKEND"]
    is_shared = "locmem" not in backend.lower() and "dummy" not in backend.lower()
    name = "Redis" if "redis" in backend.lower() else "shared" if is_shared else "this process's memory"
    started = time.perf_counter()
    error = ""
    try:
        cache.set(_KEY, "here", 10)
        if cache.get(_KEY) != "here":
            error = "it does not store values"
    except Exception as exception:  # whichever the client raises
        # The message may contain the cache's URL, with its password.
        error = type(exception).__name__
    return Cache(
        name=name, is_shared=is_shared, milliseconds=1000 * (time.perf_counter() - started), error=error
    )


def _findings() -> list[str]:
    messages = [f"{name} should be {expected}." for name, expected in conf.invalid_settings()]
    try:
        issues = checks.run_checks(tags=[checks.Tags.database], databases=["default"])
    except Error:
        return messages
    return [
        *messages,
        *(f"{issue.msg} {issue.hint or ''}".strip() for issue in issues if not issue.is_silenced()),
    ]
