"""Decisions in words."""

from __future__ import annotations

import pytest

from toolbelt.core import reasons, resolution, rules

# The reason codes of semantics.md, by question.
CODES = {
    1: ("plugin-failed", "plugin-disabled", "tool-retired", "not-running", "tool-unseen", "tool-changed"),
    2: ("blocked",),
    3: ("switch-off",),
    4: ("override-off",),
    5: ("loadout-disabled",),
    6: ("override-on", "always-on", "sub-app"),
    7: ("switch-on",),
    8: ("initial", "loaded"),
    9: ("loadout-plugin", "loadout-category", "default-on"),
    10: ("loadable", "pattern", "budget"),
    11: ("not-granted",),
}


def test_every_reason_code_has_words_and_nothing_else_has() -> None:
    assert sorted(reasons.CODES) == sorted(code for codes in CODES.values() for code in codes)


@pytest.mark.parametrize("code", reasons.CODES)
def test_a_reason_is_said_in_a_sentence(code: str) -> None:
    origin = rules.Origin("toolkit", "devops", "docker*")
    decision = resolution.Decision("git__push", "denied", code, 3, origin)
    assert reasons.explain(decision)
    assert reasons.format_line(decision).startswith(f"git__push  denied  {code}: ")


def test_a_line_names_the_rule_that_decided() -> None:
    decision = resolution.Decision("git__push", "denied", "switch-off", 3, rules.Origin("switch", "devops"))
    assert reasons.format_line(decision) == "git__push  denied  switch-off: toolkit devops is off"
