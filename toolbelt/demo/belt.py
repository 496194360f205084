"""The demo's belt.

It is the hand-written `fixtures/demo/belt.yaml`, with the tools of the real MCP catalogs beside it, and with the tools
and toolkits of the built-in plugins that it names.
"""

import importlib
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import yaml

from toolbelt import locations
from toolbelt.core import keys
from toolbelt.plugins import builtin, contract

Entry = dict[str, Any]

FOLDER = locations.ASSETS / "fixtures" / "demo"
# The faster one, if PyYAML was built with it.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def plugin_tools(plugin: Entry, upstream: list[Entry], settings: list[Entry]) -> Iterator[Entry]:
    """Return the tools of one catalog as belt entries, with the operator's decisions about them."""
    decided = {name: group["set"] for group in settings for name in group["tools"]}
    if strangers := decided.keys() - {tool["name"] for tool in upstream}:
        raise SystemExit(
            f"plugins.{plugin['name']}.tool_settings: no such tools: {', '.join(sorted(strangers))}"
        )
    for tool in upstream:
        key = keys.fit(tool["name"], plugin["namespace"])
        entry = {
            "key": key,
            "title": tool.get("title") or tool.get("annotations", {}).get("title"),
            "description": tool.get("description"),
            "plugin": plugin["name"],
            "input_schema": tool["inputSchema"],
            "output_schema": tool.get("outputSchema"),
            "annotations": tool.get("annotations"),
            "upstream_name": None
            if key == plugin["namespace"] + keys.SEPARATOR + tool["name"]
            else tool["name"],
        }
        yield {name: value for name, value in entry.items() if value is not None} | decided.get(
            tool["name"], {}
        )


def code_tools(plugin: contract.ToolPlugin) -> Iterator[Entry]:
    """Return the tools of a built-in plugin as belt entries."""
    for tool in plugin.tools:
        yield {
            "key": tool.name,
            "title": tool.title,
            "description": tool.description,
            "plugin": plugin.name,
            "input_schema": tool.input_schema,
            "annotations": tool.annotations,
        }


def code_toolkit(toolkit: contract.CodeToolkit) -> Entry:
    """Return the fields that a toolkit's code decides."""
    return {
        "title": toolkit.title,
        "description": toolkit.description,
        "members": list(toolkit.members),
        "policy_when_off": toolkit.policy_when_off,
    }


def build(folder: pathlib.Path = FOLDER, *, builtin_plugins: bool = True) -> Entry:
    """Return the whole belt, validated or not; optionally without what the built-in plugins provide."""
    belt: Entry = yaml.load((folder / "belt.yaml").read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506
    toolkits = {toolkit["key"]: toolkit for toolkit in belt["toolkits"]}
    for plugin in belt["plugins"]:
        file = folder / "catalogs" / f"{plugin['name']}.json"
        if file.exists():
            catalog = json.loads(file.read_text(encoding="utf-8"))
            belt["tools"] += plugin_tools(plugin, catalog["tools"], plugin.pop("tool_settings", []))
        elif builtin_plugins and plugin["name"] in builtin.CLASSES:
            module, class_name = builtin.CLASSES[plugin["name"]]
            code: contract.ToolPlugin = getattr(importlib.import_module(module), class_name)()
            plugin |= {"namespace": code.namespace, "title": code.title, "description": code.description}
            belt["tools"] += code_tools(code)
            for toolkit in code.toolkits:
                toolkits[toolkit.key].update(code_toolkit(toolkit))
    return belt
