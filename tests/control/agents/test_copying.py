"""Tests that differences between two agents are listed, and copied as shown or not at all."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.access import switches
from toolbelt.control.agents import agent_versions, agents, comparing, copying
from toolbelt.control.catalog import entries
from toolbelt.core import errors

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stored")]


@pytest.fixture
def settings_to_copy(stored: None, operator: writing.Write) -> None:
    """Store settings of ada that differ from bob's."""
    changes = {
        "title": "Ada",
        "loadout": "developer",
        "tools": [{"tool": "clock", "options": {"zone": 1}}],
        "tools_config": {"pushing": True, "clock": False},
        "allowed_toolkits": ["reading"],
    }
    entries.change(operator.replace(confirm=True), "agent", "ada", changes)


def ids(comparison: comparing.Comparison) -> list[str]:
    return [row.id for row in comparison.rows]


@pytest.mark.usefixtures("settings_to_copy")
def test_a_comparison_lists_only_differences_and_their_outcomes() -> None:
    comparison = comparing.compare("ada", "bob")
    assert ids(comparison) == [
        "setting:loadout",
        "switch:clock",
        "switch:pushing",
        "switch:reading",
        "always-on:clock",
        "loadable:reading",
    ]
    outcomes = {
        outcome.tool.key: (outcome.a.state, outcome.a.code, outcome.b.state, outcome.b.code)
        for outcome in comparison.outcomes
    }
    assert outcomes == {
        "clock": ("denied", "override-off", "active", "default-on"),
        "git__push": ("active", "switch-on", "dormant", "not-granted"),
    }
    assert comparing.compare("ada", "ada").rows == ()


@pytest.mark.usefixtures("settings_to_copy")
def test_an_agent_is_compared_with_a_loadout(operator: writing.Write) -> None:
    comparison = comparing.compare("loadout:minimal", "ada")
    assert [(row.id, row.a) for row in comparison.rows][:2] == [
        ("setting:loadout", "minimal"),
        ("switch:clock", None),
    ]
    assert comparison.b.is_now
    assert not comparison.a.is_now
    agents.edit(operator.replace(confirm=True), "ada", {"loadout": None, "kind": "plan"})
    assert "setting:loadout" not in ids(comparing.compare("loadout:Developer", "ada"))
    with pytest.raises(errors.NotFound, match="no loadout named 'nope'"):
        comparing.compare("loadout:nope", "ada")


@pytest.mark.usefixtures("settings_to_copy")
def test_a_plan_shows_its_effect_and_changes_nothing() -> None:
    before = models.AuditEntry.objects.count()
    plan = copying.plan("ada", "bob", ["switch:pushing", "switch:reading"])
    assert plan.effect.added == ("git__push",)
    assert plan.effect.removed == ("git__log", "git__status")
    assert plan.reasons == ("Enables destructive tools: git__push.",)
    assert models.AuditEntry.objects.count() == before


@pytest.mark.usefixtures("settings_to_copy")
def test_a_copy_is_one_batch_that_is_undone_together(operator: writing.Write) -> None:
    before = entries.read("agent", "bob")
    rows = ["setting:loadout", "switch:clock", "always-on:clock", "loadable:reading"]
    plan = copying.plan("ada", "bob", rows)
    change = copying.copy(operator, "ada", "bob", rows, seen=plan.seen)
    assert ids(comparing.compare("ada", "bob")) == ["switch:pushing", "switch:reading"]
    assert change.effect is not None
    assert (change.effect.added, change.effect.removed) == (plan.effect.added, plan.effect.removed)
    batch = models.AuditEntry.objects.filter(batch=models.AuditEntry.objects.latest("id").batch)
    assert sorted(batch.values_list("action", "reason")) == [
        ("agent.change", "Copied from ada."),
        ("override.set", "Copied from ada."),
    ]
    assert change.entry is not None
    undo.undo_batch(operator, change.entry)
    assert entries.read("agent", "bob") == before


@pytest.mark.usefixtures("settings_to_copy")
@pytest.mark.parametrize("side", ["ada", "bob"])
def test_a_copy_is_refused_if_either_agent_changed_since_it_was_planned(
    operator: writing.Write, side: str
) -> None:
    rows = ["switch:clock", "switch:pushing"]
    seen = copying.plan("ada", "bob", rows).seen
    switches.override(operator.replace(confirm=True), side, "clock", True)
    before = entries.read("agent", "bob")
    with pytest.raises(errors.Stale):
        copying.copy(operator, "ada", "bob", rows, seen=seen)
    assert entries.read("agent", "bob") == before
    # A change of another key does not conflict.
    switches.override(operator.replace(confirm=True), side, "clock", None if side == "bob" else False)
    switches.flip(operator, side, "verbose", False)
    copying.copy(operator, "ada", "bob", rows, seen=seen)
    assert entries.read("agent", "bob")["tools_config"]["pushing"] is True


def test_copying_a_former_version_restores_the_agent(operator: writing.Write) -> None:
    before = entries.read("agent", "bob")
    earlier = models.AuditEntry.objects.latest("id").pk
    agents.edit(operator.replace(confirm=True), "bob", {"role": "Pushes", "loadout": "full"})
    switches.flip(operator, "bob", "reading", False)
    version = comparing.format_version("bob", earlier)
    rows = ids(comparing.compare(version, "bob"))
    assert rows == ["setting:role", "setting:loadout", "switch:reading"]
    copying.copy(operator, version, "bob", rows, seen=copying.plan(version, "bob", rows).seen)
    assert entries.read("agent", "bob") == before
    assert agent_versions.rebuild("bob", earlier).entry == before
    assert models.AuditEntry.objects.latest("id").reason == f"Copied from bob after change {earlier}."


def test_a_switch_of_a_removed_toolkit_cannot_be_copied(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "verbose", False)
    earlier = models.AuditEntry.objects.latest("id").pk
    switches.flip(operator, "bob", "verbose", None)
    entries.remove(operator, "toolkit", "verbose")
    comparison = comparing.compare(f"bob@{earlier}", "bob")
    assert comparison.not_copyable == {"switch:verbose"}
    with pytest.raises(errors.Invalid, match="no longer exists"):
        copying.plan(f"bob@{earlier}", "bob", ["switch:verbose"])


def test_a_copy_that_exceeds_a_refusing_budget_is_refused(operator: writing.Write) -> None:
    agents.edit(operator, "ada", {"budget": {"max_tools": 1, "on_exceed": "refuse"}})
    rows = ["switch:reading"]
    with pytest.raises(errors.Refused, match="The budget of ada is 1 tool"):
        copying.plan("bob", "ada", rows)


def test_a_copy_that_causes_conflicting_options_is_refused(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "verbose", True)
    with pytest.raises(errors.Invalid, match="git__log comes from switch 'reading' with no options"):
        copying.plan("ada", "bob", ["switch:verbose"])


@pytest.mark.parametrize("b", ["loadout:minimal", "bob@1"])
def test_only_the_current_version_of_an_agent_can_be_copied_to(b: str) -> None:
    first = models.AuditEntry.objects.filter(subject_key="bob").latest("id").pk
    with pytest.raises(errors.Refused, match="must be the current version of an agent"):
        copying.plan("ada", b.replace("@1", f"@{first}"), [])


@pytest.mark.parametrize(
    ("a", "error"),
    [
        ("nobody", errors.NotFound),
        ("a\0b", errors.NotFound),
        ("ada@soon", errors.Invalid),
        ("ada@0001-01-01T00:00", errors.NotFound),
        ("ada@99999999999999999999999", errors.NotFound),
        ("ada@", errors.Invalid),
        ("", errors.NotFound),
    ],
)
def test_comparing_an_invalid_side_raises_an_error(a: str, error: type[errors.ToolbeltError]) -> None:
    with pytest.raises(error):
        comparing.compare(a, "bob")


@pytest.mark.usefixtures("settings_to_copy")
def test_comparing_takes_a_constant_number_of_queries(operator: writing.Write) -> None:
    earlier = models.AuditEntry.objects.filter(subject_key="bob").latest("id").pk

    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            comparing.compare(f"bob@{earlier}", "ada")
        return len(queries)

    few = count_queries()
    for on in (True, False) * 4:
        switches.flip(operator.replace(confirm=True), "bob", "pushing", on)
    comparing.compare(f"bob@{earlier}", "ada")
    assert count_queries() <= few <= 26
