"""Tests that some connections of the pool are reserved for operators."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.postgresql import base as django_base

from toolbelt.store import databases
from toolbelt.store.postgresql import base

POOL = 3


@pytest.mark.parametrize(("size", "expected"), [(1, 0), (2, 1), (4, 1), (10, 2), (50, 10)])
def test_a_fifth_of_the_pool_but_at_least_one_is_reserved_for_operators(size: int, expected: int) -> None:
    assert base.reserved(size) == expected


@pytest.fixture
def pooled(db: None) -> Iterator[Any]:
    """Yield a factory of wrappers that share a pool of three connections."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no pool")
    settings = copy.deepcopy(connection.settings_dict)
    settings["OPTIONS"]["pool"] = {"min_size": 0, "max_size": POOL, "timeout": 0.3}
    made: list[base.DatabaseWrapper] = []

    def make() -> base.DatabaseWrapper:
        made.append(base.DatabaseWrapper(settings, alias="pooled"))
        made[-1].inc_thread_sharing()
        return made[-1]

    yield make
    for wrapper in made:
        wrapper.close()
    made[-1].close_pool()


def connect(wrapper: base.DatabaseWrapper, *, for_an_agent: bool) -> None:
    """Connect in a separate thread, because pytest-django forbids it in this one."""
    raised: list[Exception] = []

    def act() -> None:
        try:
            if for_an_agent:
                with databases.for_an_agent():
                    wrapper.ensure_connection()
            else:
                wrapper.ensure_connection()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def test_agents_can_use_all_connections_except_the_reserved_one(pooled: Any) -> None:
    first, second, third, operator = (pooled() for _ in range(4))
    connect(first, for_an_agent=True)
    connect(second, for_an_agent=True)

    with pytest.raises(OperationalError, match="for an agent"):
        connect(third, for_an_agent=True)
    connect(operator, for_an_agent=False)

    second.close()
    connect(third, for_an_agent=True)


def test_a_failed_connection_does_not_use_up_the_pool(pooled: Any, monkeypatch: Any) -> None:
    first, second = pooled(), pooled()

    def refuse(*args: Any) -> Any:
        raise OperationalError("no server")

    with monkeypatch.context() as broken:
        broken.setattr(django_base.DatabaseWrapper, "get_new_connection", refuse)
        for _ in range(POOL):
            with pytest.raises(OperationalError, match="no server"):
                connect(first, for_an_agent=True)

    connect(first, for_an_agent=True)
    connect(second, for_an_agent=True)
