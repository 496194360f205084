"""Tests of the locks that all processes of the installation share."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connections

from toolbelt.store import locks

pytestmark = pytest.mark.django_db(transaction=True)


@contextlib.contextmanager
def held(name: str, release: threading.Event) -> Iterator[None]:
    """Hold a lock in another thread, with a connection of its own, until ``release`` is set."""
    is_held = threading.Event()

    def hold() -> None:
        with locks.try_lock(name) as was_free:
            assert was_free
            is_held.set()
            release.wait(30)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert is_held.wait(30)
        yield
    finally:
        release.set()
        thread.join(30)


def test_a_lock_is_waited_for_until_it_is_released() -> None:
    release = threading.Event()
    with held("tests", release), locks.wait_for_lock("tests", release.set):
        assert release.is_set()


def test_a_free_lock_is_not_waited_for() -> None:
    with locks.wait_for_lock("tests", lambda: pytest.fail("nothing holds it")):
        pass


def test_a_migration_waits_for_the_one_that_runs() -> None:
    release = threading.Event()

    class Output(io.StringIO):
        def write(self, text: str) -> int:
            if "Waiting for another process that migrates" in text:
                release.set()
            return super().write(text)

    output = Output()
    with held("migrate", release):
        call_command("migrate", "--check")
        assert not release.is_set()
        call_command("migrate", stdout=output)
    assert output.getvalue().index("Waiting") < output.getvalue().index("No migrations to apply")
