"""Tests an agent of LangChain on Claude's models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import kit
import langchain_anthropic
import pytest
from langchain import agents
from langgraph.checkpoint import memory
from provider_checks import *  # noqa: F403 - the tests that the parts share

from toolbelt.adapters import langchain
from toolbelt.adapters.connection import http


@pytest.fixture
def converse() -> Any:
    def converse(model: str, address: str, messages: Iterable[str]) -> None:
        chat = langchain_anthropic.ChatAnthropic(model=model, api_key="k", base_url=address, max_retries=0)
        toolbelt = langchain.Toolbelt(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN))
        agent = agents.create_agent(
            chat, system_prompt="Be brief.", middleware=[toolbelt], checkpointer=memory.InMemorySaver()
        )
        config: Any = {"configurable": {"thread_id": kit.session()}}
        for message in messages:
            agent.invoke({"messages": [("user", message)]}, config)

    return converse
