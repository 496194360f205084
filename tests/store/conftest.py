"""Fixtures for the tests of the store: another process on the same database, and empty caches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from toolbelt.store import snapshots

# Answers each line, an agent's key, with a snapshot. It caches like any other process.
_ASK = """
import json, sys
import django
django.setup()
from toolbelt.store import snapshots
for line in sys.stdin:
    snapshot = snapshots.find(line.strip(), None)
    tools = {key: [tool.description, tool.plugin] for key, tool in snapshot.catalog.tools.items()}
    answer = {"tools": tools, "switches": dict(snapshot.agent.switches), "title": snapshot.agent.title}
    print(json.dumps(answer), flush=True)
"""


class Process:
    """A running process that answers lines from the same database."""

    def __init__(self, program: str) -> None:
        environment = {**os.environ, "DATABASE_URL": address(), "PYTHONPATH": os.pathsep.join(sys.path)}
        self._running = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def tell(self, line: str) -> None:
        """Write a line to the process."""
        assert self._running.stdin is not None
        self._running.stdin.write(line + "\n")
        self._running.stdin.flush()

    def ask(self, line: str) -> dict[str, Any]:
        """Write a line to the process, and return its answer."""
        assert self._running.stdout is not None
        self.tell(line)
        answer: dict[str, Any] = json.loads(self._running.stdout.readline())
        return answer

    def end(self) -> int:
        """Wait for the process, and return its exit code."""
        self._running.communicate()
        return self._running.returncode


def address() -> str:
    """Return the URL of the test database."""
    about = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{about['NAME']}"
    login = about["USER"] + (f":{about['PASSWORD']}" if about["PASSWORD"] else "")
    return f"postgres://{login}@{about['HOST']}:{about['PORT'] or 5432}/{about['NAME']}"


@pytest.fixture(scope="module")
def another_process(django_db_setup: None) -> Iterator[Process]:
    """Yield a process that answers an agent's key with its snapshot."""
    process = Process(_ASK)
    yield process
    assert process.end() == 0


@pytest.fixture(autouse=True)
def empty_caches() -> None:
    """Start each test with empty caches."""
    snapshots.forget()
