"""Plugins start and stop with the server."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from toolbelt.control.access import expirations
from toolbelt.control.servers import running_tools
from toolbelt.front import access_log, lifespan
from toolbelt.front import application as front
from toolbelt.runtime import credentials, plugins, prepared_answers, record_writer, upstream_connections

# The tests of this folder start no such thread otherwise (`unhurried`).
start_announcing = running_tools.start


def writing() -> list[threading.Thread]:
    """Return the threads that record expiries, and say what this process can run."""
    names = ("toolbelt-ends", "toolbelt-running")
    return [thread for thread in threading.enumerate() if thread.name in names]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Stop the threads that a test starts, and wait for those that are still ending."""
    for is_before in (True, False):
        expirations.stop()
        running_tools.stop()
        for thread in writing():
            thread.join(20)
        if is_before:
            yield
    record_writer.stop()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was begun and ended, in order."""
    told: list[str] = []
    monkeypatch.setattr(plugins, "start", lambda: told.append("plugins begin"))
    monkeypatch.setattr(credentials, "start", lambda: told.append("tokens begin"))
    monkeypatch.setattr(plugins, "stop", lambda: told.append("plugins end"))
    return told


class Probe:
    """A probe that reads nothing and records that it was closed."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    async def read(self, prefix: str, agent: str, session: str | None) -> None:
        return None

    async def close(self) -> None:
        self.told.append("database let go")


def answers(told: list[str]) -> prepared_answers.PreparedAnswers:
    return prepared_answers.PreparedAnswers(Probe(told))


def run(application: front.Application, *coming: str) -> list[str]:
    """Send an application these messages of its life; give what it says to them."""
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


async def silence(*message: Any) -> Any:
    """Receive and send nothing."""


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """Answer nothing, as an application behind."""


def test_a_server_begins_and_ends_its_plugins(told):
    application = front.Application(nothing, answers(told))
    assert run(application, "startup", "shutdown") == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert told == ["plugins begin", "tokens begin", "plugins end", "database let go"]


def test_what_is_loaded_at_the_start_is_not_searched_for_garbage_again(told):
    gc.unfreeze()

    run(front.Application(nothing, answers(told)), "startup", "shutdown")

    assert gc.get_freeze_count() > len(gc.get_objects())


def test_connections_to_upstream_servers_live_on_the_servers_event_loop(told, monkeypatch):
    # Another test may have left a loop of its own.
    upstream_connections.stop()
    hosts: list[Any] = []
    monkeypatch.setattr(plugins, "start", lambda: hosts.append(upstream_connections.running().host))
    monkeypatch.setattr(plugins, "stop", upstream_connections.stop)

    run(front.Application(nothing, answers(told)), "startup", "shutdown")

    assert isinstance(hosts[0], asyncio.AbstractEventLoop)
    assert upstream_connections.running().host is None
    upstream_connections.stop()


def test_a_server_that_does_not_speak_of_its_life_begins_with_the_first_request(told):
    application = front.Application(nothing, None)
    for _ in range(2):
        asyncio.run(
            application({"type": "http", "path": "/", "method": "GET", "headers": []}, silence, silence)
        )
    assert told == ["plugins begin", "tokens begin"]


def test_a_plugin_that_does_not_end_holds_nothing_up_beyond_the_grace_period(told, monkeypatch, caplog):
    release = threading.Event()
    monkeypatch.setattr(plugins, "stop", release.wait)
    try:
        asyncio.run(lifespan.Lifespan(answers(told), access_log.AccessLog(), grace=0.01).end())
    finally:
        release.set()
    assert told == ["database let go"]
    assert "plugins not stopped" in caplog.text


def test_plugins_that_fail_to_end_do_not_keep_the_server_from_ending(told, monkeypatch, caplog):
    def stop() -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(plugins, "stop", stop)
    asyncio.run(lifespan.Lifespan(answers(told), access_log.AccessLog()).end())
    assert told == ["database let go"]
    assert "plugins not stopped" in caplog.text


def test_the_threads_that_write_begin_and_end_with_the_server(told: list[str]) -> None:
    for _ in range(2):
        for _ in range(2):
            expirations.start()
            start_announcing(frozenset)
        threads = writing()
        assert len(threads) == 2
        asyncio.run(lifespan.Lifespan(None, access_log.AccessLog()).end())
        for thread in threads:
            thread.join(5)
        assert writing() == []
