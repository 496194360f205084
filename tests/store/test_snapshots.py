"""Tests that a request is answered from a consistent state, and from the cache if nothing changed."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests import factories
from toolbelt import models
from toolbelt.core import catalog as values
from toolbelt.core import errors
from toolbelt.core import sessions as conversations
from toolbelt.store import agent_sessions, catalog, clock, snapshots

PROBE_QUERIES, CATALOG_QUERIES, AGENT_QUERIES = 1, 11, 5


def load_in_session(agent: models.Agent, key: str, toolkit: str) -> None:
    agent_sessions.change(
        agent.pk,
        key,
        lambda current: (None, conversations.with_change(current, "toolkit", toolkit, True, "r1")),
    )


@pytest.mark.django_db
def test_find_returns_catalog_agent_and_session() -> None:
    ada = factories.everything()
    load_in_session(ada, "s", "dev")
    load_in_session(ada, "other", "other")
    stored = models.Revision.objects.get()
    own = models.AgentRevision.objects.get()

    snapshot = snapshots.find("ada", "s")

    assert list(snapshot.catalog.tools) == ["git__status", "run"]
    assert (snapshot.agent.key, snapshot.agent.switches) == ("ada", {"dev": True})
    assert snapshot.session is not None
    assert [(change.name, change.request_id) for change in snapshot.session.changes] == [("dev", "r1")]
    assert snapshot.agent_id == ada.pk
    assert snapshot.number == max(stored.catalog_number, own.number)
    assert (snapshot.catalog_stamp, snapshot.agent_stamp) == (stored.catalog_stamp, own.stamp)


@pytest.mark.django_db
def test_a_new_session_is_empty_and_without_a_key_there_is_none() -> None:
    factories.agent()

    assert snapshots.find("ada", "new").session == conversations.Session(key="new")
    assert snapshots.find("ada", None).session is None


@pytest.mark.django_db
def test_an_unknown_agent_is_not_found_and_the_closest_is_suggested() -> None:
    factories.agent("assistant")

    with pytest.raises(errors.NotFound) as caught:
        snapshots.find("asistant", None)

    assert caught.value.nearest == ("assistant",)


@pytest.mark.django_db
def test_find_takes_one_query_if_nothing_changed(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    ada = factories.everything()
    load_in_session(ada, "s", "dev")
    first = snapshots.find("ada", "s")

    with django_assert_num_queries(PROBE_QUERIES):
        again = snapshots.find("ada", "s")

    assert again.catalog is first.catalog
    assert again.agent is first.agent


@pytest.mark.django_db
def test_a_changed_switch_reloads_its_agent_but_not_the_catalog(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    factories.everything()
    first = snapshots.find("ada", None)
    models.ToolkitSwitch.objects.update(on=False)

    with django_assert_num_queries(PROBE_QUERIES + AGENT_QUERIES + PROBE_QUERIES):
        again = snapshots.find("ada", None)

    assert again.catalog is first.catalog
    assert again.agent.switches == {"dev": False}
    assert again.number > first.number


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 40])
def test_the_number_of_queries_of_a_first_find_is_constant(
    count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    tools = models.Tool.objects.bulk_create([models.Tool(key=f"t{number}") for number in range(count)])
    for number in range(count):
        factories.toolkit(f"k{number}", *tools[:3])
        factories.loadout(f"l{number}")
        factories.sub_app(f"s{number}", tools=tuple(tools[:2]))
    factories.agent()

    with django_assert_num_queries(
        PROBE_QUERIES + CATALOG_QUERIES + PROBE_QUERIES + AGENT_QUERIES + PROBE_QUERIES
    ):
        snapshot = snapshots.find("ada", None)

    assert len(snapshot.catalog.tools) == count


@pytest.mark.django_db
def test_a_session_change_does_not_reload_the_catalog_or_agent(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    ada = factories.everything()
    snapshots.find("ada", "s")
    load_in_session(ada, "s", "dev")

    with django_assert_num_queries(PROBE_QUERIES):
        snapshot = snapshots.find("ada", "s")

    assert snapshot.session is not None
    assert conversations.requested(snapshot.session, "toolkit") == {"dev"}


@pytest.mark.django_db
def test_without_a_revision_the_number_is_0_and_nothing_is_cached() -> None:
    factories.everything()
    models.Revision.objects.all().delete()
    models.AgentRevision.objects.all().delete()

    first, again = snapshots.find("ada", None), snapshots.find("ada", None)

    assert (first.number, first.catalog_stamp, first.agent_stamp) == (0, "", "")
    assert first.catalog is not again.catalog
    assert first.agent is not again.agent


def run_during_loads(monkeypatch: pytest.MonkeyPatch, during_load: Callable[[int], object]) -> list[int]:
    """Run a function during each load of the catalog, and return the list of the numbers of loads."""
    load_numbers: list[int] = []

    def load(*state: Any) -> values.Catalog:
        loaded = catalog.load(*state)
        load_numbers.append(len(load_numbers))
        during_load(load_numbers[-1])
        return loaded

    class Rows:
        pass

    rows = Rows()
    rows.load = load  # type: ignore[attr-defined]
    monkeypatch.setattr(snapshots, "rows", rows)
    return load_numbers


@pytest.mark.django_db
def test_a_catalog_that_changes_while_it_is_read_is_reread_and_not_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    factories.everything()

    def during_load(time: int) -> None:
        if time == 0:
            models.Tool.objects.update(description="newer")

    load_numbers = run_during_loads(monkeypatch, during_load)

    snapshot = snapshots.find("ada", None)

    assert len(load_numbers) == 2
    assert snapshot.catalog.tools["run"].description == "newer"
    assert snapshots.find("ada", None).catalog is snapshot.catalog


@pytest.mark.django_db
def test_constant_changes_are_ended_by_locking_out_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()

    def during_load(time: int) -> None:
        if time < snapshots.TRIES:
            models.Tool.objects.update(description=f"state {time}")

    load_numbers = run_during_loads(monkeypatch, during_load)

    assert snapshots.find("ada", None).catalog.tools["run"].description == f"state {snapshots.TRIES - 1}"
    assert len(load_numbers) == snapshots.TRIES + 1


@pytest.mark.django_db
def test_reading_only_the_catalog_locks_out_constant_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()

    def during_load(time: int) -> None:
        if time < snapshots.TRIES:
            models.Tool.objects.update(description=f"state {time}")

    run_during_loads(monkeypatch, during_load)

    assert snapshots.catalog().tools["run"].description == f"state {snapshots.TRIES - 1}"


@pytest.mark.django_db
def test_an_agent_deleted_during_a_read_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()
    run_during_loads(monkeypatch, lambda time: models.Agent.objects.all().delete())

    with pytest.raises(errors.NotFound, match="'ada'"):
        snapshots.find("ada", None)


@pytest.mark.django_db(transaction=True)
def test_concurrent_threads_compile_the_catalog_once(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()
    never_set = threading.Event()
    load_numbers = run_during_loads(monkeypatch, lambda time: never_set.wait(timeout=0.3))
    found_states: list[snapshots.StoredState] = []

    def find_ada() -> None:
        try:
            found_states.append(snapshots.find("ada", None))
        finally:
            connection.close()

    threads = [threading.Thread(target=find_ada) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert load_numbers == [0]
    assert len({id(stored.catalog) for stored in found_states}) == 1
    assert len(found_states) == 6


@pytest.mark.django_db
def test_the_catalog_is_available_without_an_agent(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    factories.everything()
    first = snapshots.catalog()

    with django_assert_num_queries(1):
        assert snapshots.catalog() is first
    assert snapshots.find("ada", None).catalog is first


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "name"), [("toolkit", "dev"), ("tool", "git__status"), ("tool", "run"), ("sub_app", "chat")]
)
def test_agents_are_found_by_the_entries_they_refer_to(kind: str, name: str) -> None:
    factories.everything()
    factories.agent("bea")

    assert [agent.key for agent in snapshots.agents_with(kind, name)] == ["ada"]
    assert snapshots.agents_with(kind, "nobody's") == []


PRESENT_QUERIES = 3


@pytest.mark.django_db
def test_all_agents_are_cached_and_only_changed_ones_reloaded(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    factories.everything()
    bob = factories.agent("bob", position=1)
    factories.agent("cleo", archived=True)
    first = snapshots.present()
    assert [entry.agent.key for entry in first] == ["ada", "bob"]
    assert [entry.agent.key for entry in snapshots.present(archived=True)] == ["cleo"]

    with django_assert_num_queries(PRESENT_QUERIES):
        again = snapshots.present()
    assert [entry.agent for entry in again] == [entry.agent for entry in first]
    assert [entry.state for entry in again] == [entry.state for entry in first]

    models.Agent.objects.filter(pk=bob.pk).update(title="Bob")
    with django_assert_num_queries(PRESENT_QUERIES + AGENT_QUERIES + PRESENT_QUERIES):
        ada, changed = snapshots.present()
    assert ada.agent is again[0].agent
    assert changed.agent.title == "Bob"
    assert changed.state != again[1].state


@pytest.mark.django_db
def test_what_is_tried_takes_no_room_in_the_cache_and_does_not_stay(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    factories.everything()
    factories.agent("bob", position=1)
    first = snapshots.present()
    before = list(snapshots._agents)
    with transaction.atomic(), snapshots.trying():
        # All agents are read again, as after every change of the catalog.
        models.Toolkit.objects.update(key="other")
        tried = snapshots.present()
        assert [entry.state for entry in tried] == [None, None]
        with django_assert_num_queries(PRESENT_QUERIES):
            assert snapshots.present()[0].agent is tried[0].agent
        assert snapshots.find("bob", None).agent is tried[1].agent
        transaction.set_rollback(True)
    assert sorted(snapshots._agents) == sorted(before)
    with django_assert_num_queries(PRESENT_QUERIES):
        assert snapshots.present() == first


@pytest.mark.django_db
def test_agents_are_reloaded_when_an_entry_they_refer_to_is_renamed() -> None:
    factories.everything()
    snapshots.present()
    models.Toolkit.objects.update(key="other")
    (ada,) = snapshots.present()
    assert ada.agent.switches == {"other": True}


@pytest.mark.django_db
def test_an_expired_switch_changes_the_state_without_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    factories.everything()
    models.ToolkitSwitch.objects.update(ends=now + dt.timedelta(hours=1), by="olive")
    (before,) = snapshots.present()
    monkeypatch.setattr(clock, "now", lambda: now + dt.timedelta(hours=2))
    (after,) = snapshots.present()
    assert (before.agent.switches, after.agent.switches) == ({"dev": True}, {})
    assert before.state != after.state


@pytest.mark.django_db
def test_an_agent_without_a_stamp_has_no_state() -> None:
    factories.everything()
    models.AgentRevision.objects.all().delete()
    (ada,) = snapshots.present()
    assert (ada.agent.key, ada.state) == ("ada", None)
