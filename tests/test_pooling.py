"""Tests that the PostgreSQL pool recovers from lost connections, and records why it cannot connect."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg_pool
import pytest
from django.db import connection

from tests import breaking
from toolbelt.settings import pooling
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
