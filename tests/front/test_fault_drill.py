"""Tests a server under load while its database is locked, full, cut off or stopped. (`make soak`)

Four writers and four readers run throughout. Every answer arrives in time and is truthful, acknowledged changes are
stored, and agents keep their surfaces.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.conf import settings

from tests import breaking
from tests.installation import Installation

pytestmark = pytest.mark.soak
# Answers arrive within 5 s; a loaded machine may add to that.
MAX_LENGTH = 10.0
# Store a small configuration, and print the token of an agent and that of an operator.
SET_UP = """
import django
django.setup()
from django.contrib.auth import models
from tests.api.conftest import BELT
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
setup = writing.by("setup", via="command").replace(confirm=True)
belts.import_(setup, BELT)
models.User.objects.create_superuser("olga")
print(tokens.issue(setup, agent="ada").text, tokens.issue(setup, user="olga", scope="write").text)
"""
STORED = """
import json
import django
django.setup()
from toolbelt.control.catalog import entries
print(json.dumps(entries.read("agent", "bob")["tools_config"]))
"""
WRITTEN = ("clock", "hidden", "kb__find", "kb__read")


@dataclass
class Load:
    """Writers and readers of response server, and their responses: status, whether stale, seconds, start time."""

    address: str
    agent: str
    operator: str
    stopped: threading.Event = field(default_factory=threading.Event)
    may_write: threading.Event = field(default_factory=threading.Event)
    reads: list[tuple[int, bool, float, float]] = field(default_factory=list)
    writes: list[tuple[int, bool, float, float]] = field(default_factory=list)
    calls: list[tuple[int, bool, float, float]] = field(default_factory=list)
    acknowledged: dict[str, bool] = field(default_factory=dict)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        acts = [self._read] * 4 + [self._write(tool) for tool in WRITTEN] + [self._call]
        threads = [threading.Thread(target=self._work, args=[act]) for act in acts]
        self.may_write.set()
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopped.set()
            for thread in threads:
                thread.join()

    def _work(self, act: Callable[[httpx.Client], None]) -> None:
        with httpx.Client(base_url=f"{self.address}/api/v1", timeout=60) as client:
            while not self.stopped.wait(0.02):
                act(client)

    def _read(self, client: httpx.Client) -> None:
        start = time.monotonic()
        got = client.get("/agents/ada/surface", headers={"Authorization": f"Bearer {self.agent}"})
        is_stale = got.headers.get("toolbelt-stale") == "true"
        self.reads.append((got.status_code, is_stale, time.monotonic() - start, start))

    def _write(self, tool: str) -> Callable[[httpx.Client], None]:
        def write(client: httpx.Client) -> None:
            self.may_write.wait()
            start = time.monotonic()
            on = not self.acknowledged.get(tool, False)
            got = client.put(
                f"/agents/bob/overrides/{tool}",
                json={"on": on, "confirm": True},
                headers={"Authorization": f"Bearer {self.operator}"},
            )
            if got.status_code == 200:
                self.acknowledged[tool] = on
            self.writes.append((got.status_code, False, time.monotonic() - start, start))

        return write

    def _call(self, client: httpx.Client) -> None:
        start = time.monotonic()
        got = client.post(
            "/agents/ada/calls",
            json={"tool": "list_toolkits", "arguments": {}},
            headers={"Authorization": f"Bearer {self.agent}"},
        )
        is_refused = got.status_code == 200 and got.json()["is_error"]
        self.calls.append((got.status_code, is_refused, time.monotonic() - start, start))

    def check(self) -> None:
        """Check the status and the duration of all responses."""
        everything = [*self.reads, *self.writes, *self.calls]
        assert max(seconds for _, _, seconds, _ in everything) < MAX_LENGTH
        assert {status for status, *_ in everything} <= {200, 503, 507}


def between(responses: list[Any], start: float, end: float) -> list[Any]:
    return [response for response in responses if start <= response[3] < end]


@contextlib.contextmanager
def served(installation: Installation, url: str) -> Iterator[Load]:
    """Run a server of the installation as in production, with its database at this URL."""
    installation.sh(".venv/bin/python manage.py migrate --no-input")
    agent, operator = installation.python(SET_UP).split()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    no_settings = installation.directory / "empty.env"
    no_settings.touch()
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "uvicorn",
            "toolbelt.asgi:application",
            "--port",
            str(port),
            "--no-access-log",
        ],
        env={
            **installation.environment,
            "TOOLBELT_ENV": "demo",
            "TOOLBELT_ENV_FILE": str(no_settings),
            "SECRET_KEY": uuid.uuid4().hex + uuid.uuid4().hex,
            "ALLOWED_HOSTS": "127.0.0.1",
            "DATABASE_URL": url,
            "TOOLBELT_API_PER_MINUTE": "0",
            "TOOLBELT_RUNNING_SECONDS": "0",
        },
        cwd=settings.BASE_DIR,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{address}/readyz").status_code == 200:
                    break
            time.sleep(0.1)
        yield Load(address, agent, operator)
    finally:
        running.terminate()
        running.wait(60)


def drill(
    load: Load, installation: Installation, fault: contextlib.AbstractContextManager[Any]
) -> tuple[float, float]:
    """Run the load before, during and after the fault, and return when the fault started and ended."""
    with load.running():
        time.sleep(4)
        with fault:
            start = time.monotonic()
            time.sleep(8)
            end = time.monotonic()
        time.sleep(8)
    load.check()
    stored = json.loads(installation.python(STORED))
    assert {tool: stored[tool] for tool in WRITTEN} == load.acknowledged
    # In the end the server works as before the fault.
    last = time.monotonic() - 2
    for responses in (load.reads, load.writes, load.calls):
        assert {response[:2] for response in between(responses, end + 5, last)} == {(200, False)}
    return start, end


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Installation:
    return Installation(tmp_path, f"sqlite:///{tmp_path / 'db.sqlite3'}")


@breaking.ON_SQLITE
def test_a_locked_database_file_fails_writes_but_no_reads(on_sqlite: Installation) -> None:
    @contextlib.contextmanager
    def locked() -> Iterator[None]:
        other = sqlite3.connect(on_sqlite.directory / "db.sqlite3", isolation_level=None, timeout=10)
        other.execute("BEGIN IMMEDIATE")
        yield
        other.rollback()
        other.close()

    with served(on_sqlite, on_sqlite.url) as load:
        start, end = drill(load, on_sqlite, locked())
    assert {response[:2] for response in load.reads} == {(200, False)}
    assert 503 in {response[0] for response in between(load.writes, start, end)}


@breaking.ON_SQLITE
def test_a_full_disk_fails_writes_but_no_reads(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("a small disk takes root")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        installation = Installation(disk, f"sqlite:///{disk / 'db.sqlite3'}")

        @contextlib.contextmanager
        def full() -> Iterator[None]:
            junk = disk / "junk"
            with contextlib.suppress(OSError), junk.open("wb", buffering=0) as file:
                while file.write(b"x" * 4096):
                    pass
            yield
            junk.unlink()

        with served(installation, installation.url) as load:
            start, end = drill(load, installation, full())
        assert {response[:2] for response in load.reads} == {(200, False)}
        assert 507 in {response[0] for response in between(load.writes, start, end)}
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def on_postgresql(tmp_path: Path) -> Iterator[tuple[Installation, breaking.Proxy, str]]:
    """Yield an installation with its own database, a proxy in front of it, and the proxy's URL."""
    about = settings.DATABASES["default"]
    host, port = about["HOST"] or "127.0.0.1", int(about["PORT"] or 5432)
    login = {key: about[key.upper()] for key in ("user", "password") if about[key.upper()]}
    who = ":".join(login.values()) + "@" if login else ""
    name = f"toolbelt_drill_{uuid.uuid4().hex[:12]}"
    proxy = breaking.Proxy(host, port)
    with psycopg.connect(host=host, port=port, dbname="postgres", autocommit=True, **login) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            installation = Installation(tmp_path, f"postgres://{who}{host}:{port}/{name}")
            yield installation, proxy, f"postgres://{who}127.0.0.1:{proxy.port}/{name}"
        finally:
            proxy.refuse()
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@breaking.ON_POSTGRESQL
def test_agents_keep_their_surfaces_during_a_database_outage_and_recover_after_it(
    on_postgresql: tuple[Installation, breaking.Proxy, str],
) -> None:
    installation, proxy, url = on_postgresql

    @contextlib.contextmanager
    def away() -> Iterator[None]:
        # Only surfaces requested since this server's last change may be kept as stale.
        load.may_write.clear()
        time.sleep(1)
        proxy.refuse()
        load.may_write.set()
        yield
        proxy.restore()

    with served(installation, url) as load:
        start, end = drill(load, installation, away())
    # Each reader had requested its surface shortly before.
    assert {response[0] for response in load.reads} == {200}
    # A read of the last seconds may be answered when the database is back.
    assert {response[1] for response in between(load.reads, start + 1, end - 4)} == {True}
    # A request of the last seconds may still be waiting when the database is back.
    assert {response[0] for response in between(load.writes, start, end - 4)} == {503}
    assert {response[:2] for response in between(load.calls, start, end - 4)} == {(200, True)}


@breaking.ON_POSTGRESQL
def test_reads_survive_repeatedly_cut_connections(
    on_postgresql: tuple[Installation, breaking.Proxy, str],
) -> None:
    installation, proxy, url = on_postgresql

    @contextlib.contextmanager
    def cut_often() -> Iterator[None]:
        stopped = threading.Event()

        def cut() -> None:
            while not stopped.wait(2):
                proxy.cut()

        thread = threading.Thread(target=cut)
        thread.start()
        yield
        stopped.set()
        thread.join()

    with served(installation, url) as load:
        drill(load, installation, cut_often())
    assert {response[0] for response in load.reads} == {200}
    assert not [response for response in load.reads if response[1]]
