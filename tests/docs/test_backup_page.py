"""Do the commands of the page on backups do what it says? Each is run, under writes, and its result is compared."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings

from tests import breaking
from tests.docs import pages

PAGE = pages.ROOT / "docs/how-to/back-up-and-restore.md"

# Flips a switch again and again; says how many flips were committed after each.
WRITER = """
import itertools
import django
django.setup()
from toolbelt.control import writing
from toolbelt.control.access import switches
write = writing.by("olive", via="command").replace(confirm=True)
for number in itertools.count(1):
    switches.flip(write, "ada", "reading", number % 2 == 1)
    print(number, flush=True)
"""
SETUP = """
import json, sys
import django
django.setup()
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
write = writing.by("setup", via="command")
belts.import_(write, json.loads(sys.argv[1]))
print(tokens.issue(write, agent="ada").text)
"""
# Says what is stored, as far as anybody notices it.
STATE = """
import json, sys
import django
django.setup()
from django.db import connection
from toolbelt import models
from toolbelt.runtime import credentials, documents, surfaces
from toolbelt.store import revisions, triggers
print(json.dumps({
    "surfaces": {key: documents.fingerprint(surfaces.ask(key), None) for key in ("ada", "bob")},
    "tools": documents.of(surfaces.ask("ada"), None)["active_tools"],
    "token": credentials.recognize(sys.argv[1]) is not None,
    "flips": models.AuditEntry.objects.filter(action__startswith="switch").count(),
    "audit": models.AuditEntry.objects.count(),
    "revision": revisions.number(),
    "triggers missing": len(triggers.missing(connection)),
}))
"""
FLIP = """
import django
django.setup()
from toolbelt.control import writing
from toolbelt.control.access import switches
switches.flip(writing.by("olive", via="command").replace(confirm=True), "bob", "reading", False)
"""


def commands(heading: str, within: str) -> list[str]:
    """Return the commands that stand under a heading, itself under another one."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition(f"\n## {within}\n")[2].partition("\n## ")[0]
    part = part.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    found = [
        textwrap.dedent(one) for one in re.findall(r"^ *```sh\n(.*?)^ *```$", part, re.MULTILINE | re.DOTALL)
    ]
    assert found, (within, heading)
    return found


@dataclass(frozen=True)
class Installation:
    """A directory with a database of its own."""

    directory: Path
    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "TOOLBELT_ENV": "test",
            "DATABASE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
            "PYTHONPATH": str(pages.ROOT),
        }

    def sh(self, command: str) -> str:
        """Run a command of the page here."""
        command = command.replace(".venv/bin/python", sys.executable)
        command = command.replace("manage.py", str(pages.ROOT / "manage.py"))
        run = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, (command, run.stdout, run.stderr)
        return run.stdout

    def python(self, program: str, *arguments: str) -> str:
        run = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=pages.ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    def state(self, token: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.python(STATE, token))
        return found

    def set_up(self) -> str:
        """Migrate, and store a small configuration; give a token of ada."""
        from tests.api.conftest import BELT

        self.sh(".venv/bin/python manage.py migrate --no-input")
        return self.python(SETUP, json.dumps(BELT))

    @contextlib.contextmanager
    def written_to(self) -> Iterator[Any]:
        """Let a process write all the while; gives what says how many writes were acknowledged until now."""
        running = subprocess.Popen(
            [sys.executable, "-c", WRITER],
            cwd=pages.ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert running.stdout is not None
        lines = running.stdout

        def acknowledged() -> int:
            return int(lines.readline())

        try:
            assert acknowledged() == 1
            yield acknowledged
        finally:
            running.kill()
            running.communicate()


def check(source: Installation, target: Installation, name: str, database: str) -> None:
    """Back up under writes, restore elsewhere, and see that nothing acknowledged is missing and all goes on."""
    (backup,) = commands("Back up", database)
    token = source.set_up()
    target.set_up()
    with source.written_to() as acknowledged:
        while (before := acknowledged()) < 20:
            pass
        source.sh(backup)
        assert acknowledged() > before
    (source.directory / name).rename(target.directory / name)
    for command in commands("Restore", database):
        target.sh(command)

    restored, original = target.state(token), source.state(token)
    # Nothing that was acknowledged before is missing, and nothing is there in part.
    assert before <= restored["flips"] <= original["flips"]
    assert original["audit"] - restored["audit"] == original["flips"] - restored["flips"]
    assert ("kb__find" in restored["tools"]) == (restored["flips"] % 2 == 1)
    assert restored["surfaces"]["bob"] == original["surfaces"]["bob"]
    assert (restored["token"], restored["triggers missing"]) == (True, 0)

    target.python(FLIP)
    after = target.state(token)
    assert after["revision"] > restored["revision"]
    assert after["audit"] == restored["audit"] + 1
    assert after["surfaces"]["ada"] == restored["surfaces"]["ada"]
    assert after["surfaces"]["bob"] != restored["surfaces"]["bob"]


def installation(directory: Path, url: str) -> Installation:
    directory.mkdir()
    return Installation(directory, url)


@breaking.ON_SQLITE
@pytest.mark.slow
def test_a_sqlite_file_is_backed_up_under_writes_and_restored(tmp_path: Path) -> None:
    source, target = (
        installation(tmp_path / name, f"sqlite:///{tmp_path / name / 'db.sqlite3'}")
        for name in ("from", "to")
    )
    check(source, target, "backup.sqlite3", "SQLite")


@pytest.fixture
def databases() -> Iterator[list[str]]:
    """Yield the addresses of two new databases on the server of the tests."""
    about = settings.DATABASES["default"]
    host, port = about["HOST"] or "127.0.0.1", about["PORT"] or 5432
    names = [f"toolbelt_backup_{uuid.uuid4().hex[:12]}" for _ in range(2)]
    login = {"user": about["USER"], "password": about["PASSWORD"]}
    login = {key: value for key, value in login.items() if value}
    with psycopg.connect(host=host, port=int(port), dbname="postgres", autocommit=True, **login) as server:
        for name in names:
            server.execute(f'CREATE DATABASE "{name}"')
        try:
            who = ":".join(login.values()) + "@" if login else ""
            yield [f"postgres://{who}{host}:{port}/{name}" for name in names]
        finally:
            for name in names:
                server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@breaking.ON_POSTGRESQL
@pytest.mark.slow
def test_a_postgresql_database_is_backed_up_under_writes_and_restored(
    tmp_path: Path, databases: list[str]
) -> None:
    source, target = (
        installation(tmp_path / name, url) for name, url in zip(("from", "to"), databases, strict=True)
    )
    check(source, target, "backup.dump", "PostgreSQL")
