"""Tests that coding agents, configured as documented, list and call Toolbelt's tools, and lose those that are off."""

from __future__ import annotations

import kit
import pytest
import running
from agents import AGENTS, Agent

ADD, ARGUMENTS = "desk__add", {"a": 2, "b": 40}


def desk_tools(agent: Agent, offered: set[str]) -> set[str]:
    """Return Toolbelt's names of the desk's tools that the model was offered."""
    names = {name.removeprefix(agent.prefix) for name in offered if name.startswith(agent.prefix)}
    return {name for name in names if name.startswith("desk__")}


def granted() -> set[str]:
    """Return the desk's tools that the agent may use, according to the API."""
    tools = kit.operator("GET", f"agents/{kit.AGENT}/surface")["tools"]
    return {tool["name"] for tool in tools if tool["name"].startswith("desk__")}


def run_and_add(agent: Agent) -> running.Run:
    """Run the agent with a model that calls the tool, directly or through ``call_tool``."""
    if agent.searches:
        return running.run(agent, tool="call_tool", arguments={"tool": ADD, "arguments": ARGUMENTS})
    return running.run(agent, tool=ADD, arguments=ARGUMENTS)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_an_agent_offers_and_calls_the_granted_tools(agent: Agent) -> None:
    before = kit.newest(tool=ADD, agent=kit.AGENT)
    with kit.switched("arithmetic", True):
        run = run_and_add(agent)
        assert desk_tools(agent, run.offered) == (set() if agent.searches else granted()), run.printed
    assert ADD in granted()
    assert "desk__add_note" not in desk_tools(agent, run.offered), "it may be loaded, but was not"
    assert "42" in run.answers
    assert "It is done." in run.printed
    (call,) = kit.recorded(1, after=before, tool=ADD, agent=kit.AGENT)
    assert call["outcome"] == "ok"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_the_next_run_does_not_offer_a_tool_that_is_switched_off(agent: Agent) -> None:
    before = kit.newest(tool=ADD, agent=kit.AGENT)
    with kit.switched("arithmetic", False):
        run = run_and_add(agent)
        assert desk_tools(agent, run.offered) == (set() if agent.searches else granted()), run.printed
    assert ADD not in desk_tools(agent, run.offered)
    assert "It is done." in run.printed
    if agent.searches:
        (call,) = kit.recorded(1, after=before, tool=ADD, agent=kit.AGENT)
        assert call["outcome"] != "ok"
        return
    assert desk_tools(agent, run.offered), "other tools must remain"
    assert kit.newest(tool=ADD, agent=kit.AGENT) == before
