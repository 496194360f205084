"""An installation with a separate directory and database, for use in this process or in others."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import psycopg
import pytest
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections

from toolbelt import settings
from toolbelt.store import snapshots

ROOT = Path(__file__).resolve().parent.parent

TOKEN = """
import django
django.setup()
from toolbelt.control import writing
from toolbelt.control.people import tokens
print(tokens.issue(writing.by("olive", via="command"), agent="kiosk").text)
"""


@contextlib.contextmanager
def postgresql(number: int = 1) -> Iterator[list[str]]:
    """Yield the URLs of new databases on the PostgreSQL server of the tests. Skip the test if there is no server."""
    script = [sys.executable, str(ROOT / "scripts/find_postgres.py")]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("no PostgreSQL server answers")
    server, _, _ = run.stdout.strip().rpartition("/")
    names = [f"toolbelt_test_{uuid.uuid4().hex[:12]}" for _ in range(number)]
    with psycopg.connect(run.stdout.strip(), dbname="postgres", autocommit=True) as opened:
        for name in names:
            opened.execute(f'CREATE DATABASE "{name}"')
        try:
            yield [f"{server}/{name}" for name in names]
        finally:
            for name in names:
                opened.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@dataclass(frozen=True)
class Installation:
    """A directory and the URL of its database. A relative file is in the directory."""

    directory: Path
    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "TOOLBELT_ENV": "test",
            "DATABASE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
            "PYTHONPATH": str(ROOT),
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command from the documentation in a shell."""
        toolbelt = shlex.join([sys.executable, str(ROOT / "manage.py")])
        return subprocess.run(
            ["/bin/sh", "-ec", f'toolbelt() {{ {toolbelt} "$@"; }}\n{command}'],
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

    def python(self, program: str, *arguments: str) -> str:
        run = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    def load_demo(self) -> str:
        """Migrate, load the demo, and return a token of the agent kiosk."""
        self.sh("toolbelt migrate --no-input")
        self.sh("toolbelt loaddata demo")
        return self.python(TOKEN)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Use the directory and the database in this process and in those that it starts."""
        with (
            mock.patch.dict(os.environ, self.environment),
            contextlib.chdir(self.directory),
        ):
            before = connections[DEFAULT_DB_ALIAS]
            configured = connections.configure_settings({DEFAULT_DB_ALIAS: settings.database()})
            with mock.patch.dict(connections.settings, configured):
                connections[DEFAULT_DB_ALIAS] = connections.create_connection(DEFAULT_DB_ALIAS)
                snapshots.forget()
                try:
                    yield
                finally:
                    connections[DEFAULT_DB_ALIAS].close()
                    connections[DEFAULT_DB_ALIAS] = before
                    snapshots.forget()

    def manage(self, *words: str) -> str:
        """Run a management command in this process, and return its output. Raise CommandError if it does."""
        output = io.StringIO()
        with self.used():
            call_command(*words, stdout=output)
        return output.getvalue()
