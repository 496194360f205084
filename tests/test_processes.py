"""Tests that every kind of process starts, and stops, what it should run: ASGI servers, WSGI servers and commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from wsgiref import util

import pytest
from django.core.management import CommandError, call_command

from tests.installation import Installation
from toolbelt import processes, wsgi
from toolbelt.front import application as front
from toolbelt.runtime import plugins
from toolbelt.runtime.records import record_writer

SERVER = [
    "telemetry",
    "semantic_search",
    "availability",
    "record_writer",
    "settings_log",
    "plugins",
    "credentials",
    "expirations",
    "running_tools",
    "unused_clients",
    "logins",
    "self_checks",
    "alerts",
    "trial_rounds",
]
HTTP = {"type": "http", "path": "/", "method": "GET", "headers": []}

# Prints the threads after the import, and after a request. An answer that was sent is counted and not yet stored.
WSGI_PROCESS = """
import json, threading
from wsgiref import util
from toolbelt import wsgi
from toolbelt.runtime.records import context_use

def threads():
    print(json.dumps(sorted(t.name for t in threading.enumerate() if t.name.startswith("toolbelt-"))))

threads()
environ = {"PATH_INFO": "/healthz", "HTTP_HOST": "localhost"}
util.setup_testing_defaults(environ)
assert b"".join(wsgi.application(environ, lambda *head: None)) == b'{"status": "ok"}'
threads()
context_use.add("kiosk", context_use.Tokens(3, 5))
"""
STORED = """
import django; django.setup()
from toolbelt import models
print([*models.ContextUse.objects.values_list("agent", "sent", "allowed")])
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the list of what was started, by name and in order; nothing is really started."""
    processes.stop_all()
    started: list[str] = []
    for part in processes.SERVER_PARTS:
        name = part.__name__.rpartition(".")[2]
        if hasattr(part, "start"):
            monkeypatch.setattr(part, "start", lambda name=name: started.append(name))
    yield started
    processes.stop_all()


async def nothing(*_: Any) -> Any:
    """Receive, send and answer nothing."""


def asgi_with_lifespan() -> None:
    received = iter(({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}))

    async def receive() -> Any:
        return next(received)

    asyncio.run(front.Application(nothing, None)({"type": "lifespan"}, receive, nothing))


def asgi_without_lifespan() -> None:
    application = front.Application(nothing, None)
    for _ in range(2):
        asyncio.run(application(HTTP, nothing, nothing))


def wsgi_server() -> None:
    for _ in range(2):
        environ: dict[str, Any] = {"PATH_INFO": "/healthz", "HTTP_HOST": "localhost"}
        util.setup_testing_defaults(environ)
        with mock.patch.object(wsgi, "_limited"):
            wsgi.application(environ, lambda *head: None)


@pytest.mark.parametrize("serve", [asgi_with_lifespan, asgi_without_lifespan, wsgi_server])
def test_every_kind_of_server_starts_the_same_once(started: list[str], serve: Callable[[], None]) -> None:
    serve()

    assert started == SERVER


@pytest.mark.django_db
def test_a_command_that_runs_tools_traces_and_ranks_as_a_server(started: list[str]) -> None:
    with pytest.raises(CommandError, match="nobody"):
        call_command("call", "nobody", "any_tool")

    assert started == ["telemetry", "semantic_search"]


def test_a_part_that_does_not_stop_does_not_keep_the_others_running(
    started: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stopped: list[str] = []

    def fail() -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(plugins, "stop", fail)
    monkeypatch.setattr(record_writer, "stop", lambda: stopped.append("record_writer"))

    processes.stop_all()

    assert stopped == ["record_writer"]
    assert "not stopped" in caplog.text


def test_a_wsgi_process_starts_with_its_first_request_and_writes_what_is_left_at_its_end(
    tmp_path: Path,
) -> None:
    installation = Installation(tmp_path, f"sqlite:///{tmp_path}/db.sqlite3")
    installation.sh("toolbelt migrate --no-input")

    imported, serving = map(json.loads, installation.python(WSGI_PROCESS).splitlines())

    assert imported == []
    assert {
        "toolbelt-expirations",
        "toolbelt-records",
        "toolbelt-running",
        "toolbelt-token-uses",
    } <= set(serving)
    assert installation.python(STORED) == "[('kiosk', 3, 5)]"
