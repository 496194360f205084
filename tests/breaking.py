"""Break the database of a test: remove it, lock it, make it read-only or full, or cut its connections."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.conf import settings
from django.db import connection, connections
from django.db.backends import signals

from toolbelt.store import database_file

_ENGINE = settings.DATABASES["default"]["ENGINE"]
ON_SQLITE = pytest.mark.skipif("sqlite" not in _ENGINE, reason="about SQLite")
ON_POSTGRESQL = pytest.mark.skipif("postgresql" not in _ENGINE, reason="about PostgreSQL")


class Proxy:
    """A TCP proxy in front of a server that can cut open connections, refuse new ones, or hang: accept connections and
    data, and pass nothing on.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listening: socket.socket | None = None
        self._passes = threading.Event()
        self._passes.set()
        self.port = 0
        self.connections = 0
        self.restore()

    def restore(self) -> None:
        """Accept connections again at the same port."""
        self._listening = socket.create_server(("127.0.0.1", self.port), reuse_port=True)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, args=[self._listening], daemon=True).start()

    def refuse(self) -> None:
        """Refuse new connections, and cut the open ones."""
        if self._listening is not None:
            # Shutting down wakes the accepting thread, which closing alone does not.
            with contextlib.suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            self._listening = None
        self.cut()

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Pass nothing on within the block."""
        self._passes.clear()
        try:
            yield
        finally:
            self._passes.set()

    def cut(self) -> None:
        """Cut the open connections."""
        with self._lock:
            cut, self._open = self._open, set()
        for connection_ in cut:
            with contextlib.suppress(OSError):
                connection_.shutdown(socket.SHUT_RDWR)
            connection_.close()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            self.connections += 1
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=[source, target], daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._passes.wait()
                target.sendall(data)
        for connection_ in (source, target):
            with contextlib.suppress(OSError):
                connection_.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {source, target}
        source.close()
        target.close()


class Database:
    """The database of a test, with ways to break it."""

    def __init__(self, proxy: Proxy | None) -> None:
        self.proxy = proxy

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Make the database unavailable: the file is missing, or the server refuses connections."""
        connections.close_all()
        if self.proxy is not None:
            self.proxy.refuse()
            try:
                yield
            finally:
                connections.close_all()
                self.proxy.restore()
            return
        paths = [path for path in self._files() if path.exists()]
        for path in paths:
            path.rename(f"{path}.away")
        try:
            yield
        finally:
            connections.close_all()
            for path in self._files():
                path.unlink(missing_ok=True)
            for path in paths:
                Path(f"{path}.away").rename(path)

    @contextlib.contextmanager
    def locked(self, timeout: float = 0.1) -> Iterator[None]:
        """Hold the write lock of SQLite from another connection. Others wait for it for this many seconds."""
        other = sqlite3.connect(self._files()[0], isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        connections.close_all()
        try:
            with mock.patch.dict(connection.settings_dict["OPTIONS"], timeout=timeout):
                yield
            connections.close_all()
        finally:
            other.rollback()
            other.close()

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Limit SQLite to its current pages, without free ones, so that a write that needs a page fails."""
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
        with self._each_connection("PRAGMA max_page_count=1"):
            yield

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        """Refuse writes."""
        on_sqlite = connection.vendor == "sqlite"
        with self._each_connection(
            "PRAGMA query_only=ON" if on_sqlite else "SET default_transaction_read_only = on"
        ):
            yield

    def _files(self) -> list[Path]:
        name = str(connection.settings_dict["NAME"])
        return [Path(name + end) for end in ("", "-wal", "-shm")]

    @contextlib.contextmanager
    def _each_connection(self, statement: str) -> Iterator[None]:
        def run(connection: Any, **about: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute(statement)

        connections.close_all()
        signals.connection_created.connect(run)
        try:
            yield
        finally:
            signals.connection_created.disconnect(run)
            connections.close_all()


@contextlib.contextmanager
def breakable() -> Iterator[Database]:
    """Yield the test's database, with a proxy in front of its server."""
    connections.close_all()
    if connection.vendor == "sqlite":
        database_file.open_existing_only()
        try:
            yield Database(None)
        finally:
            database_file.forget()
        return
    about = connection.settings_dict
    proxy = Proxy(about["HOST"] or "127.0.0.1", int(about["PORT"] or 5432))
    with mock.patch.dict(about, HOST="127.0.0.1", PORT=proxy.port):
        try:
            yield Database(proxy)
        finally:
            connections.close_all()
            proxy.refuse()
    connections.close_all()
