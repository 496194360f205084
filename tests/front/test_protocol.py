"""Tests how uvicorn's protocol gathers writes. (Its limits: test_server.py)"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from toolbelt.front import protocol


class RecordingTransport:
    """A transport that records what is sent in each system call."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.is_closed = False

    def writelines(self, parts: list[bytes]) -> None:
        self.calls.append(b"".join(parts))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str) -> str:
        return f"its {name}"


def write_parts(*parts: bytes, ending: str = "") -> RecordingTransport:
    """Write these parts in one turn of the event loop, and return what is sent until the next but one."""

    async def write() -> RecordingTransport:
        sent = RecordingTransport()
        transport = protocol.GatheringTransport(sent, asyncio.get_running_loop())  # type: ignore[arg-type]
        for part in parts:
            transport.write(part)
        if ending == "closed here":
            transport.close()
        elif ending == "closed by the client":
            sent.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return sent

    return asyncio.run(write())


def test_a_head_and_its_body_are_sent_in_one_call() -> None:
    assert write_parts(b"head", b"body").calls == [b"headbody"]


def test_a_large_body_is_sent_immediately() -> None:
    large = b"x" * protocol.MAX_HELD_BYTES

    async def write() -> list[bytes]:
        sent = RecordingTransport()
        transport = protocol.GatheringTransport(sent, asyncio.get_running_loop())  # type: ignore[arg-type]
        transport.write(b"head")
        transport.write(large)
        return sent.calls

    assert asyncio.run(write()) == [b"head" + large]


def test_held_data_is_sent_before_the_connection_is_closed() -> None:
    sent = write_parts(b"last words", ending="closed here")
    assert sent.calls == [b"last words"]
    assert sent.is_closed


def test_nothing_is_sent_to_a_disconnected_client() -> None:
    assert write_parts(b"too late", ending="closed by the client").calls == []


def test_other_methods_are_delegated_to_the_transport() -> None:
    async def ask() -> object:
        loop = asyncio.get_running_loop()
        return protocol.GatheringTransport(RecordingTransport(), loop).get_extra_info("peername")  # type: ignore[arg-type]

    assert asyncio.run(ask()) == "its peername"


def test_the_protocol_can_be_imported_before_django_is_set_up() -> None:
    imported = "import sys, toolbelt.front.protocol; sys.exit('django.conf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", imported], check=False).returncode == 0
