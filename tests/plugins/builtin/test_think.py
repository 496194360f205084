"""think: what is thought is given back, and nothing else happens."""

from __future__ import annotations

import asyncio

import pytest

from tests.plugins.builtin import runtime
from toolbelt.plugins.builtin.think import plugin, toolkit


def test_the_plugin_is_sound() -> None:
    runtime.assert_sound(plugin.Think())


def test_a_thought_comes_back_acknowledged() -> None:
    think = runtime.Running(plugin.Think())
    assert think("think", thought="Two logs disagree.") == {
        "acknowledged": True,
        "thought": "Two logs disagree.",
    }


def test_a_thought_is_needed_and_has_an_end() -> None:
    for arguments in ({}, {"thought": ""}, {"thought": "a" * 20_001}, {"thought": "a", "more": 1}):
        assert runtime.violations(plugin.Think(), toolkit.THINK, arguments)


def test_another_tool_is_not_taken_for_it() -> None:
    with pytest.raises(ValueError, match="Unknown tool: think__act"):
        asyncio.run(plugin.Think().execute("think__act", {}))


def test_who_asks_for_thought_gets_it_first() -> None:
    found = runtime.focus(toolkit.Thinking(), "Please think carefully before you delete that.")
    assert found is not None
    assert (found.active_tools, found.tool_choice, found.because) == (
        (toolkit.THINK,),
        "required",
        "think carefully",
    )
    assert runtime.focus(toolkit.Thinking(), "I think it rains.") is None
