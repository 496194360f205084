"""Tests that a difference from the belt applied last is noticed, with what it is and who made it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control import sample_server
from tests.control.conftest import BELT, operator, stored
from toolbelt import models
from toolbelt.control import self_checks, undo, writing
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.control.config import belt_decisions, belt_effects, belt_plans, belts, drift
from toolbelt.control.doctor import configuration
from toolbelt.store import snapshots

__all__ = ["operator", "stored"]
pytestmark = pytest.mark.usefixtures("stored")
PIPELINE = writing.by("ci", via="command").replace(confirm=True)


def apply(document: Any = BELT, **options: Any) -> None:
    belt_plans.apply(PIPELINE, document, name="belt.yaml", **options)


def found() -> list[str]:
    drifted = drift.find()
    assert drifted is not None
    return [drift.line(difference) for difference in drifted.differences]


def test_without_an_applied_belt_there_is_no_drift(operator: writing.Write) -> None:
    belts.import_(operator, BELT)
    assert drift.find() is None
    assert [*configuration.examine(self_checks.current())] == []


def test_the_applied_belt_is_stored_with_its_name_digest_time_and_actor() -> None:
    apply()
    drifted = drift.find()
    assert drifted is not None
    applied = drifted.applied
    assert (applied.name, applied.actor, applied.prunes) == ("belt.yaml", "ci", False)
    assert applied.digest == belt_effects.digest(BELT)
    assert drifted.differences == ()


def test_a_flip_is_drift_with_the_switch_and_who_made_it(operator: writing.Write) -> None:
    apply()
    switches.flip(operator, "bob", "reading", False)
    assert found() == ["agent bob: reading, changed by olive"]
    [finding] = configuration.examine(self_checks.current())
    assert (finding.code, finding.level) == ("belt-drift", "note")
    assert finding.message == (
        "1 entry differs from the belt applied last, belt.yaml: agent bob: reading, changed by olive."
    )

    switches.flip(operator, "bob", "reading", True)
    assert found() == []


def test_a_gate_rule_that_is_only_observed_from_now_on_is_drift(operator: writing.Write) -> None:
    apply({**BELT, "gate_rules": [{"key": "careful", "when": {"force": {"const": True}}}]})
    entries.change(operator, "gate_rule", "careful", {"observed": True})
    assert found() == ["rule careful: observed, changed by olive"]


def test_every_kind_of_entry_can_drift() -> None:
    entries_ = drift._entries({}, snapshots.catalog(), ())
    assert entries_.keys() == set(belts.SECTIONS.values())


def test_drift_names_every_field_and_everyone_who_changed_them(operator: writing.Write) -> None:
    apply()
    entries.change(operator, "toolkit", "reading", {"policy": "Look."})
    other = writing.by("oscar", via="api")
    entries.change(other, "toolkit", "reading", {"title": "Reading"})
    entries.change(other, "tool", "clock", {"description": "Tells the time."})
    assert found() == [
        "tool clock: description, changed by oscar",
        "toolkit reading: policy, title, changed by olive, oscar",
    ]


def test_a_removed_entry_is_drift_and_an_entry_of_others_is_none(operator: writing.Write) -> None:
    apply({"toolkits": BELT["toolkits"]})
    entries.remove(operator, "toolkit", "verbose")
    entries.put(operator, "toolkit", {"key": "own"})
    entries.change(operator, "agent", "ada", {"title": "Ada"})
    assert found() == ["toolkit verbose: removed by olive"]


def test_after_pruning_a_new_agent_is_drift(operator: writing.Write) -> None:
    apply(prune=True)
    entries.create(operator, "agent", {"key": "eve"})
    entries.create(operator, "agent", {"key": "old"})
    agents.archive(operator.replace(confirm=True), "old", True)
    assert found() == ["agent eve: created by olive"]


def test_only_the_sections_that_were_applied_drift(operator: writing.Write) -> None:
    apply(only=["agents"])
    entries.change(operator, "toolkit", "reading", {"policy": "Look."})
    assert found() == []


def test_undoing_the_application_is_drift(operator: writing.Write) -> None:
    belt_plans.apply(PIPELINE, {"agents": [{"key": "ada", "title": "Ada"}]})
    last = models.AuditEntry.objects.order_by("-id").first()
    assert last is not None
    undo.undo(operator, last.pk)
    assert found() == ["agent ada: title, changed by olive"]


def test_what_a_server_lists_is_no_drift_and_a_review_is(operator: writing.Write) -> None:
    sample_server.add()
    sample_server.record(sample_server.READ)
    sample_server.approve_all()
    apply(belt_decisions.export())

    sample_server.record({**sample_server.READ, "description": "Read any file."})
    assert found() == []

    sample_server.approve_all()
    [line] = found()
    assert line.startswith("tool files__read: ")
    assert "approved" in line
    assert line.endswith("changed by olive")


def test_a_change_that_is_not_in_the_audit_log_is_drift_of_an_unknown_author() -> None:
    apply()
    models.Agent.objects.filter(key="bob").update(title="Bob")
    assert found() == ["agent bob: changed"]
