"""Tests that the message of a problem suggests how to fix it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import samples
from toolbelt.core import belts


@pytest.mark.parametrize(
    ("section", "entry", "words"),
    [
        ("tools", {"key": "x", "plugin": "gitt"}, "Did you mean git?"),
        ("tools", {"key": "status", "plugin": "git"}, "call it 'git__status'"),
        ("agents", {"key": "x", "loadout": "develper"}, "Did you mean developer?"),
        ("agents", {"key": "x", "allowed_toolkit": []}, "Did you mean allowed_toolkits"),
        ("agents", {"key": "x", "kind": "explor"}, "Did you mean explore?"),
        ("agents", {"key": "x", "tools": ["zzzzzz"]}, "Add it first, or remove it here."),
        ("agents", {"key": "x", "tools_config": {"thinks": True}}, "Did you mean think?"),
        ("toolkits", {"key": "think"}, "taken by the tool 'think'"),
        ("toolkits", {"key": "RUN"}, "differs from the tool 'run' in case alone"),
        ("toolkits", {"key": "x", "members": ["unload_tools"]}, "one of Toolbelt's own tools"),
        ("agents", {"key": "x", "tools_config": {"run": "off"}}, "'run' must be true or false, not 'off'."),
    ],
)
def test_the_message_of_a_problem_suggests_a_fix(section: str, entry: Any, words: str) -> None:
    (problem,) = belts.check(samples.valid_belt_with(section, entry))
    assert words in problem.message


@pytest.mark.slow
def test_suggestions_stop_after_a_bounded_number_of_comparisons() -> None:
    tools = [{"key": f"tool_{number}"} for number in range(2000)]
    members = [f"tol_{number}" for number in range(200)]
    problems = belts.check({"tools": tools, "toolkits": [{"key": "x", "members": members}]})
    assert len(problems) == 200
    assert "Did you mean" in problems[0].message
    assert "Did you mean" not in problems[-1].message
