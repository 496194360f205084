"""Tests that bulk changes are shown first, applied as shown or not at all, and undone together."""

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


def test_a_plan_shows_the_changes_by_agent_and_counts_the_unchanged() -> None:
    plan = bulk.plan(["ada", "bob"], ["reading"], True)

    assert [part.agent for part in plan.parts] == ["ada"]
    assert (plan.changes, plan.unchanged) == (1, 1)
    assert plan.parts[0].effect.added == ("git__log", "git__status")
    assert plan.seen == {"ada": {"reading": None}}
    assert tools_config.read("ada") == {}


def test_a_plan_is_applied_as_one_batch_that_is_undone_together(operator: writing.Write) -> None:
    plan = bulk.plan(["ada", "bob"], KEYS, False)
    change = bulk.apply(operator.replace(reason="quiet"), plan.seen, False)

    assert change.after == {"ada": 2, "bob": 2}
    assert tools_config.read("bob") == {"clock": False, "reading": False}
    recorded = queries.changes(action="switch.set").entries + queries.changes(action="override.set").entries
    assert len({entry.batch for entry in recorded}) == 1
    assert len(recorded) == 4

    undo.undo_batch(operator, change.entry or 0)
    assert (tools_config.read("ada"), tools_config.read("bob")) == ({}, {"reading": True})


def test_nothing_is_applied_if_an_agent_changed_since_the_plan(operator: writing.Write) -> None:
    plan = bulk.plan(["ada", "bob"], ["clock"], False)
    switches.override(operator, "bob", "clock", True)

    with pytest.raises(errors.Stale, match="clock for bob"):
        bulk.apply(operator, plan.seen, False)
    assert tools_config.read("ada") == {}


def test_a_timed_switch_counts_as_a_change_and_makes_older_plans_stale(operator: writing.Write) -> None:
    soon = clock.now() + dt.timedelta(hours=2)
    plan = bulk.plan(["ada"], ["clock"], False)
    switches.override(operator, "bob", "clock", True, ends=soon)

    assert bulk.plan(["bob"], ["clock"], True).changes == 1
    both = bulk.plan(["ada", "bob"], ["clock"], True)
    bulk.apply(operator, both.seen, True)
    assert entries.read("agent", "bob").get("ends") is None
    with pytest.raises(errors.Stale, match="clock for ada"):
        bulk.apply(operator, plan.seen, False)

    permanent = bulk.plan(["bob"], ["clock"], False)
    switches.override(operator, "bob", "clock", None)
    switches.override(operator, "bob", "clock", True, ends=soon)
    with pytest.raises(errors.Stale, match="clock for bob"):
        bulk.apply(operator, permanent.seen, False)


def test_a_refusing_budget_is_named_in_the_plan_and_prevents_the_whole_change(
    operator: writing.Write,
) -> None:
    entries.change(operator, "agent", "ada", {"budget": {"max_tools": 1, "on_exceed": "refuse"}})
    entries.create(operator, "agent", {"key": "cyd"})
    plan = bulk.plan(["ada", "cyd"], ["reading"], True)

    assert [(part.agent, "budget of ada" in part.refused) for part in plan.refused] == [("ada", True)]
    assert plan.seen == {"cyd": {"reading": None}}
    with pytest.raises(errors.Refused, match="budget of ada"):
        bulk.apply(operator, {"cyd": {"reading": None}, "ada": {"reading": None}}, True)
    assert tools_config.read("cyd") == {}


def test_an_archived_agent_is_left_out_of_the_plan_with_the_reason(operator: writing.Write) -> None:
    entries.change(operator.replace(confirm=True), "agent", "ada", {"archived": True})
    plan = bulk.plan(["ada", "bob"], ["clock"], False)

    assert [part.agent for part in plan.possible] == ["bob"]
    assert [part.refused.partition(" and ")[0] for part in plan.refused] == ["ada is archived"]


def test_confirmation_lists_the_reasons_of_all_agents(operator: writing.Write) -> None:
    entries.change(operator.replace(confirm=True), "agent", "bob", {"protected": True})
    plan = bulk.plan(["ada", "bob"], ["pushing"], True)

    with pytest.raises(errors.ConfirmationRequired) as raised:
        bulk.apply(operator, plan.seen, True)
    assert raised.value.reasons == (
        "ada: Enables destructive tools: git__push.",
        "bob is protected.",
        "bob: Enables destructive tools: git__push.",
    )
    assert tools_config.read("ada") == {}
    bulk.apply(operator.replace(confirm=True), plan.seen, True)
    assert tools_config.read("ada") == {"pushing": True}


def test_a_bulk_change_can_expire(operator: writing.Write) -> None:
    end = clock.now() + dt.timedelta(hours=1)
    bulk.apply(operator, bulk.plan(["ada"], ["reading"], True).seen, True, ends=end)

    with clock.stopped(end):
        assert [tool.name for tool in surfaces.ask("ada").tools] == ["clock"]


def test_a_plan_for_many_agents_takes_as_many_queries_as_one_for_two(operator: writing.Write) -> None:
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
def test_an_unknown_agent_or_key_is_not_found(names: list[str], keys: list[str]) -> None:
    with pytest.raises(errors.NotFound):
        bulk.plan(names, keys, True)


def test_too_many_changes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_CHANGES", 3)
    with pytest.raises(errors.Refused, match="narrow the filter"):
        bulk.plan(["ada", "bob"], KEYS, True)
