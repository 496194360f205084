"""Tests that the demo's month of activity is plausible, reproducible, and separate from real data."""

from __future__ import annotations

import datetime as dt
import io
from collections import Counter
from typing import Any

import pytest
from django.core import management
from django.core.management import CommandError
from django.utils import timezone

from tests import factories
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.core import errors
from toolbelt.management import demo_month

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 18, 15, 30, tzinfo=dt.UTC)


@pytest.fixture
def small() -> None:
    """Store a small stand-in for the demo: two of its agents, with toolkits to switch."""
    tools = [factories.tool(f"tool_{number}", default_on=number < 6, tokens=50) for number in range(9)]
    for number in range(3):
        factories.toolkit(f"kit_{number}", *tools[3 * number : 3 * number + 3])
    factories.agent("assistant")
    kiosk = factories.agent("kiosk", loadout="full")
    models.AgentToolkit.objects.create(
        agent=kiosk, toolkit=models.Toolkit.objects.get(key="kit_2"), position=0
    )


def make(**options: Any) -> demo_month.Activity:
    return demo_month.make(**{"days": 30, "size": 40, "seed": 7, "now": NOW, **options})


def events() -> list[tuple[Any, ...]]:
    changes = models.AuditEntry.objects.order_by("id")
    calls = models.CallRecord.objects.order_by("id")
    return [
        *changes.values_list("at", "actor", "via", "action", "subject_key", "key", "reason"),
        # How long a refusal takes is measured.
        *calls.values_list(
            "at", "agent", "tool", "outcome", "reason", "result_bytes", "arguments_digest", "session"
        ),
    ]


def test_a_month_has_several_people_actions_and_outcomes(small: None) -> None:
    made = make()
    assert (made.changes, made.calls) == (
        models.AuditEntry.objects.count(),
        models.CallRecord.objects.count(),
    )
    assert made.changes > 40
    assert made.calls > 500
    changes, calls = models.AuditEntry.objects.all(), models.CallRecord.objects.all()
    assert len(set(changes.values_list("actor", flat=True))) >= 3
    assert len(set(changes.values_list("action", flat=True))) >= 4
    assert changes.exclude(undoes=None).exists()
    outcomes = Counter(calls.values_list("outcome", flat=True))
    assert outcomes["ok"] > 0.85 * made.calls
    assert len(outcomes) >= 4
    first = NOW - dt.timedelta(days=30)
    assert not [event for event in events() if not first < event[0] < NOW]
    answers = models.ContextUse.objects.values_list("answers", flat=True)
    assert sum(answers) == made.calls


def test_every_call_is_decided_by_what_is_configured_at_its_time(small: None) -> None:
    models.Agent.objects.filter(key="kiosk").update(loadout="", subagent_kinds=["explore"])
    make()
    calls, log = models.CallRecord.objects, models.AuditEntry.objects
    assert not calls.filter(revision=None).exists()
    assert not log.filter(revision=None).exists()
    assert calls.filter(dispatched=True).exists()
    assert calls.filter(subagent="explore").exists()
    assert calls.filter(tool="load_tools", outcome="ok").exists()
    assert calls.filter(reason="loaded", state__in=models.SessionState.objects.values("digest")).exists()
    # A call that a switch denies is made between the two changes of the switch.
    denied = calls.filter(reason="switch-off").first()
    assert denied is not None
    before = log.filter(subject_key=denied.agent, revision__lte=denied.revision).latest("revision")
    assert before.after is False
    assert before.at <= denied.at
    after = log.filter(subject_key=denied.agent, revision__gt=denied.revision).earliest("revision")
    assert after.at >= denied.at


def test_a_month_keeps_the_configuration_and_has_changes_to_undo_today(small: None) -> None:
    before = belts.export()
    make()
    assert belts.export() == before
    today = models.AuditEntry.objects.filter(at__gte=NOW.replace(hour=0, minute=0))
    assert today.filter(undoes=None).count() >= 3


def test_changes_that_a_budget_would_not_let_be_undone_are_left_out(small: None) -> None:
    models.Agent.objects.update(max_tools=4, on_exceed="refuse")
    before = belts.export()
    for seed in range(2):
        make(seed=seed, force=True, size=0, days=16)
    assert belts.export() == before


def test_the_generated_entries_are_in_chronological_order(small: None) -> None:
    make()
    for rows in (models.AuditEntry, models.CallRecord):
        at = list(rows.objects.order_by("id").values_list("at", flat=True))
        assert at == sorted(at)


def test_the_same_seed_makes_the_same_month(small: None) -> None:
    make(days=6)
    first = events()
    models.CallRecord.objects.all().delete()
    models.AuditEntry.objects.all()._raw_delete("default")
    make(days=6)
    assert events() == first
    make(seed=8, force=True, days=6)
    assert events()[: len(first)] != first


def test_generating_activity_is_refused_if_there_is_real_data(small: None) -> None:
    make(days=2)
    with pytest.raises(errors.Refused, match="already has calls or changes"):
        make()
    models.CallRecord.objects.all().delete()
    factories.agent("mine")
    with pytest.raises(errors.Refused, match="It has the agent 'mine'"):
        make()
    assert make(force=True, days=2).calls


def test_generating_activity_is_refused_without_the_demo() -> None:
    with pytest.raises(errors.Refused, match="It has no agent"):
        make()


def test_the_command_prints_what_it_generated(small: None) -> None:
    out = io.StringIO()
    management.call_command("demo_activity", days=3, size=20, seed=1, stdout=out)
    assert out.getvalue().startswith("Generated ")
    assert out.getvalue().endswith("in 3 days.\n")
    assert models.CallRecord.objects.filter(at__lte=timezone.now()).exists()
    with pytest.raises(CommandError, match="already has calls or changes"):
        management.call_command("demo_activity")


@pytest.mark.parametrize("options", [{"days": 0}, {"days": 400}, {"size": -1}])
def test_invalid_options_are_refused(small: None, options: dict[str, int]) -> None:
    with pytest.raises(CommandError, match=f"--{next(iter(options))} must be from"):
        management.call_command("demo_activity", **options)


def test_the_known_demo_agents_match_the_fixture(request: pytest.FixtureRequest) -> None:
    text = (request.config.rootpath / "fixtures" / "demo.yaml").read_text()
    entries = text.split("- model: ")
    keys = {
        line.split(":")[1].strip()
        for entry in entries
        if entry.startswith("toolbelt.agent\n")
        for line in entry.splitlines()
        if line.strip().startswith("key:")
    }
    assert keys == demo_month.AGENTS
