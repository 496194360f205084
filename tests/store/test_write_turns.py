"""Tests that concurrent writers of an SQLite file all get their turn."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django import db
from django.db import connection, transaction

from tests import breaking
from tests.installation import Installation
from toolbelt import models

pytestmark = [breaking.ON_SQLITE, pytest.mark.django_db(transaction=True)]

# Runs eight writers in a process. Prints the longest time of a write, and the writes that timed out.
WRITERS = """
import json, sys, threading, time
import django
django.setup()
from django import db
from toolbelt.control import writing
from toolbelt.control.access import switches
write = writing.by("olive", via="api").replace(confirm=True)
took, refused = [], []
def work(number):
    for turn in range(40):
        started = time.monotonic()
        try:
            switches.override(write, "bob", f"tool{number}", turn % 2 == 0)
            took.append(time.monotonic() - started)
        except db.OperationalError as error:
            refused.append(str(error))
        finally:
            db.connection.close()
first = int(sys.argv[1])
threads = [threading.Thread(target=work, args=[number]) for number in range(first, first + 8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"took": max(took), "writes": len(took), "refused": refused}))
"""


def write() -> None:
    with transaction.atomic():
        models.Category.objects.create(name="one")


def timeout() -> int:
    with connection.cursor() as cursor:
        return int(cursor.execute("PRAGMA busy_timeout").fetchone()[0])


@pytest.fixture
def database() -> Iterator[breaking.Database]:
    with breaking.breakable() as breakable_database:
        yield breakable_database


def test_a_writer_waits_for_another_writer(database):
    # An SQLite connection can be used in one thread only, so the writer opens its own.
    failed: list[BaseException] = []

    def run() -> None:
        try:
            write()
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    writer = threading.Thread(target=run)
    with database.locked(timeout=4):
        writer.start()
        time.sleep(0.5)
    writer.join()
    assert failed == []
    assert models.Category.objects.filter(name="one").exists()


def test_a_writer_that_times_out_gets_an_error_and_keeps_its_timeout(database):
    with database.locked(timeout=0.5):
        before = timeout()
        started = time.monotonic()
        with pytest.raises(db.OperationalError, match="locked"):
            write()
        assert time.monotonic() - started > 0.4
        assert timeout() == before
    write()


@pytest.mark.soak
def test_no_write_of_many_concurrent_writers_times_out(tmp_path: Path) -> None:
    installation = Installation(tmp_path, f"sqlite:///{tmp_path / 'db.sqlite3'}")
    installation.sh(".venv/bin/python manage.py migrate --no-input")
    annotations = {"readOnlyHint": True}
    tools = [{"key": f"tool{n}", "description": "x", "annotations": annotations} for n in range(32)]
    installation.python(
        "import django, json, sys; django.setup();"
        "from toolbelt.control import writing;"
        "from toolbelt.control.config import belts;"
        "belts.import_(writing.by('setup', via='command'), json.loads(sys.argv[1]))",
        json.dumps({"tools": tools, "agents": [{"key": "bob"}]}),
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITERS, str(first)],
            env=installation.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in (0, 8, 16, 24)
    ]
    results = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert [(result["writes"], result["refused"]) for result in results] == [(320, [])] * 4
