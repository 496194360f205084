"""Concurrent writers of an SQLite file all get their turn."""

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

# Eight writers in a process; says how long each write took, and how many waited in vain.
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
        begun = time.monotonic()
        try:
            switches.override(write, "bob", f"tool{number}", turn % 2 == 0)
            took.append(time.monotonic() - begun)
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
    with breaking.breakable() as found:
        yield found


def test_a_writer_waits_until_the_other_one_is_done(database):
    # A connection of SQLite may be used in one thread alone: the writer has its own.
    failed: list[BaseException] = []

    def run() -> None:
        try:
            write()
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    writer = threading.Thread(target=run)
    with database.locked():
        writer.start()
        time.sleep(0.5)
    writer.join()
    assert failed == []
    assert models.Category.objects.filter(name="one").exists()


def test_a_writer_who_waited_in_vain_is_told_and_waits_as_ever_the_next_time(database):
    before = timeout()
    begun = time.monotonic()
    with database.locked(), pytest.raises(db.OperationalError, match="locked"):
        write()
    assert time.monotonic() - begun > 3
    assert timeout() == before
    write()


@pytest.mark.soak
def test_of_many_writers_at_once_none_waits_in_vain(tmp_path: Path) -> None:
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
    came = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert [(one["writes"], one["refused"]) for one in came] == [(320, [])] * 4
