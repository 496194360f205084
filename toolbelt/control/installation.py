"""How is this installation? Its software, its database, its cache, and what it keeps; never a secret.

What it says of the process is of the one that answers: behind a load balancer, each has its own.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import django
from django.conf import settings
from django.core import checks
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations import executor
from django.utils import timezone

import toolbelt
from toolbelt import conf
from toolbelt.store import databases, kept, revisions

Kept = kept.Kept
# When this process took up its work: it is imported with the first pages.
_STARTED = timezone.now()
_KEY = "toolbelt:status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """The database: which, how fast it answers (milliseconds), and what of this code's migrations it lacks."""

    vendor: str
    version: str
    milliseconds: float
    pending: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The cache: whether it is shared between processes, and how fast it answers; ``error`` if it does not."""

    name: str
    is_shared: bool
    milliseconds: float
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How things are. ``findings`` are what Django's and Toolbelt's own checks have to say."""

    versions: Mapping[str, str]
    environment: str
    started: dt.datetime
    process: int
    now: dt.datetime
    zone: str
    database: Database
    cache: Cache
    revision: int
    kept: Mapping[str, Kept]
    findings: Sequence[str]


def look() -> Installation:
    """Look at it."""
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
        cache=_cache(),
        revision=revisions.number(),
        kept={"calls": kept.calls(), "changes": kept.changes(), "sessions": kept.sessions()},
        findings=_findings(),
    )


def is_database_busy() -> bool:
    """Return whether requests wait for a database connection. Raise OperationalError if the database is away."""
    return databases.is_busy()


def _database() -> Database:
    begun = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        took = 1000 * (time.perf_counter() - begun)
        cursor.execute("SELECT sqlite_version()" if connection.vendor == "sqlite" else "SHOW server_version")
        version = str(cursor.fetchone()[0])
    plan = executor.MigrationExecutor(connection)
    pending = plan.migration_plan(plan.loader.graph.leaf_nodes())
    return Database(
        vendor=connection.display_name,
        version=version,
        milliseconds=took,
        pending=[f"{migration.app_label}.{migration.name}" for migration, _ in pending],
    )


def _cache() -> Cache:
    backend = settings.CACHES["default"]["BACKEND"]
    is_shared = "locmem" not in backend.lower() and "dummy" not in backend.lower()
    name = "Redis" if "redis" in backend.lower() else "shared" if is_shared else "this process's memory"
    begun = time.perf_counter()
    error = ""
    try:
        cache.set(_KEY, "here", 10)
        if cache.get(_KEY) != "here":
            error = "it does not keep what it is given"
    except Exception as failed:  # of whichever client is behind it
        # Its words may hold the address that it was given, with the password in it.
        error = type(failed).__name__
    return Cache(
        name=name, is_shared=is_shared, milliseconds=1000 * (time.perf_counter() - begun), error=error
    )


def _findings() -> list[str]:
    told = [f"{name} should be {should_be}." for name, should_be in conf.unsound()]
    try:
        found = checks.run_checks(tags=[checks.Tags.database], databases=["default"])
    except DatabaseError:
        return told
    return [*told, *(f"{one.msg} {one.hint or ''}".strip() for one in found if not one.is_silenced())]
