"""The program that connects each framework that has an adapter, as docs/how-to/use-with-frameworks.md shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from toolbelt.web.settings import mcp_clients

_CONNECTION = 'http.Http({address}, {agent}, os.environ["TOOLBELT_TOKEN"])'

_LANGCHAIN = """import os

from langchain import agents
from toolbelt.adapters import langchain
from toolbelt.adapters.connection import http

toolbelt = langchain.Toolbelt(
    CONNECTION,
)
agent = agents.create_agent(model, system_prompt="You are helpful.", middleware=[toolbelt])


def answer(message, session):
    messages = {"messages": [("user", message)]}
    result = agent.invoke(messages, {"configurable": {"thread_id": session}})
    return result["messages"][-1].text
"""
_PYDANTIC_AI = """import os

import pydantic_ai
from toolbelt.adapters import pydantic_ai as adapter
from toolbelt.adapters.connection import http

toolbelt = adapter.Toolbelt(
    CONNECTION,
)
agent = pydantic_ai.Agent(model, instructions="You are helpful.", capabilities=[toolbelt])


def answer(message, session):
    return agent.run_sync(message, conversation_id=session).output
"""
_OPENAI_AGENTS = """import os

import agents
from toolbelt.adapters import openai_agents
from toolbelt.adapters.connection import http

toolbelt = CONNECTION


def answer(message, session):
    agent = openai_agents.Agent(
        name="Assistant", instructions="You are helpful.", model=model, toolbelt=toolbelt, session=session
    )
    result = agents.Runner.run_sync(agent, message, run_config=openai_agents.run_config())
    return result.final_output
"""
_GOOGLE_ADK = """import os

from google.adk import agents, runners, sessions
from google.genai import types
from toolbelt.adapters import google_adk
from toolbelt.adapters.connection import http

toolbelt = google_adk.Toolbelt(
    CONNECTION,
)
agent = agents.LlmAgent(
    name="assistant",
    model=model,
    instruction="You are helpful.",
    tools=[toolbelt],
    before_tool_callback=toolbelt.before_tool_callback,
)
service = sessions.InMemorySessionService()
runner = runners.Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True)


def answer(message, session):
    content = types.UserContent(message)
    events = [*runner.run(user_id="u1", session_id=session, new_message=content)]
    return events[-1].content.parts[0].text
"""
_CODE = {
    "langchain": ("LangChain", _LANGCHAIN),
    "pydantic-ai": ("Pydantic AI", _PYDANTIC_AI),
    "openai-agents": ("OpenAI Agents", _OPENAI_AGENTS),
    "google-adk": ("Google ADK", _GOOGLE_ADK),
}
NAMES = tuple(_CODE)


def code(name: str, address: str, agent: str) -> str:
    """Write a whole program of the framework called ``name``, for an agent of the Toolbelt at ``address``.

    ``model`` is the reader's own.
    """
    connection = _CONNECTION.format(address=json.dumps(address), agent=json.dumps(agent))
    return _CODE[name][1].replace("CONNECTION", connection)


def snippets(address: str, agent: str) -> Iterator[mcp_clients.Snippet]:
    """Return the program of each framework, in the order of the documentation."""
    for name, (label, _) in _CODE.items():
        install = f"# Needs the extra: {name}\n# The model is yours.\n"
        yield mcp_clients.Snippet(
            id=f"snippet-{name}", label=label, text=install + code(name, address, agent)
        )
