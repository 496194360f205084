"""Tests that sessions are stored, and that concurrent changes are all kept."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction

from tests import factories
from tests.store.conftest import Process
from toolbelt import models
from toolbelt.core import sessions as values
from toolbelt.store import agent_sessions

# Loads the given number of toolkits one after the other for each line.
_LOAD = """
import sys
import django
django.setup()
from toolbelt.core import sessions as values
from toolbelt.store import agent_sessions as sessions
for line in sys.stdin:
    agent, prefix, times = line.split()
    for time in range(int(times)):
        name = f"{prefix}{time}"
        sessions.change(
            int(agent), "s", lambda session: (None, values.with_change(session, "toolkit", name, True, None))
        )
"""


def load(agent: models.Agent, name: str, key: str = "s") -> None:
    agent_sessions.change(
        agent.pk, key, lambda session: (None, values.with_change(session, "toolkit", name, True, None))
    )


def loaded(key: str = "s") -> frozenset[str]:
    row = models.AgentSession.objects.get(key=key)
    return values.requested(agent_sessions.value(row.key, row.loadout, row.state), "toolkit")


@pytest.mark.django_db
def test_a_session_is_read_as_it_was_stored() -> None:
    ada = factories.agent()
    expected = values.Session(
        key="s",
        loadout="house",
        changes=(
            values.Change(kind="toolkit", name="dev", on=True, request_id="r1", at="2026-01-01T00:00:00Z"),
            values.Change(kind="plugin", name="git", on=False, request_id="r2", before=True),
            values.Change(kind="tool", name="run", on=True),
        ),
    )

    assert agent_sessions.change(ada.pk, "s", lambda session: ("done", expected)) == "done"

    assert agent_sessions.change(ada.pk, "s", lambda session: (session, None)) == expected


@pytest.mark.django_db
def test_an_unchanged_new_session_is_empty_and_stores_no_row() -> None:
    ada = factories.agent()

    assert agent_sessions.change(ada.pk, "s", lambda session: (session, None)) == values.Session(key="s")

    assert not models.AgentSession.objects.exists()


@pytest.mark.django_db
def test_a_change_that_fails_changes_nothing() -> None:
    ada = factories.agent()
    load(ada, "dev")

    def fail(session: values.Session) -> tuple[None, values.Session]:
        raise RuntimeError("it broke")

    with pytest.raises(RuntimeError, match="it broke"), transaction.atomic():
        agent_sessions.change(ada.pk, "s", fail)
    assert loaded() == {"dev"}


@pytest.mark.django_db
def test_sessions_of_the_same_name_belong_to_their_agent() -> None:
    ada, bea = factories.agent("ada"), factories.agent("bea")
    load(ada, "dev")

    assert agent_sessions.change(bea.pk, "s", lambda session: (session, None)).changes == ()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "state",
    [
        {},
        {"changes": None},
        {"changes": "dev"},
        {"changes": [None, 1, "x", [], {}, {"kind": "toolkit"}, {"kind": "galaxy", "name": "x", "on": True}]},
        {
            "changes": [
                {"kind": "toolkit", "name": "dev", "on": "yes"},
                {"kind": "tool", "name": 1, "on": True},
            ]
        },
    ],
)
def test_an_invalid_session_state_is_ignored(state: dict[str, Any]) -> None:
    assert agent_sessions.value("s", "", state) == values.Session(key="s")


def test_invalid_fields_of_a_change_are_ignored() -> None:
    state = {
        "changes": [{"kind": "tool", "name": "run", "on": True, "request_id": 7, "before": "x", "at": None}]
    }

    (change,) = agent_sessions.value("s", "", state).changes

    assert change == values.Change(kind="tool", name="run", on=True)


@pytest.mark.django_db(transaction=True)
def test_concurrent_loads_in_threads_are_all_kept() -> None:
    ada = factories.agent()
    barrier = threading.Barrier(6)

    def work(number: int) -> None:
        try:
            barrier.wait()
            for time in range(5):
                load(ada, f"k{number}-{time}")
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(loaded()) == 30


@pytest.mark.django_db(transaction=True)
def test_concurrent_creation_without_changes_does_not_lose_loads() -> None:
    ada = factories.agent()
    barrier = threading.Barrier(6)

    def work(number: int) -> None:
        try:
            barrier.wait()
            if number % 2:
                load(ada, f"k{number}")
            else:
                agent_sessions.change(ada.pk, "s", lambda session: (None, None))
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert loaded() == {"k1", "k3", "k5"}


@pytest.mark.django_db(transaction=True)
def test_concurrent_loads_in_processes_are_all_kept() -> None:
    ada = factories.agent()
    processes = [Process(_LOAD) for _ in range(3)]
    for number, process in enumerate(processes):
        process.tell(f"{ada.pk} p{number}- 10")

    assert [process.end() for process in processes] == [0, 0, 0]

    assert len(loaded()) == 30
