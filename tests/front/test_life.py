"""Do plugins begin and end with the server?"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from toolbelt import front
from toolbelt.control import endings
from toolbelt.front import life, notes
from toolbelt.runtime import access, plugins, ready


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give what was begun and ended, in order."""
    told: list[str] = []
    monkeypatch.setattr(plugins, "start", lambda: told.append("plugins begin"))
    monkeypatch.setattr(access, "start", lambda: told.append("tokens begin"))
    monkeypatch.setattr(plugins, "stop", lambda: told.append("plugins end"))
    return told


class Eyes:
    """Eyes that see nothing, and tell when they are closed."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    async def look(self, prefix: str, agent: str, session: str | None) -> None:
        return None

    async def close(self) -> None:
        self.told.append("database let go")


def answers(told: list[str]) -> ready.Answers:
    return ready.Answers(Eyes(told))


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
        asyncio.run(life.Life(answers(told), notes.Notes(), grace=0.01).end())
    finally:
        release.set()
    assert told == ["database let go"]
    assert "plugins not stopped" in caplog.text


def test_plugins_that_fail_to_end_do_not_keep_the_server_from_ending(told, monkeypatch, caplog):
    def stop() -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(plugins, "stop", stop)
    asyncio.run(life.Life(answers(told), notes.Notes()).end())
    assert told == ["database let go"]
    assert "plugins not stopped" in caplog.text


def test_the_thread_that_writes_ends_begins_and_ends_with_the_server(told: list[str]) -> None:
    def writing() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "toolbelt-ends"]

    for _ in range(2):
        endings.start()
        endings.start()
        (thread,) = writing()
        asyncio.run(life.Life(None, notes.Notes()).end())
        thread.join(5)
        assert writing() == []
