"""Tests that coding agents, configured as documented, list and call Toolbelt's tools, and lose them when denied."""

from __future__ import annotations

import kit
import pytest
import running
from agents import AGENTS, Agent

ADD, ARGUMENTS = "desk__add", {"a": 2, "b": 40}


def own(agent: Agent, offered: set[str]) -> set[str]:
    """Return Toolbelt's tools among those that the model was offered, by the names that Toolbelt gives them."""
    names = {name.removeprefix(agent.prefix) for name in offered if name.startswith(agent.prefix)}
    return {name for name in names if name.startswith("desk__")}


def granted() -> set[str]:
    """Return what the agent may use of the desk's tools, as the API says."""
    tools = kit.operator("GET", f"agents/{kit.AGENT}/surface")["tools"]
    return {tool["name"] for tool in tools if tool["name"].startswith("desk__")}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_an_agent_is_offered_what_is_granted_and_calls_it(agent: Agent) -> None:
    before = kit.newest(tool=ADD, agent=kit.AGENT)
    with kit.switched("arithmetic", True):
        run = running.run(agent, tool=ADD, arguments=ARGUMENTS)
        assert own(agent, run.offered) == granted(), run.printed
    assert ADD in granted()
    assert "desk__add_note" not in own(agent, run.offered), "it may be loaded, and is not"
    assert "42" in run.answers
    assert "It is done." in run.printed
    (call,) = kit.recorded(1, after=before, tool=ADD, agent=kit.AGENT)
    assert call["outcome"] == "ok"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_what_is_switched_off_is_not_offered_to_the_next_run(agent: Agent) -> None:
    before = kit.newest(tool=ADD, agent=kit.AGENT)
    with kit.switched("arithmetic", False):
        run = running.run(agent, tool=ADD, arguments=ARGUMENTS)
        assert own(agent, run.offered) == granted(), run.printed
    assert ADD not in own(agent, run.offered)
    assert own(agent, run.offered), "other tools are there"
    assert "It is done." in run.printed
    assert kit.newest(tool=ADD, agent=kit.AGENT) == before
