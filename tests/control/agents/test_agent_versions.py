"""Tests that an agent's state at any time in the audit log can be rebuilt."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.control.conftest import BELT
from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.access import switches, tools_config
from toolbelt.control.agents import agent_versions, agents
from toolbelt.control.catalog import blocking, entries
from toolbelt.control.config import belts
from toolbelt.control.people import roles
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.store import clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stored")]


def current_entry(agent: str = "bob") -> dict[str, Any]:
    return entries.read("agent", agent)


def newest() -> int:
    return models.AuditEntry.objects.latest("id").pk


def test_every_former_state_can_be_rebuilt(operator: writing.Write) -> None:
    changes: list[Callable[[], object]] = [
        lambda: switches.flip(operator, "bob", "pushing", False),
        lambda: switches.override(operator, "bob", "clock", True),
        lambda: agents.equip(operator.replace(confirm=True), "bob", "developer"),
        lambda: agents.edit(
            operator.replace(confirm=True),
            "bob",
            {"allowed_toolkits": ["reading", "pushing"], "initial_toolkits": ["reading"]},
        ),
        lambda: tools_config.put(
            operator.replace(confirm=True), "bob", {"pushing": True, "git__push": False}
        ),
        lambda: agents.edit(operator, "bob", {"role": "Reads", "protected": True}),
        lambda: undo.undo_batch(operator, newest()),
        lambda: entries.change(
            operator.replace(confirm=True), "agent", "bob", {"tools": ["clock"], "tools_config": None}
        ),
        lambda: entries.remove(operator, "agent", "bob"),
        lambda: entries.create(operator, "agent", {"key": "bob", "title": "Again"}),
        lambda: agents.equip(operator.replace(confirm=True), "bob", "minimal"),
    ]
    versions = [(newest(), current_entry())]
    for change in changes:
        change()
        exists = "bob" in queries.agent_keys()
        versions.append((newest(), current_entry() if exists else {}))
    for entry_id, entry in versions:
        if entry:
            version = agent_versions.rebuild("bob", entry_id)
            assert (version.entry, version.gaps, version.missing) == (entry, (), ())
        else:
            with pytest.raises(errors.NotFound, match="no agent at that time named 'bob'"):
                agent_versions.rebuild("bob", entry_id)


def test_a_version_is_rebuilt_for_a_time_between_two_changes(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "pushing", False)
    between = timezone.now()
    switches.flip(operator.replace(confirm=True), "bob", "pushing", True)
    version = agent_versions.rebuild("bob", between)
    assert version.entry["tools_config"] == {"pushing": False, "reading": True}
    assert version.last is not None
    assert version.last.after is False
    assert agent_versions.rebuild("bob", timezone.now()).entry == current_entry()


def test_an_agent_is_not_found_before_its_creation() -> None:
    with pytest.raises(errors.NotFound):
        agent_versions.rebuild("bob", timezone.now() - dt.timedelta(days=1))
    with pytest.raises(errors.NotFound, match="no change named"):
        agent_versions.rebuild("bob", 10**30)


def test_a_version_inside_a_batch_includes_the_whole_batch(operator: writing.Write) -> None:
    tools_config.change(operator, "bob", {"pushing": False, "verbose": True, "reading": None})
    inside = models.AuditEntry.objects.latest("id").pk - 1
    assert agent_versions.rebuild("bob", inside).entry == current_entry()


def test_settings_that_the_audit_log_misses_are_reported_as_gaps(operator: writing.Write) -> None:
    before = newest()
    switches.flip(operator, "bob", "pushing", False)
    models.ToolkitSwitch.objects.filter(toolkit__key="pushing").update(on=True)
    version = agent_versions.rebuild("bob", before)
    assert version.gaps == ("pushing",)
    assert version.entry["tools_config"] == {"reading": True}


def test_a_removed_toolkit_is_reported_and_part_of_the_version(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "verbose", False)
    earlier = newest()
    switches.flip(operator, "bob", "verbose", None)
    entries.remove(operator, "toolkit", "verbose")
    version = agent_versions.rebuild("bob", earlier)
    assert version.missing == ("verbose",)
    assert version.entry["tools_config"] == {"reading": True, "verbose": False}
    assert version.agent.switches == {"reading": True, "verbose": False}
    assert [member.tool for member in version.catalog.toolkits["verbose"].members] == ["git__log"]


def test_an_agent_without_a_creation_entry_is_rebuilt_from_its_current_state(operator: writing.Write) -> None:
    models.Agent.objects.create(key="old", role="From the beginning")
    switches.flip(operator, "old", "reading", True)
    version = agent_versions.rebuild("old", timezone.now() - dt.timedelta(days=9))
    assert (version.entry, version.last) == ({"key": "old", "role": "From the beginning"}, None)


def test_a_former_version_is_resolved_in_the_catalog_of_its_time(operator: writing.Write) -> None:
    entries.change(operator, "toolkit", "reading", {"policy": "Old words."})
    earlier = newest()
    switches.flip(operator, "bob", "reading", False)
    entries.change(operator, "toolkit", "reading", {"policy": "New words.", "members": ["git__log"]})
    blocking.set_blocked(operator.replace(confirm=True), kind="tool", name="git__status", on=True)
    stored = belts.export()
    answer = agent_versions.surface_of(agent_versions.rebuild("bob", earlier))
    assert [tool.name for tool in answer.tools] == ["clock", "git__log", "git__status"]
    assert "Old words." in answer.policy.text
    now = agent_versions.surface_of(agent_versions.rebuild("bob", newest()))
    assert [tool.name for tool in now.tools] == ["clock"]
    assert belts.export() == stored
    assert [agent["key"] for agent in BELT["agents"]] == ["ada", "bob"]


def test_a_block_that_has_ended_holds_in_a_version_before_its_end(operator: writing.Write) -> None:
    before = timezone.now()
    ends = before + dt.timedelta(minutes=5)
    blocking.set_blocked(operator.replace(confirm=True), kind="tool", name="git__log", on=True, ends=ends)
    blocked = newest()
    switches.flip(operator.replace(confirm=True), "bob", "pushing", True)
    with clock.stopped(ends + dt.timedelta(minutes=1)):
        for moment, is_on in ((before, True), (blocked, False), (ends, True), (newest(), False)):
            surface = agent_versions.surface_of(agent_versions.rebuild("bob", moment))
            assert ("git__log" in surface.because and "git__log" in surface.resolution.active) is is_on, (
                moment
            )


def test_what_was_written_around_the_log_makes_older_versions_uncertain(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "pushing", False)
    earlier = newest()
    models.Agent.objects.filter(key="bob").update(role="Reads")
    assert agent_versions.rebuild("bob", earlier).is_uncertain
    entries.change(operator, "agent", "ada", {"role": "Writes"})
    assert agent_versions.rebuild("bob", earlier).is_uncertain
    assert not agent_versions.rebuild("bob", newest()).is_uncertain
    assert not agent_versions.rebuild("ada", earlier).is_uncertain


def test_an_agents_operators_are_not_part_of_its_version(
    operator: writing.Write, django_user_model: Any
) -> None:
    django_user_model.objects.create_user("anna")
    switches.flip(operator, "bob", "pushing", False)
    flipped = newest()
    roles.set_operators(operator, "bob", ["anna"])
    version = agent_versions.rebuild("bob", flipped)
    assert version.entry == current_entry()
    assert not version.gaps
