"""toolDiscovery: an agent gets what is active for it at this very call."""

from __future__ import annotations

import pytest

import toolbelt
from tests.plugins.builtin import runtime
from toolbelt.plugins import contract
from toolbelt.plugins.builtin.tool_discovery import plugin, toolkit

ACTIVE = {"git": ("git__log", "git__status"), "think": ("think__think",), "empty": ()}


@pytest.fixture
def discovery() -> runtime.Running:
    running = runtime.Running(plugin.ToolDiscovery())
    running.runtime.call = contract.CallContext(agent="ada", active_tools=ACTIVE)
    return running


def test_the_plugin_is_sound() -> None:
    runtime.assert_sound(plugin.ToolDiscovery())


def test_all_that_is_active_is_listed_by_plugin(discovery) -> None:
    assert discovery("capability_list") == {
        "agent": "ada",
        "tool_count": 3,
        "plugins": [
            {"plugin": "git", "tools": ["git__log", "git__status"]},
            {"plugin": "think", "tools": ["think__think"]},
        ],
    }


def test_one_plugin_can_be_asked_for_ignoring_case(discovery) -> None:
    assert discovery("capability_list", plugin="GIT")["tool_count"] == 2


def test_what_is_not_active_is_answered_with_what_is(discovery) -> None:
    with pytest.raises(
        toolbelt.ToolError, match=r"no active tools of 'docker'\. Plugins with active tools: git, think"
    ):
        discovery("capability_list", plugin="docker")


def test_the_next_call_may_have_another_answer(discovery) -> None:
    discovery.runtime.call = contract.CallContext(agent="bob", active_tools={})
    assert discovery("capability_list") == {"agent": "bob", "tool_count": 0, "plugins": []}


def test_without_an_agent_there_is_nothing_to_list(discovery) -> None:
    discovery.runtime.call = None
    with pytest.raises(toolbelt.ToolError, match="not by an agent"):
        discovery("capability_list")


@pytest.mark.parametrize(
    "message", ["What can you do?", "which tools do you have", "List your capabilities."]
)
def test_questions_about_capabilities_focus_on_the_list(message: str) -> None:
    found = runtime.focus(toolkit.Discovery(), message)
    assert found is not None
    assert found.active_tools == (toolkit.CAPABILITY_LIST,)


def test_other_messages_do_not() -> None:
    assert runtime.focus(toolkit.Discovery(), "What can the parser do?") is None
