"""Bulk changes are shown first, applied as shown or not at all, and undone as one."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt.control import undo, writing
from toolbelt.control.access import bulk, switches, tools_config
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import surfaces
from toolbelt.store import clock

pytestmark = pytest.mark.usefixtures("stored")

KEYS = ("reading", "clock")


def test_a_plan_says_what_changes_for_whom_and_how_many_are_so_already() -> None:
    plan = bulk.plan(["ada", "bob"], ["reading"], True)

    assert [part.agent for part in plan.parts] == ["ada"]
    assert (plan.changes, plan.same) == (1, 1)
    assert plan.parts[0].effect.added == ("git__log", "git__status")
    assert plan.seen == {"ada": {"reading": None}}
    assert tools_config.read("ada") == {}


def test_what_was_planned_is_done_in_one_act_and_undone_as_one(operator: writing.Write) -> None:
    plan = bulk.plan(["ada", "bob"], KEYS, False)
    change = bulk.apply(operator.replace(reason="quiet"), plan.seen, False)

    assert change.after == {"ada": 2, "bob": 2}
    assert tools_config.read("bob") == {"clock": False, "reading": False}
    made = queries.changes(action="switch.set").entries + queries.changes(action="override.set").entries
    assert len({entry.batch for entry in made}) == 1
    assert len(made) == 4

    undo.undo_batch(operator, change.entry or 0)
    assert (tools_config.read("ada"), tools_config.read("bob")) == ({}, {"reading": True})


def test_nothing_is_done_if_one_of_them_is_not_as_it_was_seen(operator: writing.Write) -> None:
    plan = bulk.plan(["ada", "bob"], ["clock"], False)
    switches.override(operator, "bob", "clock", True)

    with pytest.raises(errors.Stale, match="clock for bob"):
        bulk.apply(operator, plan.seen, False)
    assert tools_config.read("ada") == {}


def test_what_ends_is_not_so_already_and_an_end_that_came_since_is_a_change(operator: writing.Write) -> None:
    soon = clock.now() + dt.timedelta(hours=2)
    plan = bulk.plan(["ada"], ["clock"], False)
    switches.override(operator, "bob", "clock", True, ends=soon)

    assert bulk.plan(["bob"], ["clock"], True).changes == 1
    of_both = bulk.plan(["ada", "bob"], ["clock"], True)
    bulk.apply(operator, of_both.seen, True)
    assert entries.read("agent", "bob").get("ends") is None
    with pytest.raises(errors.Stale, match="clock for ada"):
        bulk.apply(operator, plan.seen, False)

    for_good = bulk.plan(["bob"], ["clock"], False)
    switches.override(operator, "bob", "clock", None)
    switches.override(operator, "bob", "clock", True, ends=soon)
    with pytest.raises(errors.Stale, match="clock for bob"):
        bulk.apply(operator, for_good.seen, False)


def test_a_budget_that_refuses_is_named_in_the_plan_and_stops_the_whole_act(operator: writing.Write) -> None:
    entries.change(operator, "agent", "ada", {"budget": {"max_tools": 1, "on_exceed": "refuse"}})
    entries.create(operator, "agent", {"key": "cyd"})
    plan = bulk.plan(["ada", "cyd"], ["reading"], True)

    assert [(part.agent, "budget of ada" in part.refused) for part in plan.refused] == [("ada", True)]
    assert plan.seen == {"cyd": {"reading": None}}
    with pytest.raises(errors.Refused, match="budget of ada"):
        bulk.apply(operator, {"cyd": {"reading": None}, "ada": {"reading": None}}, True)
    assert tools_config.read("cyd") == {}


def test_an_archived_agent_is_left_out_and_the_plan_says_why(operator: writing.Write) -> None:
    entries.change(operator.replace(confirm=True), "agent", "ada", {"archived": True})
    plan = bulk.plan(["ada", "bob"], ["clock"], False)

    assert [part.agent for part in plan.possible] == ["bob"]
    assert [part.refused.partition(" and ")[0] for part in plan.refused] == ["ada is archived"]


def test_what_has_to_be_confirmed_is_collected_over_all_agents(operator: writing.Write) -> None:
    entries.change(operator.replace(confirm=True), "agent", "bob", {"protected": True})
    plan = bulk.plan(["ada", "bob"], ["pushing"], True)

    with pytest.raises(errors.ConfirmationRequired) as asked:
        bulk.apply(operator, plan.seen, True)
    assert asked.value.reasons == (
        "ada: Enables destructive tools: git__push.",
        "bob is protected.",
        "bob: Enables destructive tools: git__push.",
    )
    assert tools_config.read("ada") == {}
    bulk.apply(operator.replace(confirm=True), plan.seen, True)
    assert tools_config.read("ada") == {"pushing": True}


def test_it_may_be_for_a_while(operator: writing.Write) -> None:
    end = clock.now() + dt.timedelta(hours=1)
    bulk.apply(operator, bulk.plan(["ada"], ["reading"], True).seen, True, ends=end)

    with clock.stopped(end):
        assert [tool.name for tool in surfaces.ask("ada").tools] == ["clock"]


def test_a_plan_for_many_agents_costs_no_more_queries_than_one_for_two(operator: writing.Write) -> None:
    names = ["ada", "bob"]
    bulk.plan(names, KEYS, False)
    with CaptureQueriesContext(connection) as few:
        bulk.plan(names, KEYS, False)
    for number in range(12):
        entries.create(operator, "agent", {"key": f"agent{number}"})
        names.append(f"agent{number}")
    with CaptureQueriesContext(connection) as many:
        bulk.plan(names, KEYS, False)
    assert len(many) == len(few) <= 10


@pytest.mark.parametrize(("names", "keys"), [(["nobody"], ["reading"]), (["ada"], ["nothing"])])
def test_a_name_that_nothing_has_is_named(names: list[str], keys: list[str]) -> None:
    with pytest.raises(errors.NotFound):
        bulk.plan(names, keys, True)


def test_more_than_anybody_can_overlook_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_CHANGES", 3)
    with pytest.raises(errors.Refused, match="narrow the filter"):
        bulk.plan(["ada", "bob"], KEYS, True)
