"""Tests that the demo has examples of what operators meet: items that need attention, failed calls, varied agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django import test
from django.core.management import call_command

from tests import demo_plugins, fast_fixtures
from toolbelt.control import undo
from toolbelt.control.agents import call_approvals
from toolbelt.control.reports import attention, error_spikes, queries, usage
from toolbelt.control.servers import approvals, client_plugins
from toolbelt.core import errors
from toolbelt.runtime import plugins
from toolbelt.store import snapshots
from toolbelt.testing import OPERATOR


@pytest.fixture
def demo(
    transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Set up the demo as its command does, with a short history."""
    plugins.stop()
    demo_plugins.use(settings, monkeypatch, tmp_path)

    def store() -> None:
        fast_fixtures.demo()
        call_command("demo_activity", days=1, size=10, verbosity=0)

    fast_fixtures.stored("the demo shows", store)
    yield
    plugins.stop()
    snapshots.forget()


def test_the_declaration_of_the_help_desk_is_by_its_program_and_cannot_be_undone(demo: None) -> None:
    changes = queries.changes(about="helpdesk__refund_order").entries
    declared = next(change for change in changes if change.subject_kind == "tool")
    assert (declared.actor, declared.actor_kind, declared.asked_by) == (
        "helpdesk",
        "program",
        "agent:support-desk",
    )
    assert (declared.action, declared.is_fact) == ("tool.update", True)
    with pytest.raises(errors.Refused, match="approve or reject the tool in the review"):
        undo.undo(OPERATOR, declared.id)


def test_the_demo_has_something_of_each_kind_that_needs_attention(demo: None) -> None:
    needs_attention = attention.load()
    assert {failed.plugin.name: failed.error for failed in needs_attention.failed_plugins} == {
        "github_archived": "Its server exited with code 1: this package is archived, use github/github-mcp-server."
    }
    assert needs_attention.to_review == {"helpdesk": 2, "firecrawl": 1, "github_mcp": 26}
    assert {kind for kind, _ in needs_attention.blocked} == {"tool"}
    assert {
        summary.agent.key: [item.tool for item in stale]
        for summary, stale in needs_attention.ineffective_overrides
    } == {"support-desk": ["helpdesk__send_invoice"]}
    over_budget = [
        summary.agent.key for summary in needs_attention.agents if summary.inventory.spent.is_exceeded
    ]
    assert over_budget == ["planner", "omni"]
    assert [summary.agent.key for summary in needs_attention.agents if summary.inventory.deferred] == [
        "generalist"
    ]
    assert needs_attention.not_running == ()
    assert error_spikes.load() == ()


def test_the_inbox_lists_everything_that_needs_attention(demo: None, admin_client: test.Client) -> None:
    page = admin_client.get("/review/").content.decode()
    for text in (
        "GitHub (archived server) has failed",
        "this package is archived",
        "Planner: over budget",
        "Generalist: deferred by budget",
        "blocked for everyone",
        "1 override has no effect for Support desk",
        "helpdesk__refund_order",
        "helpdesk__export_customers",
    ):
        assert text in page, text


def test_the_review_has_a_new_and_a_changed_declared_tool(demo: None) -> None:
    review = approvals.review("helpdesk")
    assert {change.kind: change.key for change in review.to_review} == {
        "new": "helpdesk__export_customers",
        "changed": "helpdesk__refund_order",
    }
    [flag] = review.of("new")[0].flags
    assert flag.startswith("keeps something from the user")
    differences = {difference.field: difference for difference in review.of("changed")[0].differences}
    assert "-Refund an order, completely or in part, up to 100 euros." in differences["description"].lines[1]
    assert '"maximum": 10000' in differences["input_schema"].old
    assert '"maximum"' not in differences["input_schema"].new
    assert client_plugins.last_declared("helpdesk") is not None


def test_calls_wait_for_a_person_who_has_decided_about_earlier_ones(demo: None) -> None:
    waiting = {(group.tool, len(group.approvals)) for group in call_approvals.pending()}
    assert waiting == {("helpdesk__refund_order", 1), ("github__merge_pull_request", 2)}
    assert {decided.state for decided in call_approvals.settled()} == {"approved", "rejected"}
    assert snapshots.catalog().gate_rules["tickets-without-a-project"].observed


def test_more_activity_can_be_generated(demo: None) -> None:
    call_command("demo_activity", days=1, size=0, force=True, verbosity=0)
    assert len(approvals.review("helpdesk").to_review) == 2
    assert sum(len(group.approvals) for group in call_approvals.pending()) == 3


def test_todays_failed_calls_have_readable_reasons(demo: None) -> None:
    calls = {call.tool: call for call in usage.page(size=50, session="chat-today").calls}
    missing = calls["files__read"]
    assert (missing.agent, missing.outcome) == ("tech-writer", "tool-failed")
    assert "notes/roadmap.md" in missing.error
    assert calls["wikipedia"].outcome == "invalid-arguments"
    assert calls["wikipedia"].error == "The arguments do not fit: action: enum"
    assert calls["slack__slack_post_message"].outcome == "tool-denied"
    assert calls["helpdesk__find_order"].outcome == "ok"


def test_a_tool_is_on_on_request_and_off_for_different_agents(demo: None) -> None:
    accesses = {summary.agent.key: summary.access for summary in queries.summaries()}
    decisions = {
        key: accesses[key].decision("slack__slack_post_message")
        for key in ("assistant", "generalist", "kiosk")
    }
    assert {key: (decision.state, decision.code) for key, decision in decisions.items()} == {
        "assistant": ("active", "switch-on"),
        "generalist": ("discoverable", "budget"),
        "kiosk": ("denied", "switch-off"),
    }


def test_the_audit_log_shows_the_declared_change_briefly(demo: None, admin_client: test.Client) -> None:
    page = admin_client.get("/audit/?person=helpdesk").context["page"]
    [entry] = [entry for day in page.days for entry in day.entries]
    assert entry.subject == "helpdesk__refund_order"
    assert {difference.label for difference in entry.differences} == {
        "description",
        "argument cents.maximum",
    }
