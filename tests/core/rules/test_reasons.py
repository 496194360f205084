"""Tests of the texts that explain decisions."""

from __future__ import annotations

import pytest

from toolbelt.core import rules
from toolbelt.core.rules import reasons, resolution

# The reason codes of docs/semantics.md, by rule.
CODES = {
    1: (
        "plugin-failed",
        "plugin-disabled",
        "tool-retired",
        "not-running",
        "schema-invalid",
        "tool-unseen",
        "tool-changed",
    ),
    2: ("blocked",),
    3: ("switch-off",),
    4: ("override-off",),
    5: ("loadout-disabled", "risk-denied"),
    6: ("override-on", "always-on", "sub-app"),
    7: ("switch-on",),
    8: ("initial", "loaded"),
    9: ("loadout-plugin", "loadout-category", "default-on"),
    10: ("loadable", "pattern", "budget"),
    11: ("not-granted",),
}


def test_exactly_the_documented_reason_codes_have_a_text() -> None:
    assert sorted(reasons.CODES) == sorted(code for codes in CODES.values() for code in codes)


@pytest.mark.parametrize("code", reasons.CODES)
def test_each_reason_code_has_an_explanation(code: str) -> None:
    origin = rules.Origin("toolkit", "devops", "docker*")
    decision = resolution.Decision("git__push", "denied", code, 3, origin)
    assert reasons.explain(decision)
    assert reasons.format_line(decision).startswith(f"git__push  denied  {code}: ")


def test_a_decision_line_names_the_deciding_rule() -> None:
    decision = resolution.Decision("git__push", "denied", "switch-off", 3, rules.Origin("switch", "devops"))
    assert reasons.format_line(decision) == "git__push  denied  switch-off: toolkit devops is off"
