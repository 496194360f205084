"""Tests of what is asked of the database to find out who holds a connection, and of what a claim says."""

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
from toolbelt.runtime import upstream_claims, upstream_connections, upstream_forwarding


@breaking.ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_no_database_connection_is_kept_for_a_connection_that_is_about_to_be_made(
    tmp_path: Path, settings: Any
) -> None:
    settings.TOOLBELT_SOCKET_DIR = str(tmp_path / "sockets")

    async def here(act: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return await asyncio.to_thread(asked, act, *given, **named)

    open_after = []

    def asked(act: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return act(*given, **named)
        finally:
            open_after.append(connection.connection is not None)
            connection.close()

    async def address() -> str:
        return "/here"

    claims = upstream_claims.Claims()
    taken = asyncio.run(claims.settle("files", "agent ada", address, str.upper, here))
    assert isinstance(taken, str)
    assert open_after
    assert not any(open_after)


def test_a_copy_of_the_database_does_not_reach_the_processes_of_the_original(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TOOLBELT_SOCKET_DIR = str(tmp_path / "sockets")
    original = upstream_claims.host()
    assert upstream_claims.host() == original
    monkeypatch.setitem(connection.settings_dict, "NAME", "a copy")
    assert upstream_claims.host() != original
    assert upstream_claims.host().startswith(socket.gethostname()[:150])


def test_a_question_meets_the_forwarded_call_of_a_client_that_is_known_by_its_address() -> None:
    offered = {"owner": ("token", "ada", None, ("127.0.0.1", 5)), "modes": ["form"], "log_level": ""}
    sent = json.loads(json.dumps({**offered, "resumed": {}}))

    async def current() -> bool:
        calls, limit = client_features.Calls(), asyncio.timeout(10)
        features = [upstream_forwarding.RemoteFeatures(sent, None) for _ in range(2)]  # type: ignore[arg-type]
        one, other = (
            client_features.RunningCall(features=each, limit=limit, seconds=10) for each in features
        )
        with calls.entered(one), calls.entered(other):
            # As where the server's message is read.
            client_features.CURRENT.set(None)
            return calls.current() is one

    assert asyncio.run(current())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_process_that_is_forked_meanwhile_does_not_wait_for_its_parent() -> None:
    with upstream_connections._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if upstream_connections._lock.acquire(timeout=5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
