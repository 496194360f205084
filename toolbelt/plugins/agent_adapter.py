"""Plugins that were written for agent-adapter (seed: Tool Plugins), which load without a change.

They have the members of :class:`contract.ToolPlugin`, but do not subclass it: what counts is what a plugin has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt.plugins import contract

# The entry-point group in which agent-adapter finds its plugins.
GROUP = "agent_adapter.tool_plugins"
REQUIRED = ("name", "namespace", "tools", "execute")
_FIELDS = (
    "name",
    "description",
    "input_schema",
    "annotations",
    "output_schema",
    "category",
    "default_on",
    "title",
)


def is_plugin(candidate: Any) -> bool:
    """Return whether a class or an instance has everything that a plugin needs."""
    return all(hasattr(candidate, member) for member in REQUIRED)


def adapt(plugin: Any) -> contract.ToolPlugin:
    """Return the plugin, adapted if it does not subclass ToolPlugin; raise TypeError if it is none."""
    if isinstance(plugin, contract.ToolPlugin):
        return plugin
    if missing := [member for member in REQUIRED if not hasattr(plugin, member)]:
        raise TypeError(f"{type(plugin).__name__!r} is not a plugin: it has no {' and no '.join(missing)}")
    return _Adapted(plugin)


def original(plugin: contract.ToolPlugin) -> Any:
    """Return the plugin that was registered, which :func:`adapt` may have adapted."""
    return plugin._plugin if isinstance(plugin, _Adapted) else plugin


class _Adapted(contract.ToolPlugin):
    """A plugin that has the members of ToolPlugin."""

    def __init__(self, plugin: Any) -> None:
        self._plugin = plugin

    @property
    def name(self) -> str:
        name: str = self._plugin.name
        return name

    @property
    def namespace(self) -> str:
        namespace: str = self._plugin.namespace
        return namespace

    @property
    def tools(self) -> Sequence[contract.ToolDefinition]:
        return [_definition(tool) for tool in self._plugin.tools]

    @property
    def title(self) -> str:
        return self._optional("title")

    @property
    def description(self) -> str:
        return self._optional("description")

    @property
    def category(self) -> str:
        return self._optional("category")

    def initialize(self, runtime: contract.RuntimeAPI) -> Any:
        initialize = getattr(self._plugin, "initialize", None)
        return None if initialize is None else initialize(runtime)

    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        return self._plugin.execute(tool_name, args)

    def shutdown(self) -> Any:
        shutdown = getattr(self._plugin, "shutdown", None)
        return None if shutdown is None else shutdown()

    def _optional(self, member: str) -> str:
        return getattr(self._plugin, member, None) or ""


def _definition(tool: Any) -> Any:
    """Return a definition with the fields that the tool has; the tool itself if it is none, which is then refused."""
    if isinstance(tool, contract.ToolDefinition) or not isinstance(getattr(tool, "name", None), str):
        return tool
    attributes = {field: getattr(tool, field, None) for field in _FIELDS}
    fields = {field: value for field, value in attributes.items() if value is not None}
    schema = fields.get("input_schema")
    if schema is not None and not isinstance(schema, Mapping):
        # Such as a model of pydantic's; anything else is refused with its path.
        dump = getattr(schema, "model_dump", None)
        fields["input_schema"] = dump(exclude_none=True) if dump is not None else schema
    return contract.ToolDefinition(**{"description": "", **fields})
