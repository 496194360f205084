"""Tests of the think plugin: it returns the thought, and does nothing else."""

from __future__ import annotations

import asyncio

import pytest

from tests.plugins.builtin import runtime
from toolbelt.plugins.builtin.think import plugin, toolkit


def test_the_plugin_is_valid() -> None:
    runtime.assert_valid(plugin.Think())


def test_a_thought_is_returned_and_acknowledged() -> None:
    think = runtime.RunningPlugin(plugin.Think())
    assert think("think", thought="Two logs disagree.") == {
        "acknowledged": True,
        "thought": "Two logs disagree.",
    }


def test_a_thought_is_required_and_limited_in_length() -> None:
    for arguments in ({}, {"thought": ""}, {"thought": "a" * 20_001}, {"thought": "a", "more": 1}):
        assert runtime.violations(plugin.Think(), toolkit.THINK, arguments)


def test_an_unknown_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown tool: think__act"):
        asyncio.run(plugin.Think().execute("think__act", {}))


def test_a_message_that_asks_to_think_requires_the_tool_first() -> None:
    focus = runtime.focus(toolkit.Thinking(), "Please think carefully before you delete that.")
    assert focus is not None
    assert (focus.active_tools, focus.tool_choice, focus.because) == (
        (toolkit.THINK,),
        "required",
        "think carefully",
    )
    assert runtime.focus(toolkit.Thinking(), "I think it rains.") is None
