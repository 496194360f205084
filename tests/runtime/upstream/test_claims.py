"""Tests of the claims in the database that record which process holds an upstream connection."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests import breaking
from toolbelt.plugins.upstream import client_features
from toolbelt.runtime.upstream import claims as upstream_claims
from toolbelt.runtime.upstream import forwarding, process_connections


@breaking.ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_claiming_a_connection_keeps_no_database_connection_open(tmp_path: Path, settings: Any) -> None:
    settings.TOOLBELT_SOCKET_DIR = str(tmp_path / "sockets")

    async def here(act: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return await asyncio.to_thread(call_and_close, act, *given, **named)

    open_after = []

    def call_and_close(act: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return act(*given, **named)
        finally:
            open_after.append(connection.connection is not None)
            connection.close()

    async def address() -> str:
        return "/here"

    claims = upstream_claims.Claims()
    claim = asyncio.run(claims.settle("files", "agent ada", address, str.upper, here))
    assert isinstance(claim, str)
    assert open_after
    assert not any(open_after)


def test_a_copied_database_has_another_host_id_than_the_original(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TOOLBELT_SOCKET_DIR = str(tmp_path / "sockets")
    original = upstream_claims.host()
    assert upstream_claims.host() == original
    monkeypatch.setitem(connection.settings_dict, "NAME", "a copy")
    assert upstream_claims.host() != original
    assert upstream_claims.host().startswith(socket.gethostname()[:150])


def test_a_question_is_matched_to_the_forwarded_call_of_its_client() -> None:
    offered = {"owner": ("token", "ada", None, ("127.0.0.1", 5)), "modes": ["form"], "log_level": ""}
    sent = json.loads(json.dumps({**offered, "resumed": {}}))

    async def current() -> bool:
        calls, limit = client_features.Calls(), asyncio.timeout(10)
        features = [forwarding.RemoteFeatures(sent, None) for _ in range(2)]  # type: ignore[arg-type]
        first, second = (
            client_features.RunningCall(features=each, limit=limit, seconds=10) for each in features
        )
        with calls.entered(first), calls.entered(second):
            # As in the task that reads the server's messages.
            client_features.CURRENT.set(None)
            return calls.current() is first

    assert asyncio.run(current())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_does_not_inherit_a_held_lock() -> None:
    with process_connections._here.lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if process_connections._here.lock.acquire(timeout=5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
