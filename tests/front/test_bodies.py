"""Bodies that are not needed are not read, and the size of others is checked."""

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
def test_too_large_a_body_is_refused_by_its_head(
    server: Server, ada: str, monkeypatch: Any, length: dict[str, str], token: str, status: int
) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(
        "django.core.handlers.asgi.tempfile.SpooledTemporaryFile", lambda **options: _Kept(kept)
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
    assert b"".join(kept) == b""


class _Kept:
    """What Django keeps of a body while it comes."""

    def __init__(self, kept: list[bytes]) -> None:
        self._kept = kept

    def write(self, part: bytes) -> None:
        self._kept.append(part)

    def seek(self, place: int) -> None:
        """Start again."""

    def read(self, *size: int) -> bytes:
        return b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Let go."""


@pytest.mark.parametrize("token", ["", "nonsense", "tb_" + "0" * 57])
def test_the_body_of_a_stranger_is_not_looked_at(server: Server, monkeypatch: Any, token: str) -> None:
    def looked(body: bytes) -> Any:
        raise AssertionError("somebody read it")

    monkeypatch.setattr(bodies, "read", looked)

    answer = server.ask(Request(method="POST", token=token, body={"message": "hello"}))

    assert (answer.status, answer.by_django) == (401, True)
