"""Tests that the PostgreSQL pool recovers from lost connections, and records why it cannot connect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import psycopg_pool
import pytest
from django.db import connection

from tests import breaking
from toolbelt.settings import pooling
from toolbelt.store import state_probe
from toolbelt.store.state_probe import postgresql

pytestmark = [breaking.ON_POSTGRESQL, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def proxy() -> Iterator[breaking.Proxy]:
    with breaking.breakable() as database:
        assert database.proxy is not None
        yield database.proxy


@pytest.fixture
def pool(proxy: breaking.Proxy) -> Iterator[psycopg_pool.ConnectionPool[pooling.Connection]]:
    with psycopg_pool.ConnectionPool(
        kwargs={**postgresql.parameters(connection), "autocommit": True},
        connection_class=pooling.Connection,
        check=psycopg_pool.ConnectionPool.check_connection,
        min_size=8,
        timeout=3,
        reconnect_timeout=3,
    ) as connection_pool:
        connection_pool.wait()
        yield connection_pool
    pooling.Connection.refusal = None
    pooling.Connection.watch = pooling.Watch()


def test_a_pool_reconnects_immediately_if_all_its_connections_were_cut(pool, proxy):
    proxy.cut()
    # Checking the dead connections one by one, the pool would pause for longer than its timeout.
    for _ in range(8):
        with pool.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert pool.get_stats().get("requests_errors", 0) == 0


def test_a_pool_that_cannot_connect_records_the_reason(pool, proxy):
    proxy.refuse()
    with pytest.raises(psycopg_pool.PoolTimeout):
        pool.getconn()
    assert "refused" in str(pooling.Connection.refusal)
    proxy.restore()
    with pool.connection(timeout=30) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert pooling.Connection.refusal is None


def test_a_statement_ends_if_the_server_accepts_connections_but_answers_none(pool, proxy, monkeypatch):
    monkeypatch.setattr(pooling, "PATIENCE_SECONDS", 0.1)
    connection = pool.getconn()
    with proxy.hanging():
        with pytest.raises(psycopg.OperationalError, match="does not answer"):
            connection.execute("SELECT 1")
        assert connection.closed
        assert "does not answer" in str(pooling.Connection.refusal)
    pool.putconn(connection)


def test_a_slow_statement_goes_on_while_the_server_answers(pool, proxy, monkeypatch):
    monkeypatch.setattr(pooling, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(pooling, "VALID_SECONDS", 0.0)
    before = proxy.connections
    with pool.connection() as connection:
        assert connection.execute("SELECT pg_sleep(0.5) IS NULL").fetchone() == (False,)
    assert proxy.connections > before


def test_a_probe_of_a_server_that_hangs_ends_in_time(proxy, monkeypatch):
    async def read() -> None:
        probe = postgresql.StateProbe(postgresql.parameters(connection))
        assert await probe.read("none", "none", None) is None
        with proxy.hanging():
            monkeypatch.setattr(postgresql, "SECONDS", 0.2)
            async with asyncio.timeout(20):
                with pytest.raises(state_probe.UnreachableError):
                    await probe.read("none", "none", None)
        await probe.close()

    asyncio.run(read())
