"""What do all tests share? A browser that is the system's own, properties without a stopwatch, and quick emptying."""

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import hypothesis
import pytest

# A loaded machine is no fault of the code. With CI set, hypothesis brings a profile that says the same.
hypothesis.settings.register_profile("local", deadline=None)
if "CI" not in os.environ:
    hypothesis.settings.load_profile("local")

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(
        None,
        map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")),
    ),
    None,
)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium-headless-shell")
    # Playwright keeps an event loop running in the thread of the tests, and they use the database there.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    return {
        **browser_type_launch_args,
        "executable_path": CHROMIUM,
        "args": [
            "--no-sandbox",  # Chromium refuses to start as root with one
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    }


@pytest.fixture(scope="session", autouse=True)
def emptied_quickly() -> Iterator[None]:
    """Empty PostgreSQL's tables of the few rows that a test leaves: with TRUNCATE, that took longer than most tests."""
    from django.db import connection

    if connection.vendor != "postgresql":
        yield
        return
    with mock.patch.object(type(connection.ops), "sql_flush", _deletes):
        yield


def _deletes(operations: Any, style: Any, tables: Sequence[str], **options: bool) -> list[str]:
    """Stand for Django's own: one statement for all tables, those last that triggers write into."""
    last = {"toolbelt_revision", "toolbelt_agentrevision"}
    quoted = [operations.quote_name(table) for table in sorted(tables, key=last.__contains__)]
    return ["; ".join(f"DELETE FROM {table}" for table in quoted)]  # noqa: S608
