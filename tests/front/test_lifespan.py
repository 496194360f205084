"""Tests that plugins and background threads start and stop with the server."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from toolbelt import processes
from toolbelt.control.access import expirations
from toolbelt.control.servers import running_tools
from toolbelt.front import access_log, lifespan
from toolbelt.front import application as front
from toolbelt.runtime import credentials, plugins
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import process_connections

# The other tests of this folder start no such thread (`unhurried`).
start_running_tools = running_tools.start


def writer_threads() -> list[threading.Thread]:
    """Return the threads that record expirations and report what this process can run."""
    names = ("toolbelt-expirations", "toolbelt-running")
    return [thread for thread in threading.enumerate() if thread.name in names]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Stop the threads that a test starts, and wait for those that are still ending."""
    for is_before in (True, False):
        processes.stop_all()
        for thread in writer_threads():
            thread.join(20)
        if is_before:
            yield


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of starts and stops, in order."""
    events: list[str] = []
    monkeypatch.setattr(plugins, "start", lambda: events.append("plugins begin"))
    monkeypatch.setattr(credentials, "start", lambda: events.append("tokens begin"))
    monkeypatch.setattr(plugins, "stop", lambda: events.append("plugins end"))
    return events


class Probe:
    """A probe that reads nothing and records that it was closed."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    async def read(self, prefix: str, agent: str, session: str | None) -> None:
        return None

    async def close(self) -> None:
        self.events.append("database let go")


def answers(events: list[str]) -> prepared_answers.PreparedAnswers:
    return prepared_answers.PreparedAnswers(Probe(events))


def run(application: front.Application, *coming: str) -> list[str]:
    """Send an application these lifespan messages, and return its replies."""
    sent: list[Any] = []

    async def main() -> None:
        left = [{"type": f"lifespan.{what}"} for what in coming]

        async def receive() -> Any:
            return left.pop(0)

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await application({"type": "lifespan"}, receive, send)

    asyncio.run(main())
    return sent


async def idle_channel(*message: Any) -> Any:
    """Receive and send nothing."""


async def no_application(scope: Any, receive: Any, send: Any) -> None:
    """Answer nothing, in place of Django."""


def test_a_server_starts_and_stops_its_plugins(events):
    application = front.Application(no_application, answers(events))
    assert run(application, "startup", "shutdown") == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert events == ["plugins begin", "tokens begin", "plugins end", "database let go"]


def test_objects_loaded_at_startup_are_frozen_for_the_garbage_collector(events):
    gc.unfreeze()

    run(front.Application(no_application, answers(events)), "startup", "shutdown")

    assert gc.get_freeze_count() > len(gc.get_objects())


def test_upstream_connections_use_the_server_s_event_loop(events, monkeypatch):
    # Another test may have left its event loop.
    process_connections.stop()
    hosts: list[Any] = []
    monkeypatch.setattr(plugins, "start", lambda: hosts.append(process_connections.running().host))
    monkeypatch.setattr(plugins, "stop", process_connections.stop)

    run(front.Application(no_application, answers(events)), "startup", "shutdown")

    assert isinstance(hosts[0], asyncio.AbstractEventLoop)
    assert process_connections.running().host is None
    process_connections.stop()


def test_a_server_without_lifespan_starts_plugins_at_the_first_request(events):
    application = front.Application(no_application, None)
    for _ in range(2):
        asyncio.run(
            application(
                {"type": "http", "path": "/", "method": "GET", "headers": []},
                idle_channel,
                idle_channel,
            )
        )
    assert events == ["plugins begin", "tokens begin"]


def test_a_hanging_plugin_delays_shutdown_no_longer_than_the_grace_period(events, monkeypatch, caplog):
    release = threading.Event()
    monkeypatch.setattr(plugins, "stop", release.wait)
    try:
        asyncio.run(lifespan.Lifespan(answers(events), access_log.AccessLog(), grace=0.01).end())
    finally:
        release.set()
    assert events == ["database let go"]
    assert "not stopped" in caplog.text


def test_a_plugin_that_fails_to_stop_does_not_prevent_shutdown(events, monkeypatch, caplog):
    def stop() -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(plugins, "stop", stop)
    asyncio.run(lifespan.Lifespan(answers(events), access_log.AccessLog()).end())
    assert events == ["database let go"]
    assert "not stopped" in caplog.text


def test_writer_threads_start_once_and_stop_with_the_server(events: list[str]) -> None:
    for _ in range(2):
        for _ in range(2):
            expirations.start()
            start_running_tools()
        threads = writer_threads()
        assert len(threads) == 2
        asyncio.run(lifespan.Lifespan(None, access_log.AccessLog()).end())
        for thread in threads:
            thread.join(5)
        assert writer_threads() == []
