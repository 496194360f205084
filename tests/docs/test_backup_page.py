"""Tests that run the commands of the page on backups while four processes write.

The restored data is compared with the moment of the backup: each writer prints the digest of its agent's surface after
each of its writes, and the backup contains a known number of them. The database has a row in every table.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.core.management.base import CommandError
from django.db import connection
from pytest_django import DjangoDbBlocker

from tests import rows
from tests.docs import pages
from tests.installation import Installation, postgresql
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.runtime import credentials, surfaces
from toolbelt.runtime.surfaces import documents
from toolbelt.store import revisions, triggers

pytestmark = pytest.mark.slow

PAGE = pages.ROOT / "docs/how-to/back-up-and-restore.md"
WRITERS = ("assistant", "planner", "reviewer", "runner")
BELT = {
    "tools": [
        {"key": key, "description": key, "annotations": {"readOnlyHint": True}} for key in ("arxiv", "fetch")
    ],
    "agents": [{"key": key} for key in (*WRITERS, "omni", "kiosk")],
}
# Four processes that flip an override repeatedly and print the digest of the agent's surface after each flip.
PROGRAM = """
import os, sys, time
import django
django.setup()
from django import db
from tests.docs.test_backup_page import override, surface

def write(agent):
    on = False
    while True:
        on = not on
        while True:
            try:
                override(agent, on)
                break
            except db.OperationalError:
                pass  # on a loaded machine, a SQLite write can time out: try again
        os.write(1, f"{agent} {surface(agent)}\\n".encode())
        time.sleep(0.2)  # leaves time for the backup

for agent in sys.argv[1:]:
    if os.fork() == 0:
        write(agent)
os.wait()
"""


@pytest.fixture(autouse=True)
def databases_of_installations(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Allow access to the databases of the installations; the tests use no database of their own."""
    with django_db_blocker.unblock():
        yield


def surface(agent: str) -> str:
    document = documents.of(surfaces.ask(agent), None)
    del document["revision"]
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def override(agent: str, on: bool) -> None:
    write = writing.by("olive", via="command").replace(confirm=True)
    switches.override(write, agent, "arxiv", on)


def state(installation: Installation, token: str, until: int | None = None) -> dict[str, Any]:
    """Return the observable state of the installation, with the audit log up to the entry `until`."""
    with installation.used():
        entries = models.AuditEntry.objects.order_by("id")
        if until is not None:
            entries = entries.filter(id__lte=until)
        return {
            "surfaces": {agent.key: surface(agent.key) for agent in models.Agent.objects.all()},
            "token": credentials.recognize(token) is not None,
            "audit": [[str(value) for value in row] for row in entries.values_list()],
            "last entry": max(entries.values_list("id", flat=True)),
            "flips": {agent: entries.filter(subject_key=agent, key="arxiv").count() for agent in WRITERS},
            "revision": revisions.number(),
            "triggers missing": len(triggers.missing(connection)),
        }


@contextlib.contextmanager
def written_to(installation: Installation) -> Iterator[Mapping[str, list[str]]]:
    """Run four writing processes inside the block; yield the surfaces of their agents, complete at its end."""
    surfaces: dict[str, list[str]] = defaultdict(list)
    file = installation.directory / "writes"

    def wait_for(more: int) -> None:
        """Wait until every writer has made this many more writes."""
        goal = {agent: len(surfaces[agent]) + more for agent in WRITERS}
        while any(len(surfaces[agent]) < number for agent, number in goal.items()):
            assert running.poll() is None
            time.sleep(0.02)
            surfaces.clear()
            for line in file.read_text().splitlines():
                agent, digest = line.split()
                surfaces[agent].append(digest)

    with (
        file.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *WRITERS],
            cwd=pages.ROOT,
            env=installation.environment,
            stdout=output,
            start_new_session=True,
        ) as running,
    ):
        try:
            wait_for(3)
            yield surfaces
            wait_for(1)
        finally:
            os.killpg(running.pid, signal.SIGTERM)


def commands(heading: str) -> list[str]:
    """Return the commands in the section with this heading."""
    part = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", part, re.MULTILINE | re.DOTALL)
    assert blocks, heading
    return [textwrap.dedent(block) for block in blocks]


def run_here(installation: Installation, command: str) -> str:
    """Run a command of the page in this process, which is quicker than in a shell."""
    program, *words = shlex.split(command)
    assert program == "toolbelt"
    return installation.manage(*words)


def check_restored(
    target: Installation, token: str, source: dict[str, Any], surfaces: Mapping[str, list[str]] | None = None
) -> None:
    """Check that the target equals the source at the moment of the backup, and accepts further changes."""
    restored = state(target, token)
    # The log is complete up to the last entry of the backup, and no entry is partial.
    assert restored["audit"] == source["audit"]
    for agent, number in restored["flips"].items():
        if surfaces is not None:
            assert number >= 3
            assert restored["surfaces"][agent] == surfaces[agent][number - 1], agent
    others = restored["surfaces"].keys() - (WRITERS if surfaces is not None else ())
    assert {agent: restored["surfaces"][agent] for agent in others} == {
        agent: source["surfaces"][agent] for agent in others
    }
    assert (restored["token"], restored["triggers missing"]) == (True, 0)
    with target.used():
        override("omni", not switches.current_value("omni", "arxiv"))
    after = state(target, token)
    assert after["revision"] > restored["revision"]
    assert len(after["audit"]) == len(restored["audit"]) + 1
    assert {
        agent for agent in after["surfaces"] if after["surfaces"][agent] != restored["surfaces"][agent]
    } == {"omni"}


def check_backup(
    source: Installation, target: Installation, token: str, surfaces: Mapping[str, list[str]]
) -> None:
    """Compare the target, restored from a backup under writes, with the current state of the source."""
    last = state(target, token)["last entry"]
    check_restored(target, token, state(source, token, last), surfaces)


def on_sqlite(directory: Path, name: str) -> Installation:
    (directory / name).mkdir()
    return Installation(directory / name, f"sqlite:///{directory / name / 'db.sqlite3'}")


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> tuple[Installation, str]:
    """Return an installation with rows in every table, for tests to copy, and a token of its kiosk."""
    filled = on_sqlite(tmp_path_factory.mktemp("filled"), "filled")
    with django_db_blocker.unblock():
        filled.manage("migrate", "--no-input")
        with filled.used():
            belts.import_(writing.by("setup", via="command"), BELT)
            rows.insert(apps, {config.label for config in apps.get_app_configs()}, "filled")
            return filled, tokens.issue(writing.by("olive", via="command"), agent="kiosk").text


def copied(filled: Installation, directory: Path, name: str) -> Installation:
    copy = on_sqlite(directory, name)
    shutil.copyfile(filled.directory / "db.sqlite3", copy.directory / "db.sqlite3")
    return copy


def test_sqlite_is_backed_up_under_writes_and_restored(
    tmp_path: Path, filled: tuple[Installation, str]
) -> None:
    installed, token = filled
    source, target = copied(installed, tmp_path, "from"), copied(installed, tmp_path, "to")
    [backup] = commands("Back up")
    with written_to(source) as surfaces:
        source.sh(backup)
    (source.directory / "toolbelt.backup").rename(target.directory / "toolbelt.backup")
    with pytest.raises(CommandError, match="Back it up, and then add --replace"):
        run_here(target, commands("Restore")[0].replace("--replace", ""))
    for command in commands("Restore"):
        run_here(target, command)
    check_backup(source, target, token, surfaces)


@pytest.fixture
def databases() -> Iterator[list[str]]:
    """Yield the addresses of two new databases on the server of the tests."""
    with postgresql(2) as addresses:
        yield addresses


def on_postgresql(directory: Path, name: str, url: str) -> Installation:
    (directory / name).mkdir()
    return Installation(directory / name, url)


def copied_postgresql(source: Installation, target: Installation) -> None:
    """Replace the target with a copy of the source, by a template, which is fast."""
    (server, _, name), (_, _, template) = (
        installation.url.rpartition("/") for installation in (target, source)
    )
    with psycopg.connect(f"{server}/postgres", autocommit=True) as opened:
        opened.execute(f'DROP DATABASE "{name}"')
        opened.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')


def move(source: Installation, target: Installation) -> None:
    [command] = commands("Move to another database")
    run_here(source, re.sub(r"'\S+://\S+'", f"'{target.url}'", command))


def all_rows(installation: Installation) -> dict[str, list[str]]:
    """Return all rows of a SQLite file by table, except of what triggers and migrations write."""
    own = {"django_migrations", "toolbelt_revision", "toolbelt_agentrevision"}
    with contextlib.closing(sqlite3.connect(installation.directory / "db.sqlite3")) as opened:
        tables = [name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            table: sorted(map(repr, opened.execute(f'SELECT * FROM "{table}"')))  # noqa: S608
            for table in tables
            if table not in own and not table.startswith("sqlite_")
        }


def test_a_database_is_moved_to_postgresql_backed_up_under_writes_and_moved_back(
    tmp_path: Path, databases: list[str], filled: tuple[Installation, str]
) -> None:
    installed, token = filled
    first, last = copied(installed, tmp_path, "first"), on_sqlite(tmp_path, "last")
    source, target = (
        on_postgresql(tmp_path, name, url) for name, url in zip(("from", "to"), databases, strict=True)
    )
    # After moving there and back, every row is unchanged.
    move(first, source)
    move(source, last)
    moved = all_rows(first)
    assert [table for table, rows_ in moved.items() if not rows_] == []
    assert all_rows(last) == moved
    for installation in (source, last):
        check_restored(installation, token, state(first, token))
    # A database that has data is not overwritten.
    with pytest.raises(CommandError, match="has data already"):
        move(first, source)
    # Both kinds of backup are taken under writes and restored over existing data.
    [backup] = commands("Back up")
    with written_to(source) as surfaces:
        run_here(source, backup)
        source.manage("backup", "--portable", "portable.sqlite3")
    last.manage("restore", "--replace", str(source.directory / "portable.sqlite3"))
    check_backup(source, last, token, surfaces)
    copied_postgresql(source, target)
    (source.directory / "toolbelt.backup").rename(target.directory / "toolbelt.backup")
    for command in commands("Restore"):
        run_here(target, command)
    check_backup(source, target, token, surfaces)


def test_an_invalid_backup_file_is_refused_and_changes_nothing(
    tmp_path: Path, filled: tuple[Installation, str]
) -> None:
    here = copied(filled[0], tmp_path, "here")
    before = all_rows(here)
    here.manage("backup", "whole.sqlite3")
    file = here.directory / "whole.sqlite3"
    whole = file.read_bytes()
    files = {
        "text": (b"not a backup", "is not a backup"),
        "other": (_sqlite(tmp_path / "other"), "is not a backup of Toolbelt"),
        "damaged": (whole[:20_000] + b"\xff" * 20_000 + whole[40_000:], "is damaged"),
        "newer": (_newer(file, tmp_path / "newer"), "from a newer version"),
        "archive": (b"PGDMP\x01\x0e", "pg_restore failed"),
    }
    for name, (content, reason) in files.items():
        (here.directory / name).write_bytes(content)
        with pytest.raises(CommandError, match=reason):
            here.manage("restore", "--replace", name)
    with pytest.raises(CommandError, match="exists already"):
        here.manage("backup", "whole.sqlite3")
    assert all_rows(here) == before
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("mysql://127.0.0.1/x", r"Set --to to an address that begins with sqlite:// or postgres://"),
        ("postgres://127.0.0.1:1/x", r"The database cannot be used: .*port 1 failed.* --to names its host"),
        (
            "sqlite:////nowhere/at/all.sqlite3",
            r"The directory /nowhere/at of the database file does not exist",
        ),
        ("{own}", "That is the address of this database"),
        ("{own}?timeout=5", "That is the address of this database"),
    ],
)
def test_an_unusable_target_database_is_reported_with_the_reason(
    tmp_path: Path, filled: tuple[Installation, str], address: str, reason: str
) -> None:
    here = copied(filled[0], tmp_path, "here")
    with pytest.raises(CommandError, match=f"^{reason}"):
        here.manage("move_database", "--replace", "--to", address.format(own=here.url))


def _sqlite(file: Path) -> bytes:
    with contextlib.closing(sqlite3.connect(file)) as opened:
        opened.execute("CREATE TABLE x (y)")
    return file.read_bytes()


def _newer(backup: Path, file: Path) -> bytes:
    file.write_bytes(backup.read_bytes())
    with contextlib.closing(sqlite3.connect(file)) as opened:
        opened.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('toolbelt', '9000_x', '2040-01-01')"
        )
        opened.commit()
    return file.read_bytes()
