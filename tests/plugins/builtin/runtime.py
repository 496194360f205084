"""A small fake of the plugin runtime, and a way to call a plugin's tools as a server does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import toolbelt
from toolbelt.core import keys, schema
from toolbelt.plugins import background, contract


class State:
    """JSON values in memory. Writing raises ConnectionError while ``broken`` is set."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.broken = False

    async def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    async def set(self, key: str, value: Any) -> None:
        if self.broken:
            raise ConnectionError("the state's store is away")
        self.values[key] = value

    async def delete(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    async def list(self, prefix: str = "") -> Mapping[str, Any]:
        return {key: value for key, value in sorted(self.values.items()) if key.startswith(prefix)}


class Log:
    """Records the events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, dict[str, Any]]] = []

    def debug(self, event: str, /, **facts: Any) -> None:
        self.events.append(("debug", event, facts))

    def info(self, event: str, /, **facts: Any) -> None:
        self.events.append(("info", event, facts))

    def warning(self, event: str, /, **facts: Any) -> None:
        self.events.append(("warning", event, facts))

    def error(self, event: str, /, **facts: Any) -> None:
        self.events.append(("error", event, facts))


class Runtime:
    """An in-memory RuntimeAPI without secrets or network, whose current call the test sets."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config: Mapping[str, Any] = dict(config or {})
        self.state = State()
        self.log = Log()
        self.call: contract.CallContext | None = contract.CallContext(agent="ada", session="s-1")

    @property
    def secrets(self) -> contract.Secrets:
        raise AssertionError("the built-in plugins under test have no secrets")

    @property
    def wallet(self) -> contract.Wallet:
        raise AssertionError("the built-in plugins under test have no wallet")

    @property
    def http(self) -> contract.Http:
        raise AssertionError("the built-in plugins under test have no network")


class RunningPlugin:
    """An initialized plugin whose tools are called by their short names: ``running("read", path="a.txt")``."""

    def __init__(self, plugin: contract.ToolPlugin, config: Mapping[str, Any] | None = None) -> None:
        self.plugin = plugin
        self.runtime = Runtime(config)
        asyncio.run(background.call(background.Threads(), plugin.initialize, self.runtime))

    def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool with valid arguments, in a thread of its own, where plain functions run."""
        assert violations(self.plugin, f"{self.plugin.namespace}__{name}", arguments) == ()
        result = self.unchecked(name, **arguments)
        schema.canonical(result)  # raises unless the result is JSON
        assert isinstance(result, dict)
        return result

    def unchecked(self, name: str, **arguments: Any) -> Any:
        """Call a tool without validating the arguments."""
        key = f"{self.plugin.namespace}__{name}"
        return asyncio.run(background.call(background.Threads(), self.plugin.execute, key, arguments))

    def stop(self) -> None:
        asyncio.run(background.call(background.Threads(), self.plugin.shutdown))


def violations(
    plugin: contract.ToolPlugin, key: str, arguments: Mapping[str, Any]
) -> Sequence[schema.Violation]:
    """Return the violations of the tool's schema in the arguments."""
    tool = next(tool for tool in plugin.tools if tool.name == key)
    return schema.violations(schema.canonical(tool.input_schema), dict(arguments))


def assert_valid(plugin: contract.ToolPlugin) -> None:
    """Check names, schemas and annotations, and that the members of the toolkits are the plugin's own tools."""
    assert keys.name_problem(plugin.name) is None
    assert keys.namespace_problem(plugin.namespace) is None
    assert plugin.title
    assert plugin.description
    names = [tool.name for tool in plugin.tools]
    assert len({keys.fold(name) for name in names}) == len(names)
    for tool in plugin.tools:
        assert keys.tool_key_problem(tool.name) is None
        assert keys.in_namespace(tool.name, plugin.namespace)
        assert schema.problem(tool.input_schema) is None
        assert tool.input_schema["additionalProperties"] is False
        assert tool.title
        assert tool.description.endswith(".")
        assert set(tool.annotations) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    for toolkit in plugin.toolkits:
        assert keys.toolkit_key_problem(toolkit.key) is None
        assert toolkit.title
        assert toolkit.description
        assert set(toolkit.members) <= set(names)
        for count in range(1, len(toolkit.members) + 1):
            active = tuple(toolkit.members[:count])
            policy = toolkit.policy(toolbelt.PolicyContext(active_tools=active)) or ""
            assert all(key in policy for key in active)
            assert not any(key in policy for key in set(names).difference(active))


def focus(toolkit: contract.CodeToolkit, message: str) -> contract.Focus | None:
    """Return the toolkit's focus for the message, with all of its members active."""
    return toolkit.directive(toolbelt.DirectiveContext(active_tools=tuple(toolkit.members), message=message))
