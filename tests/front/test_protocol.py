"""How uvicorn's protocol is set up, and how it sends. (Its limits: test_server.py)"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from toolbelt.front import protocol


class Sent:
    """A transport that keeps what is sent in each system call."""

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


def writing(*parts: bytes, ending: str = "") -> Sent:
    """Write these parts in one turn of the event loop, and return what is sent until the next but one."""

    async def write() -> Sent:
        sent = Sent()
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


def test_a_head_and_its_body_are_sent_at_once() -> None:
    assert writing(b"head", b"body").calls == [b"headbody"]


def test_much_is_sent_at_once_so_that_the_transport_can_tell_when_to_pause() -> None:
    large = b"x" * protocol.MAX_HELD_BYTES

    async def write() -> list[bytes]:
        sent = Sent()
        transport = protocol.GatheringTransport(sent, asyncio.get_running_loop())  # type: ignore[arg-type]
        transport.write(b"head")
        transport.write(large)
        return sent.calls

    assert asyncio.run(write()) == [b"head" + large]


def test_what_is_held_is_sent_before_the_connection_is_closed() -> None:
    sent = writing(b"last words", ending="closed here")
    assert sent.calls == [b"last words"]
    assert sent.is_closed


def test_nothing_is_sent_to_a_client_that_went_away() -> None:
    assert writing(b"too late", ending="closed by the client").calls == []


def test_all_else_is_the_transport_s_own() -> None:
    async def ask() -> object:
        loop = asyncio.get_running_loop()
        return protocol.GatheringTransport(Sent(), loop).get_extra_info("peername")  # type: ignore[arg-type]

    assert asyncio.run(ask()) == "its peername"


def test_the_protocol_can_be_imported_before_django_is_set_up_as_servers_with_several_workers_do() -> None:
    imported = "import sys, toolbelt.front.protocol; sys.exit('django.conf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", imported], check=False).returncode == 0
