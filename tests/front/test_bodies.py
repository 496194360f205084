"""Tests that unneeded bodies are not read, and that the size of others is checked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.front.conftest import ADDRESS, Request, Server
from toolbelt import conf
from toolbelt.api import bodies


@pytest.mark.parametrize(
    ("length", "token", "status"),
    [
        ({"content-length": str(conf.API_BODY_BYTES + 1)}, "own", 413),
        ({"content-length": str(conf.API_BODY_BYTES + 1)}, "tb_nonsense", 401),
        ({"content-length": "(none)", "transfer-encoding": "chunked"}, "own", 411),
        ({"content-length": "(none)", "transfer-encoding": "chunked"}, "", 401),
    ],
)
def test_a_body_of_excessive_or_unknown_length_is_refused_unread(
    server: Server, ada: str, monkeypatch: Any, length: dict[str, str], token: str, status: int
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(
        "django.core.handlers.asgi.tempfile.SpooledTemporaryFile", lambda **options: _BodyFile(written)
    )
    request = Request(
        method="POST",
        path=ADDRESS.replace("surface", "calls"),
        token=ada if token == "own" else token,
        headers=length,
        body=b'{"tool": "kb__find"}',
    )

    answer = server.ask(request)

    assert answer.status == status
    assert answer.header("content-type") == "application/problem+json"
    assert b"".join(written) == b""


class _BodyFile:
    """The file in which Django buffers a body."""

    def __init__(self, written: list[bytes]) -> None:
        self._kept = written

    def write(self, part: bytes) -> None:
        self._kept.append(part)

    def seek(self, place: int) -> None:
        """Do nothing."""

    def read(self, *size: int) -> bytes:
        return b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("token", ["", "nonsense", "tb_" + "0" * 57])
def test_an_unauthenticated_body_is_not_parsed(server: Server, monkeypatch: Any, token: str) -> None:
    def fail_if_read(body: bytes) -> Any:
        raise AssertionError("the body was read")

    monkeypatch.setattr(bodies, "read", fail_if_read)

    answer = server.ask(Request(method="POST", token=token, body={"message": "hello"}))

    assert (answer.status, answer.by_django) == (401, True)
