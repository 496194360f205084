"""Tests that observations are distinguished from decisions."""

from typing import Any

import pytest

from toolbelt.core import facts

VERSION = "sha256:" + 64 * "0"


def is_fact(action: str, before: Any, after: Any, *, reason: str = "", is_undo: bool = False) -> bool:
    return facts.is_fact(action, before, after, reason=reason, is_undo=is_undo)


@pytest.mark.parametrize("action", sorted(facts.ACTIONS))
def test_an_action_of_a_fact_makes_it_a_fact(action: str) -> None:
    assert is_fact(action, {"title": "Old"}, {"title": "New"}, reason="Asked for by olive.")


@pytest.mark.parametrize(
    ("action", "before", "after", "reason"),
    [
        ("tool.change", {"description": "Old."}, {"description": "New."}, facts.LISTED),
        ("tool.create", None, {"key": "files__read"}, facts.LISTED),
        ("tool.change", {"description": "Old."}, {"description": "New."}, facts.DECLARED),
        ("tool.change", {"title": None}, {"title": "Read"}, facts.IN_CODE),
        ("toolkit.change", {"policy": None}, {"policy": "Look."}, facts.IN_CODE),
        ("tool.create", None, {"key": "ask"}, facts.ASKED),
        ("plugin.change", {"not_running": None}, {"not_running": ["kb__add"]}, facts.NOT_RUNNING),
        ("plugin.change", {"status": None}, {"status": "failed"}, "Exited with code 1."),
        ("tool.change", {"retired": None}, {"retired": True}, "Cleaned up."),
        ("tool.change", {"seen": None}, {"seen": False}, ""),
        (
            "tool.change",
            {"description": "Old.", "approved_version": None, "approved": None},
            {"description": "New.", "approved_version": {"description": "Old."}, "approved": VERSION},
            "A reason that an operator gave for the refresh.",
        ),
    ],
)
def test_an_entry_from_before_facts_had_actions_is_recognized(
    action: str, before: Any, after: Any, reason: str
) -> None:
    assert is_fact(action, before, after, reason=reason)


@pytest.mark.parametrize(
    ("action", "before", "after", "reason"),
    [
        ("tool.change", {"description": "Old."}, {"description": "New."}, "Clearer."),
        ("tool.change", {"approved": VERSION, "approved_version": {}}, {"approved": VERSION + "1"}, ""),
        ("tool.change", {"seen": False}, {"seen": None}, ""),
        ("tool.approve", {"seen": False}, {"seen": None, "approved": VERSION}, ""),
        ("tool.retire", {"retired": None}, {"retired": True}, ""),
        ("plugin.change", {"active": None}, {"active": False}, ""),
        ("plugin.change", {"active": False, "status": "failed"}, {"active": None, "status": None}, ""),
        ("agent.change", {"status": "old"}, {"status": "new"}, ""),
        ("switch.set", None, True, facts.LISTED),
    ],
)
def test_a_decision_is_no_fact(action: str, before: Any, after: Any, reason: str) -> None:
    assert not is_fact(action, before, after, reason=reason)


def test_an_undo_of_an_approval_is_a_decision_though_the_tool_is_unseen_again() -> None:
    assert not is_fact("tool.change", {"seen": None}, {"seen": False}, is_undo=True)


def test_the_alias_of_a_plugin_that_is_off_is_a_decision() -> None:
    assert facts.observed("plugin", {"name": "git", "status": "disabled"}) == {}


def test_what_is_decided_is_joined_with_what_is_observed() -> None:
    written = {"name": "git", "title": "Git", "status": "ready"}

    joined = facts.with_observed("plugin", written, {"name": "git", "status": "failed", "trusted": True})

    assert joined == {"name": "git", "title": "Git", "status": "failed"}
