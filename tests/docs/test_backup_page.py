"""Do the commands of the page on backups do what it says? Each is run while four processes write.

What is restored is compared with the moment of the backup: each writer says what its agent's surface was after each of
its writes, and the backup contains so many of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.docs import pages

pytestmark = pytest.mark.slow

PAGE = pages.ROOT / "docs/how-to/back-up-and-restore.md"
WRITERS = ("assistant", "explorer", "planner", "reviewer")

SURFACE = """
import hashlib, json, sys
import django
django.setup()
from toolbelt.runtime import documents, surfaces

def surface(agent):
    document = documents.of(surfaces.ask(agent), None)
    del document["revision"]
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
"""
# Flips an override again and again; says after each flip what the agent's surface is.
WRITER = f"""{SURFACE}
import itertools, time
from django import db
from toolbelt.control import writing
from toolbelt.control.access import switches
write = writing.by("olive", via="command").replace(confirm=True)
for number in itertools.count(1):
    while True:
        try:
            switches.override(write, sys.argv[1], "arxiv", number % 2 == 1)
            break
        except db.OperationalError:
            pass  # on a loaded machine, a writer of a SQLite file may wait for too long: it tries again
    print(surface(sys.argv[1]), flush=True)
    time.sleep(0.02)  # the others have to run as well
"""
TOKEN = """
import django
django.setup()
from toolbelt.control import writing
from toolbelt.control.people import tokens
print(tokens.issue(writing.by("olive", via="command"), agent="kiosk").text)
"""
# Says what is stored, as far as anybody notices it.
STATE = f"""{SURFACE}
from django.db import connection
from toolbelt import models
from toolbelt.runtime import credentials
from toolbelt.store import revisions, triggers
entries = models.AuditEntry.objects.order_by("id")
if sys.argv[2]:
    entries = entries.filter(id__lte=int(sys.argv[2]))
flips = models.AuditEntry.objects.filter(key="arxiv", reason="", actor="olive")

def state():
    rows = [[str(value) for value in row] for row in entries.values_list()]
    return {{
        "surfaces": {{agent.key: surface(agent.key) for agent in models.Agent.objects.all()}},
        "token": credentials.recognize(sys.argv[1]) is not None,
        "flips": {{agent: flips.filter(subject_key=agent).count() for agent in {WRITERS}}},
        "audit": len(rows),
        "audit digest": hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
        "last entry": entries.last().id,
        "revision": revisions.number(),
        "triggers missing": len(triggers.missing(connection)),
    }}

states = [state()]
if sys.argv[3]:
    from toolbelt.control import writing
    from toolbelt.control.access import switches
    write = writing.by("mira", via="command").replace(confirm=True)
    switches.override(write, "omni", "arxiv", switches.current_value("omni", "arxiv") is False)
    states.append(state())
print(json.dumps(states))
"""


def commands(heading: str) -> list[str]:
    """Return the commands that stand under a heading."""
    part = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = [
        textwrap.dedent(one) for one in re.findall(r"^ *```sh\n(.*?)^ *```$", part, re.MULTILINE | re.DOTALL)
    ]
    assert found, heading
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

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the page here."""
        command = command.replace(".venv/bin/python", sys.executable)
        command = command.replace("manage.py", str(pages.ROOT / "manage.py"))
        return subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def sh(self, command: str) -> str:
        run = self.run(command)
        assert run.returncode == 0, (command, run.stdout, run.stderr)
        return run.stdout

    def manage(self, command: str) -> str:
        return self.sh(f".venv/bin/python manage.py {command}")

    def python(self, program: str, *arguments: str) -> str:
        words = [sys.executable, "-c", program, *arguments]
        run = subprocess.run(
            words, cwd=pages.ROOT, env=self.environment, capture_output=True, text=True, timeout=300
        )
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    def state(self, token: str, until: object = "") -> dict[str, Any]:
        [state] = json.loads(self.python(STATE, token, str(until), ""))
        return dict(state)

    def states_around_a_flip(self, token: str) -> list[dict[str, Any]]:
        """Return the state before and after a flip of the agent omni."""
        states: list[dict[str, Any]] = json.loads(self.python(STATE, token, "", "flip"))
        return states

    def set_up(self) -> str:
        """Migrate, and load the demo; return a token of the kiosk."""
        self.manage("migrate --no-input")
        self.manage("loaddata demo")
        return self.python(TOKEN)

    @contextlib.contextmanager
    def written_to(self) -> Iterator[dict[str, list[str]]]:
        """Let four processes write all the while; at the end, what each said of its agent's surface is there."""
        surfaces: dict[str, list[str]] = {}
        processes = {}
        for agent in WRITERS:
            words = [sys.executable, "-c", WRITER, agent]
            processes[agent] = subprocess.Popen(
                words, cwd=pages.ROOT, env=self.environment, stdout=subprocess.PIPE, text=True
            )
        try:
            for agent, process in processes.items():
                assert process.stdout is not None
                surfaces[agent] = [process.stdout.readline().strip() for _ in range(3)]
            yield surfaces
            for agent, process in processes.items():
                assert process.poll() is None
                surfaces[agent].append(process.stdout.readline().strip())  # type: ignore[union-attr]
        finally:
            for agent, process in processes.items():
                process.terminate()
                surfaces[agent] += process.communicate()[0].split()


def check_restored(
    target: Installation, token: str, source: dict[str, Any], surfaces: dict[str, list[str]] | None = None
) -> dict[str, Any]:
    """See that the target is as the source was, at the moment of the backup, and that it goes on from there."""
    restored, after = target.states_around_a_flip(token)
    for agent, number in restored["flips"].items():
        if surfaces is not None:
            assert number >= 3
            assert restored["surfaces"][agent] == surfaces[agent][number - 1], agent
    others = restored["surfaces"].keys() - (WRITERS if surfaces is not None else ())
    assert {agent: restored["surfaces"][agent] for agent in others} == {
        agent: source["surfaces"][agent] for agent in others
    }
    assert (restored["token"], restored["triggers missing"]) == (True, 0)
    assert after["revision"] > restored["revision"]
    assert after["audit"] == restored["audit"] + 1
    assert {
        agent for agent in after["surfaces"] if after["surfaces"][agent] != restored["surfaces"][agent]
    } == {"omni"}
    return restored


def check_page(source: Installation, target: Installation, token: str) -> None:
    """Back up under writes, restore over another installation's data, and compare."""
    (backup,) = commands("Back up")
    with source.written_to() as surfaces:
        source.sh(backup)
    (source.directory / "toolbelt.backup").rename(target.directory / "toolbelt.backup")
    refused = target.run(commands("Restore")[0].replace("--replace", ""))
    assert (refused.returncode, "Back it up, and then add --replace" in refused.stderr) == (1, True)
    for command in commands("Restore"):
        target.sh(command)
    before = target.state(token)
    # Nothing is missing up to the last entry of the backup, and nothing is there in part.
    original = source.state(token, before["last entry"])
    assert before["audit digest"] == original["audit digest"]
    assert before["audit"] == original["audit"]
    check_restored(target, token, original, surfaces)


def installation(directory: Path, url: str) -> Installation:
    directory.mkdir()
    return Installation(directory, url)


def on_sqlite(directory: Path, name: str) -> Installation:
    return installation(directory / name, f"sqlite:///{directory / name / 'db.sqlite3'}")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Installation, str]:
    """Return an installation with the demo, which tests copy, and a token of its kiosk."""
    demo = on_sqlite(tmp_path_factory.mktemp("demo"), "demo")
    return demo, demo.set_up()


def copied(demo: Installation, directory: Path, name: str) -> Installation:
    copy = on_sqlite(directory, name)
    shutil.copyfile(demo.directory / "db.sqlite3", copy.directory / "db.sqlite3")
    return copy


def test_a_sqlite_file_is_backed_up_under_writes_and_restored(
    tmp_path: Path, demo: tuple[Installation, str]
) -> None:
    installed, token = demo
    check_page(copied(installed, tmp_path, "from"), copied(installed, tmp_path, "to"), token)


@pytest.fixture
def databases() -> Iterator[list[str]]:
    """Yield the addresses of two new databases on the server of the tests."""
    script = [sys.executable, str(pages.ROOT / "scripts/find_postgres.py")]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("no PostgreSQL server answers")
    server, _, _ = run.stdout.strip().rpartition("/")
    names = [f"toolbelt_backup_{uuid.uuid4().hex[:12]}" for _ in range(2)]
    with psycopg.connect(run.stdout.strip(), dbname="postgres", autocommit=True) as opened:
        for name in names:
            opened.execute(f'CREATE DATABASE "{name}"')
        try:
            yield [f"{server}/{name}" for name in names]
        finally:
            for name in names:
                opened.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_a_postgresql_database_is_backed_up_under_writes_and_restored(
    tmp_path: Path, databases: list[str], demo: tuple[Installation, str]
) -> None:
    installed, token = demo
    source, target = (
        installation(tmp_path / name, url) for name, url in zip(("from", "to"), databases, strict=True)
    )
    move(installed, source)
    # A target with data, made the quick way.
    server, _, name = target.url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as opened:
        opened.execute(f'DROP DATABASE "{name}"')
        opened.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source.url.rpartition("/")[2]}"')
    check_page(source, target, token)


def rows(file: Path) -> dict[str, list[Any]]:
    """Return all rows of a SQLite file, except of what triggers and migrations write."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        own = {"django_migrations", "toolbelt_revision", "toolbelt_agentrevision"}
        return {
            table: sorted(map(repr, connection.execute(f'SELECT * FROM "{table}"')))  # noqa: S608
            for table in tables
            if table not in own and not table.startswith("sqlite_")
        }


def move(source: Installation, target: Installation) -> None:
    [command] = commands("Move to another database")
    source.sh(re.sub(r"'\S+://\S+'", f"'{target.url}'", command))


def test_a_database_is_moved_to_postgresql_and_back(
    tmp_path: Path, databases: Sequence[str], demo: tuple[Installation, str]
) -> None:
    installed, token = demo
    first, last = copied(installed, tmp_path, "first"), on_sqlite(tmp_path, "last")
    second = installation(tmp_path / "second", databases[0])
    move(first, second)
    move(second, last)
    state = first.state(token)
    moved = [rows(tmp_path / name / "db.sqlite3") for name in ("first", "last")]
    assert moved[0] == moved[1]
    assert sum(map(len, moved[0].values())) > 1000
    for target in (second, last):
        check_restored(target, token, state)
    # A database that has data is not overwritten.
    again = first.run(f".venv/bin/python manage.py move_database --to '{second.url}'")
    assert (again.returncode, "has data already" in again.stderr) == (1, True)
    # A portable backup of PostgreSQL is taken under writes as well.
    with second.written_to() as surfaces:
        second.manage("backup --portable portable.sqlite3")
    last.manage(f"restore --replace {second.directory / 'portable.sqlite3'}")
    before = last.state(token)
    original = second.state(token, before["last entry"])
    assert before["audit digest"] == original["audit digest"]
    check_restored(last, token, original, surfaces)


def test_what_is_no_backup_is_refused_and_changes_nothing(
    tmp_path: Path, demo: tuple[Installation, str]
) -> None:
    here = copied(demo[0], tmp_path, "here")
    before = rows(here.directory / "db.sqlite3")
    here.manage("backup whole.sqlite3")
    whole = (here.directory / "whole.sqlite3").read_bytes()
    files = {
        "text": (b"not a backup", "is not a backup"),
        "other": (_sqlite(tmp_path / "other"), "is not a backup of Toolbelt"),
        "damaged": (whole[:20_000] + b"\xff" * 20_000 + whole[40_000:], "is damaged"),
        "newer": (_newer(here.directory / "whole.sqlite3", tmp_path / "newer"), "from a newer version"),
        "archive": (b"PGDMP\x01\x0e", "pg_restore failed"),
    }
    for name, (content, reason) in files.items():
        (here.directory / name).write_bytes(content)
        run = here.run(f".venv/bin/python manage.py restore --replace {name}")
        assert (run.returncode, reason in run.stderr) == (1, True), (name, run.stderr)
    taken = here.run(".venv/bin/python manage.py backup whole.sqlite3")
    assert (taken.returncode, "exists already" in taken.stderr) == (1, True)
    assert rows(here.directory / "db.sqlite3") == before
    assert (here.directory / "whole.sqlite3").stat().st_mode & 0o077 == 0


def _sqlite(file: Path) -> bytes:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE x (y)")
    return file.read_bytes()


def _newer(backup: Path, file: Path) -> bytes:
    file.write_bytes(backup.read_bytes())
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('toolbelt', '9000_x', '2040-01-01')"
        )
        connection.commit()
    return file.read_bytes()
