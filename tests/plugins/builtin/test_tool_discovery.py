"""Tests of toolDiscovery: it returns the tools that are active for the agent at the time of the call."""

from __future__ import annotations

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from toolbelt.plugins import contract
from toolbelt.plugins.builtin.tool_discovery import plugin, toolkit

ACTIVE = {"git": ("git__log", "git__status"), "think": ("think__think",), "empty": ()}


@pytest.fixture
def discovery() -> runtime.RunningPlugin:
    running = runtime.RunningPlugin(plugin.ToolDiscovery())
    running.runtime.call = contract.CallContext(agent="ada", active_tools=ACTIVE)
    return running


def test_the_plugin_is_valid() -> None:
    runtime.assert_valid(plugin.ToolDiscovery())


def test_active_tools_are_listed_by_plugin(discovery) -> None:
    assert discovery("capability_list") == {
        "agent": "ada",
        "tool_count": 3,
        "plugins": [
            {"plugin": "git", "tools": ["git__log", "git__status"]},
            {"plugin": "think", "tools": ["think__think"]},
        ],
    }


def test_the_list_can_be_filtered_by_plugin_ignoring_case(discovery) -> None:
    assert discovery("capability_list", plugin="GIT")["tool_count"] == 2


def test_a_plugin_without_active_tools_is_refused_with_the_active_plugins(discovery) -> None:
    with pytest.raises(
        toolbelt.ToolError, match=r"no active tools of 'docker'\. Plugins with active tools: git, think"
    ):
        discovery("capability_list", plugin="docker")


def test_each_call_lists_the_tools_active_at_that_call(discovery) -> None:
    discovery.runtime.call = contract.CallContext(agent="bob", active_tools={})
    assert discovery("capability_list") == {"agent": "bob", "tool_count": 0, "plugins": []}


def test_a_call_without_an_agent_is_refused(discovery) -> None:
    discovery.runtime.call = None
    with pytest.raises(toolbelt.ToolError, match="not by an agent"):
        discovery("capability_list")


@pytest.mark.parametrize(
    "message", ["What can you do?", "which tools do you have", "List your capabilities."]
)
def test_questions_about_capabilities_focus_on_the_tool(message: str) -> None:
    focus = runtime.focus(toolkit.Discovery(), message)
    assert focus is not None
    assert focus.active_tools == (toolkit.CAPABILITY_LIST,)


def test_other_messages_set_no_focus() -> None:
    assert runtime.focus(toolkit.Discovery(), "What can the parser do?") is None
