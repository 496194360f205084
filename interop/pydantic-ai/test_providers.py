"""Tests an agent of Pydantic AI on Claude's models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import kit
import pydantic_ai
import pytest
from provider_checks import *  # noqa: F403 - the tests that the parts share
from pydantic_ai.models import anthropic
from pydantic_ai.providers import anthropic as providers

from toolbelt.adapters import pydantic_ai as adapter
from toolbelt.adapters.connection import http


@pytest.fixture
def converse() -> Any:
    def converse(model: str, address: str, messages: Iterable[str]) -> None:
        provider = providers.AnthropicProvider(api_key="k", base_url=address)
        toolbelt = adapter.Toolbelt(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN))
        agent = pydantic_ai.Agent(
            anthropic.AnthropicModel(model, provider=provider),
            instructions="Be brief.",
            capabilities=[toolbelt],
        )
        session, history = kit.session(), None
        for message in messages:
            result = agent.run_sync(message, message_history=history, conversation_id=session)
            history = result.all_messages()

    return converse
