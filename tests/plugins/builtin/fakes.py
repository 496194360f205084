"""Fakes for the tests of built-in plugins: an in-memory runtime, and a harness that checks arguments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import jsonschema

from toolbelt.plugins import contract


class State:
    """Stores JSON as text by key. With ``ignores_case``, prefixes match in any case, as in some databases."""

    def __init__(self, *, ignores_case: bool = False) -> None:
        self.texts: dict[str, str] = {}
        self.ignores_case = ignores_case

    async def get(self, key: str, default: Any = None) -> Any:
        return json.loads(self.texts[key]) if key in self.texts else default

    async def set(self, key: str, value: Any) -> None:
        self.texts[key] = json.dumps(value)

    async def delete(self, key: str) -> bool:
        return self.texts.pop(key, None) is not None

    async def list(self, prefix: str = "") -> Mapping[str, Any]:
        def matches(key: str) -> bool:
            return (
                key.casefold().startswith(prefix.casefold()) if self.ignores_case else key.startswith(prefix)
            )

        return {key: json.loads(self.texts[key]) for key in sorted(self.texts) if matches(key)}


class Secrets:
    async def retrieve(self, namespace: str, key: str) -> str:
        raise contract.SecretMissing(namespace, key)


class Log:
    """Records the events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def debug(self, event: str, /, **facts: Any) -> None:
        self.events.append((event, facts))

    info = warning = error = debug


class Runtime:
    """A :class:`contract.RuntimeAPI` whose ``call`` is set by the test."""

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, http: httpx.AsyncClient | None = None
    ) -> None:
        self.config: Mapping[str, Any] = dict(config or {})
        self.state = State()
        self.secrets = Secrets()
        self.log = Log()
        self.http: Any = http
        self.wallet: Any = None
        self.call: contract.CallContext | None = None


class Harness:
    """An initialized plugin whose tools are called on behalf of agents."""

    def __init__(self, plugin: contract.ToolPlugin, runtime: Runtime) -> None:
        self.plugin, self.runtime = plugin, runtime
        self._schemas = {tool.name: tool.input_schema for tool in plugin.tools}
        pending = plugin.initialize(runtime)
        if pending is not None:
            asyncio.run(_wait(pending))

    def call(self, agent: str, tool: str, /, **arguments: Any) -> Any:
        """Call a tool as the gate does: validate the arguments, and return the result as JSON."""
        jsonschema.Draft202012Validator(self._schemas[tool]).validate(arguments)
        self.runtime.call = contract.CallContext(agent=agent)
        outcome = self.plugin.execute(tool, arguments)
        try:
            result = asyncio.run(_wait(outcome)) if hasattr(outcome, "__await__") else outcome
        finally:
            self.runtime.call = None
        return json.loads(json.dumps(result))

    def refusal(self, agent: str, tool: str, /, **arguments: Any) -> str:
        """Return the message with which a call is refused."""
        try:
            answer = self.call(agent, tool, **arguments)
        except contract.ToolError as error:
            return str(error)
        raise AssertionError(f"{tool} was not refused: {answer}")


async def _wait(awaitable: Any) -> Any:
    return await awaitable
