"""The plugins of the demo. They answer every call of its tools with a simulated result, and run nothing.

`fixtures/demo/plugins.yaml` names them: the attribute `fs` of this module is the plugin `fs`, and so on for every
plugin in the demo's belt that runs here and has tools of its own. A result has the form of the tool's output schema,
and says that it is simulated; the same call always gets the same result.
"""

import functools
import os
from collections.abc import Mapping
from typing import Any

import toolbelt
from toolbelt.demo import belt as demo

# Their answers are made up, so no other installation may load them, even if its plugins file names them.
ENVIRONMENTS = ("demo", "development", "test")
MAX_DEPTH = 8
_FORMATS = {"date-time": "2026-01-01T00:00:00Z", "date": "2026-01-01", "uri": "https://example.com/simulated"}


class Simulated(toolbelt.ToolPlugin):
    """One plugin of the demo's belt."""

    name, namespace, title, description, category = "", "", "", "", ""
    tools: tuple[toolbelt.ToolDefinition, ...] = ()

    def __init__(self, plugin: Mapping[str, Any], tools: list[Mapping[str, Any]]) -> None:
        self.name, self.namespace = plugin["name"], plugin.get("namespace", "")
        self.title, self.description = plugin["title"], plugin["description"]
        self.category = plugin.get("category", "")
        self.tools = tuple(
            toolbelt.ToolDefinition(
                name=tool["key"],
                title=tool.get("title", ""),
                description=tool["description"],
                input_schema=tool["input_schema"],
                output_schema=tool.get("output_schema"),
                annotations=tool.get("annotations", {}),
                category=tool.get("category", ""),
                default_on=tool.get("default_on", False),
            )
            for tool in tools
        )
        self._schemas = {tool.name: tool.output_schema for tool in self.tools}

    def execute(self, tool_name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Return a result of the tool's form, or the arguments if it has none."""
        schema = self._schemas[tool_name]
        if schema is None:
            return {"result": f"simulated: {tool_name} did not run", "arguments": args}
        result: dict[str, Any] = sample(schema, schema, tool_name)
        return result


def sample(schema: Any, root: Mapping[str, Any], name: str, depth: int = 0) -> Any:
    """Return a value that matches the schema; its texts say that they are simulated."""
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    match kinds[0] if isinstance(kinds, list) else kinds:
        case "object":
            properties = schema.get("properties", {})
            # Beyond this depth, only what a schema requires: it may refer to itself.
            names = schema.get("required", ()) if depth >= MAX_DEPTH else properties
            if not properties and schema.get("additionalProperties", True) is not False:
                return {"note": sample(schema.get("additionalProperties"), root, name, depth + 1)}
            return {key: sample(properties.get(key, {}), root, key, depth + 1) for key in names}
        case "array":
            count = schema.get("minItems", 1 if depth < MAX_DEPTH else 0)
            return [sample(schema.get("items", {}), root, name, depth + 1)] * count
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
    return _FORMATS.get(schema.get("format", ""), f"simulated: {name}")


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a reference or a choice leads to; a choice means its first alternative."""
    if not isinstance(schema, Mapping):
        return {}
    if "$ref" in schema:
        parts = schema["$ref"].removeprefix("#/").split("/")
        return _resolved(functools.reduce(lambda part, key: part[key], parts, root), root)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return _resolved({**schema[choice][0]}, root)
    return schema


@functools.cache
def plugins() -> dict[str, Simulated]:
    """Return the plugins by name, in the belt's order."""
    belt = demo.build(builtin_plugins=False)
    tools: dict[str, list[Mapping[str, Any]]] = {}
    for tool in belt["tools"]:
        tools.setdefault(tool["plugin"], []).append(tool)
    return {
        plugin["name"]: Simulated(plugin, tools[plugin["name"]])
        for plugin in belt["plugins"]
        if plugin["name"] in tools and plugin.get("in_code") and plugin.get("status") != "failed"
    }


def __getattr__(name: str) -> Simulated:
    if name.startswith("__") or name not in plugins():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if os.environ.get("TOOLBELT_ENV", "production") not in ENVIRONMENTS:
        raise RuntimeError(
            "its results are simulated, so it is loaded only where TOOLBELT_ENV is demo, development or test"
        )
    return plugins()[name]
