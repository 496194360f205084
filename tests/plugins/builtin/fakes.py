"""What stands around a built-in plugin in its tests: a runtime in memory, and a gate that checks arguments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import jsonschema

from toolbelt.plugins import contract


class State:
    """JSON as text under keys. A loose one compares prefixes ignoring case, as some databases do."""

    def __init__(self, *, loose: bool = False) -> None:
        self.texts: dict[str, str] = {}
        self.loose = loose

    async def get(self, key: str, default: Any = None) -> Any:
        return json.loads(self.texts[key]) if key in self.texts else default

    async def set(self, key: str, value: Any) -> None:
        self.texts[key] = json.dumps(value)

    async def delete(self, key: str) -> bool:
        return self.texts.pop(key, None) is not None

    async def list(self, prefix: str = "") -> Mapping[str, Any]:
        def fits(key: str) -> bool:
            return key.casefold().startswith(prefix.casefold()) if self.loose else key.startswith(prefix)

        return {key: json.loads(self.texts[key]) for key in sorted(self.texts) if fits(key)}


class Secrets:
    async def retrieve(self, namespace: str, key: str) -> str:
        raise contract.SecretMissing(namespace, key)


class Log:
    """Keeps the events."""

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


class Bench:
    """One plugin, initialized, and agents who call its tools."""

    def __init__(self, plugin: contract.ToolPlugin, runtime: Runtime) -> None:
        self.plugin, self.runtime = plugin, runtime
        self._schemas = {tool.name: tool.input_schema for tool in plugin.tools}
        ready = plugin.initialize(runtime)
        if ready is not None:
            asyncio.run(_wait(ready))

    def call(self, agent: str, tool: str, /, **arguments: Any) -> Any:
        """Call a tool as the gate does: the arguments fit its schema, and the answer is JSON."""
        jsonschema.Draft202012Validator(self._schemas[tool]).validate(arguments)
        self.runtime.call = contract.CallContext(agent=agent)
        answer = self.plugin.execute(tool, arguments)
        try:
            found = asyncio.run(_wait(answer)) if hasattr(answer, "__await__") else answer
        finally:
            self.runtime.call = None
        return json.loads(json.dumps(found))

    def refuses(self, agent: str, tool: str, /, **arguments: Any) -> str:
        """Return the words with which a call is refused."""
        try:
            answer = self.call(agent, tool, **arguments)
        except contract.ToolError as refusal:
            return str(refusal)
        raise AssertionError(f"{tool} was not refused: {answer}")


async def _wait(awaitable: Any) -> Any:
    return await awaitable
