"""Differences between two agents are listed, and copied as shown or not at all."""

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
def rich(stored: None, operator: writing.Write) -> None:
    """Create settings of ada to copy."""
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


@pytest.mark.usefixtures("rich")
def test_only_differences_are_listed_and_what_comes_of_them() -> None:
    found = comparing.compare("ada", "bob")
    assert ids(found) == [
        "setting:loadout",
        "switch:clock",
        "switch:pushing",
        "switch:reading",
        "always-on:clock",
        "loadable:reading",
    ]
    said = {one.tool.key: (one.a.state, one.a.code, one.b.state, one.b.code) for one in found.outcomes}
    assert said == {
        "clock": ("denied", "override-off", "active", "default-on"),
        "git__push": ("active", "switch-on", "dormant", "not-granted"),
    }
    assert comparing.compare("ada", "ada").rows == ()


@pytest.mark.usefixtures("rich")
def test_an_agent_is_compared_with_a_loadout(operator: writing.Write) -> None:
    found = comparing.compare("loadout:minimal", "ada")
    assert [(row.id, row.a) for row in found.rows][:2] == [
        ("setting:loadout", "minimal"),
        ("switch:clock", None),
    ]
    assert found.b.is_now
    assert not found.a.is_now
    agents.edit(operator.replace(confirm=True), "ada", {"loadout": None, "kind": "plan"})
    assert "setting:loadout" not in ids(comparing.compare("loadout:Developer", "ada"))
    with pytest.raises(errors.NotFound, match="no loadout named 'nope'"):
        comparing.compare("loadout:nope", "ada")


@pytest.mark.usefixtures("rich")
def test_a_plan_says_what_comes_of_it_and_does_nothing() -> None:
    before = models.AuditEntry.objects.count()
    plan = copying.plan("ada", "bob", ["switch:pushing", "switch:reading"])
    assert plan.effect.added == ("git__push",)
    assert plan.effect.removed == ("git__log", "git__status")
    assert plan.reasons == ("Enables destructive tools: git__push.",)
    assert models.AuditEntry.objects.count() == before


@pytest.mark.usefixtures("rich")
def test_what_is_copied_is_one_act_that_is_undone_as_one(operator: writing.Write) -> None:
    before = entries.read("agent", "bob")
    rows = ["setting:loadout", "switch:clock", "always-on:clock", "loadable:reading"]
    plan = copying.plan("ada", "bob", rows)
    change = copying.copy(operator, "ada", "bob", rows, seen=plan.seen)
    assert ids(comparing.compare("ada", "bob")) == ["switch:pushing", "switch:reading"]
    assert change.effect is not None
    assert (change.effect.added, change.effect.removed) == (plan.effect.added, plan.effect.removed)
    act = models.AuditEntry.objects.filter(batch=models.AuditEntry.objects.latest("id").batch)
    assert sorted(act.values_list("action", "reason")) == [
        ("agent.change", "Copied from ada."),
        ("override.set", "Copied from ada."),
    ]
    assert change.entry is not None
    undo.undo_batch(operator, change.entry)
    assert entries.read("agent", "bob") == before


@pytest.mark.usefixtures("rich")
@pytest.mark.parametrize("side", ["ada", "bob"])
def test_what_is_not_as_it_was_shown_is_not_copied(operator: writing.Write, side: str) -> None:
    rows = ["switch:clock", "switch:pushing"]
    seen = copying.plan("ada", "bob", rows).seen
    switches.override(operator.replace(confirm=True), side, "clock", True)
    before = entries.read("agent", "bob")
    with pytest.raises(errors.Stale):
        copying.copy(operator, "ada", "bob", rows, seen=seen)
    assert entries.read("agent", "bob") == before
    # Another change beside it does not conflict.
    switches.override(operator.replace(confirm=True), side, "clock", None if side == "bob" else False)
    switches.flip(operator, side, "verbose", False)
    copying.copy(operator, "ada", "bob", rows, seen=seen)
    assert entries.read("agent", "bob")["tools_config"]["pushing"] is True


def test_an_agent_goes_back_to_what_it_was(operator: writing.Write) -> None:
    was = entries.read("agent", "bob")
    then = models.AuditEntry.objects.latest("id").pk
    agents.edit(operator.replace(confirm=True), "bob", {"role": "Pushes", "loadout": "full"})
    switches.flip(operator, "bob", "reading", False)
    a = comparing.format_version("bob", then)
    rows = ids(comparing.compare(a, "bob"))
    assert rows == ["setting:role", "setting:loadout", "switch:reading"]
    copying.copy(operator, a, "bob", rows, seen=copying.plan(a, "bob", rows).seen)
    assert entries.read("agent", "bob") == was
    assert agent_versions.rebuild("bob", then).entry == was
    assert models.AuditEntry.objects.latest("id").reason == f"Copied from bob after change {then}."


def test_what_is_gone_cannot_come_back(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "verbose", False)
    then = models.AuditEntry.objects.latest("id").pk
    switches.flip(operator, "bob", "verbose", None)
    entries.remove(operator, "toolkit", "verbose")
    found = comparing.compare(f"bob@{then}", "bob")
    assert found.lost == {"switch:verbose"}
    with pytest.raises(errors.Invalid, match="no longer exists"):
        copying.plan(f"bob@{then}", "bob", ["switch:verbose"])


def test_a_budget_that_refuses_refuses_a_copy(operator: writing.Write) -> None:
    agents.edit(operator, "ada", {"budget": {"max_tools": 1, "on_exceed": "refuse"}})
    rows = ["switch:reading"]
    with pytest.raises(errors.Refused, match="The budget of ada is 1 tools"):
        copying.plan("bob", "ada", rows)


def test_a_conflict_of_options_is_refused_with_its_path(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "verbose", True)
    with pytest.raises(errors.Invalid, match="git__log comes from switch 'reading' with no options"):
        copying.plan("ada", "bob", ["switch:verbose"])


@pytest.mark.parametrize("b", ["loadout:minimal", "bob@1"])
def test_only_an_agent_as_it_is_can_be_copied_to(b: str) -> None:
    first = models.AuditEntry.objects.filter(subject_key="bob").latest("id").pk
    with pytest.raises(errors.Refused, match="must be an agent as it is now"):
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
def test_nonsense_is_told(a: str, error: type[errors.ToolbeltError]) -> None:
    with pytest.raises(error):
        comparing.compare(a, "bob")


@pytest.mark.usefixtures("rich")
def test_comparing_asks_the_same_however_much_there_is(operator: writing.Write) -> None:
    then = models.AuditEntry.objects.filter(subject_key="bob").latest("id").pk

    def asked() -> int:
        with CaptureQueriesContext(connection) as found:
            comparing.compare(f"bob@{then}", "ada")
        return len(found)

    few = asked()
    for on in (True, False) * 4:
        switches.flip(operator.replace(confirm=True), "bob", "pushing", on)
    comparing.compare(f"bob@{then}", "ada")
    assert asked() <= few <= 15
