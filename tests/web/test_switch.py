"""Tests of a toolkit's switch: what it shows, what a press requests, and what its link does."""

from __future__ import annotations

import pytest

from toolbelt.core import rules
from toolbelt.core.rules import resolution
from toolbelt.web.kit import tool_sections

ON = resolution.Decision("a", "active", "default", 9, rules.Origin("", ""))
OFF = resolution.Decision("b", "dormant", "off", 11, rules.Origin("", ""))
UNAVAILABLE = resolution.Decision("c", "unavailable", "plugin-failed", 1, rules.Origin("plugin", "github"))
REQUESTED = resolution.Decision("d", "discoverable", "allowed", 10, rules.Origin("toolkit", "research"))


@pytest.mark.parametrize(
    ("stored", "decisions", "shown", "wants", "text", "basis"),
    [
        (None, [ON, ON], "on", "false", "On", "Default"),
        (None, [ON, OFF, OFF], "partly", "false", "1 of 3 on", "Default"),
        (None, [OFF, REQUESTED], "off", "true", "On request", "Default"),
        (True, [ON], "on", "false", "On", ""),
        (True, [UNAVAILABLE], "off", "true", "Off", "set to On"),
        (False, [OFF], "off", "true", "Off", ""),
        (None, [], "off", "true", "Off", "Default"),
    ],
)
def test_a_switch_shows_the_effective_state_and_requests_the_opposite(
    stored: bool | None, decisions: list[resolution.Decision], shown: str, wants: str, text: str, basis: str
) -> None:
    view = tool_sections.Switch(stored, decisions)
    assert (view.position, view.requested, view.words, view.basis) == (shown, wants, text, basis)


@pytest.mark.parametrize(
    ("stored", "decisions", "value", "label"),
    [
        (True, [ON], "unset", "Reset to default"),
        (False, [OFF], "unset", "Reset to default"),
        (None, [ON], "true", "Set to On"),
        (None, [OFF], "false", "Set to Off"),
        (None, [ON, OFF], "true", "Set to On"),
    ],
)
def test_the_link_resets_a_stored_state_or_stores_the_default(
    stored: bool | None, decisions: list[resolution.Decision], value: str, label: str
) -> None:
    view = tool_sections.Switch(stored, decisions)
    assert (view.other, view.label) == (value, label)


def test_a_switch_warns_if_turning_it_on_has_no_effect() -> None:
    assert (
        tool_sections.Switch(None, [UNAVAILABLE]).no_effect
        == "turning it on has no effect: plugin github has failed"
    )
    assert tool_sections.Switch(None, [UNAVAILABLE, OFF]).no_effect == ""
    assert tool_sections.Switch(None, [UNAVAILABLE, ON]).no_effect == ""
