"""Tests the recipe for LangChain's MCP adapters as it is documented."""

from __future__ import annotations

import asyncio
from typing import Any

import recipe
from langchain_openai import ChatOpenAI


class TestLangChainsAdapters(recipe.PythonChecks):
    heading = "LangChain's MCP adapters"

    def answer(self, program: dict[str, Any], message: str) -> str:
        return str(asyncio.run(program["answer"](message)))

    def model(self, address: str) -> Any:
        return ChatOpenAI(model="scripted", base_url=address, api_key="none")
