"""A request is answered from one consistent state, and from the cache if nothing changed."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests import factories
from toolbelt import models
from toolbelt.core import catalog as values
from toolbelt.core import errors
from toolbelt.core import sessions as conversations
from toolbelt.store import catalog, clock, sessions, snapshots

LOOK, CATALOG, AGENT = 1, 9, 5


def session_of(agent: models.Agent, key: str, toolkit: str) -> None:
    sessions.change(
        agent.pk, key, lambda held: (None, conversations.with_change(held, "toolkit", toolkit, True, "r1"))
    )


@pytest.mark.django_db
def test_a_question_finds_catalog_agent_and_session() -> None:
    ada = factories.everything()
    session_of(ada, "s", "dev")
    session_of(ada, "other", "other")
    stored = models.Revision.objects.get()
    own = models.AgentRevision.objects.get()

    found = snapshots.find("ada", "s")

    assert list(found.catalog.tools) == ["git__status", "run"]
    assert (found.agent.key, found.agent.switches) == ("ada", {"dev": True})
    assert found.session is not None
    assert [(change.name, change.request_id) for change in found.session.changes] == [("dev", "r1")]
    assert found.agent_id == ada.pk
    assert found.number == max(stored.catalog_number, own.number)
    assert (found.catalog_stamp, found.agent_stamp) == (stored.catalog_stamp, own.stamp)


@pytest.mark.django_db
def test_a_session_that_was_never_written_is_an_empty_one_and_none_is_none() -> None:
    factories.agent()

    assert snapshots.find("ada", "new").session == conversations.Session(key="new")
    assert snapshots.find("ada", None).session is None


@pytest.mark.django_db
def test_an_unknown_agent_is_not_found_and_the_nearest_is_named() -> None:
    factories.agent("assistant")

    with pytest.raises(errors.NotFound) as caught:
        snapshots.find("asistant", None)

    assert caught.value.nearest == ("assistant",)


@pytest.mark.django_db
def test_a_question_after_which_nothing_changed_costs_one_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    ada = factories.everything()
    session_of(ada, "s", "dev")
    first = snapshots.find("ada", "s")

    with django_assert_num_queries(LOOK):
        again = snapshots.find("ada", "s")

    assert again.catalog is first.catalog
    assert again.agent is first.agent


@pytest.mark.django_db
def test_a_flip_reads_its_agent_again_and_not_the_catalog(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    factories.everything()
    first = snapshots.find("ada", None)
    models.ToolkitSwitch.objects.update(on=False)

    with django_assert_num_queries(LOOK + AGENT + LOOK):
        again = snapshots.find("ada", None)

    assert again.catalog is first.catalog
    assert again.agent.switches == {"dev": False}
    assert again.number > first.number


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 40])
def test_a_first_question_costs_the_same_queries_whatever_the_catalog_counts(
    count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    tools = models.Tool.objects.bulk_create([models.Tool(key=f"t{number}") for number in range(count)])
    for number in range(count):
        factories.toolkit(f"k{number}", *tools[:3])
        factories.loadout(f"l{number}")
        factories.sub_app(f"s{number}", tools=tuple(tools[:2]))
    factories.agent()

    with django_assert_num_queries(LOOK + CATALOG + LOOK + AGENT + LOOK):
        found = snapshots.find("ada", None)

    assert len(found.catalog.tools) == count


@pytest.mark.django_db
def test_a_session_never_makes_the_catalog_or_the_agent_be_read_again(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    ada = factories.everything()
    snapshots.find("ada", "s")
    session_of(ada, "s", "dev")

    with django_assert_num_queries(LOOK):
        found = snapshots.find("ada", "s")

    assert found.session is not None
    assert conversations.requested(found.session, "toolkit") == {"dev"}


@pytest.mark.django_db
def test_without_a_revision_everything_is_number_0_and_nothing_is_kept() -> None:
    factories.everything()
    models.Revision.objects.all().delete()
    models.AgentRevision.objects.all().delete()

    first, again = snapshots.find("ada", None), snapshots.find("ada", None)

    assert (first.number, first.catalog_stamp, first.agent_stamp) == (0, "", "")
    assert first.catalog is not again.catalog
    assert first.agent is not again.agent


def loads_with(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[int], object]) -> list[int]:
    """Run a function each time that the catalog is read. Return the list of those times."""
    times: list[int] = []

    def load(*state: Any) -> values.Catalog:
        read = catalog.load(*state)
        times.append(len(times))
        meanwhile(times[-1])
        return read

    class Rows:
        pass

    rows = Rows()
    rows.load = load  # type: ignore[attr-defined]
    monkeypatch.setattr(snapshots, "rows", rows)
    return times


@pytest.mark.django_db
def test_what_changed_while_it_was_read_is_read_again_and_never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()

    def meanwhile(time: int) -> None:
        if time == 0:
            models.Tool.objects.update(description="newer")

    times = loads_with(monkeypatch, meanwhile)

    found = snapshots.find("ada", None)

    assert len(times) == 2
    assert found.catalog.tools["run"].description == "newer"
    assert snapshots.find("ada", None).catalog is found.catalog


@pytest.mark.django_db
def test_where_it_changes_all_the_time_the_writers_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()

    def meanwhile(time: int) -> None:
        if time < snapshots.TRIES:
            models.Tool.objects.update(description=f"state {time}")

    times = loads_with(monkeypatch, meanwhile)

    assert snapshots.find("ada", None).catalog.tools["run"].description == f"state {snapshots.TRIES - 1}"
    assert len(times) == snapshots.TRIES + 1


@pytest.mark.django_db
def test_the_catalog_alone_waits_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()

    def meanwhile(time: int) -> None:
        if time < snapshots.TRIES:
            models.Tool.objects.update(description=f"state {time}")

    loads_with(monkeypatch, meanwhile)

    assert snapshots.catalog().tools["run"].description == f"state {snapshots.TRIES - 1}"


@pytest.mark.django_db
def test_an_agent_that_is_deleted_while_it_is_asked_for_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()
    loads_with(monkeypatch, lambda time: models.Agent.objects.all().delete())

    with pytest.raises(errors.NotFound, match="'ada'"):
        snapshots.find("ada", None)


@pytest.mark.django_db(transaction=True)
def test_threads_that_ask_at_once_compile_the_catalog_once(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.everything()
    everyone_waits = threading.Event()
    times = loads_with(monkeypatch, lambda time: everyone_waits.wait(timeout=0.3))
    found: list[snapshots.StoredState] = []

    def ask() -> None:
        try:
            found.append(snapshots.find("ada", None))
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert times == [0]
    assert len({id(one.catalog) for one in found}) == 1
    assert len(found) == 6


@pytest.mark.django_db
def test_the_catalog_can_be_had_without_an_agent(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    factories.everything()
    first = snapshots.catalog()

    with django_assert_num_queries(1):
        assert snapshots.catalog() is first
    assert snapshots.find("ada", None).catalog is first


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "name"), [("toolkit", "dev"), ("tool", "git__status"), ("tool", "run"), ("sub_app", "chat")]
)
def test_agents_are_found_by_what_they_name(kind: str, name: str) -> None:
    factories.everything()
    factories.agent("bea")

    assert [agent.key for agent in snapshots.agents_with(kind, name)] == ["ada"]
    assert snapshots.agents_with(kind, "nobody's") == []


PRESENT = 3


@pytest.mark.django_db
def test_all_agents_are_kept_and_only_one_that_changed_is_read_again(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    factories.everything()
    bob = factories.agent("bob", position=1)
    factories.agent("cleo", archived=True)
    first = snapshots.present()
    assert [one.agent.key for one in first] == ["ada", "bob"]
    assert [one.agent.key for one in snapshots.present(archived=True)] == ["cleo"]

    with django_assert_num_queries(PRESENT):
        again = snapshots.present()
    assert [one.agent for one in again] == [one.agent for one in first]
    assert [one.state for one in again] == [one.state for one in first]

    models.Agent.objects.filter(pk=bob.pk).update(title="Bob")
    with django_assert_num_queries(PRESENT + AGENT + PRESENT):
        ada, changed = snapshots.present()
    assert ada.agent is again[0].agent
    assert changed.agent.title == "Bob"
    assert changed.state != again[1].state


@pytest.mark.django_db
def test_agents_are_read_again_when_what_they_name_is_called_otherwise() -> None:
    factories.everything()
    snapshots.present()
    models.Toolkit.objects.update(key="other")
    (ada,) = snapshots.present()
    assert ada.agent.switches == {"other": True}


@pytest.mark.django_db
def test_an_end_makes_it_another_state_without_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    factories.everything()
    models.ToolkitSwitch.objects.update(ends=now + dt.timedelta(hours=1), by="olive")
    (before,) = snapshots.present()
    monkeypatch.setattr(clock, "now", lambda: now + dt.timedelta(hours=2))
    (after,) = snapshots.present()
    assert (before.agent.switches, after.agent.switches) == ({"dev": True}, {})
    assert before.state != after.state


@pytest.mark.django_db
def test_agents_without_a_stamp_have_no_state_to_be_kept_under() -> None:
    factories.everything()
    models.AgentRevision.objects.all().delete()
    (ada,) = snapshots.present()
    assert (ada.agent.key, ada.state) == ("ada", None)
