"""Build and check the complete demo belt.

Joins the hand-written `fixtures/demo/belt.yaml` with the tools of the real MCP catalogs beside it, and with the tools
and toolkits of the built-in plugins that it names, into one belt. Writes it as JSON (which is YAML too) to standard
output and every problem to standard error; exits 1 if there is one.

    python -m scripts.build_demo > demo-belt.json
"""

import importlib
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from toolbelt.core import belts, keys
from toolbelt.plugins import builtin, contract

Entry = dict[str, Any]

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "demo"
MIN_MEMBERS, MAX_MEMBERS = 3, 20
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


def problems(belt: Entry) -> Iterator[str]:
    """Return the problems that any belt may have, and those that make this one a bad example."""
    yield from (str(problem) for problem in belts.check(belt))
    toolkits = {toolkit["key"]: toolkit for toolkit in belt["toolkits"]}
    named = [plugin["name"] for plugin in belt["plugins"]]
    # All three can be given to load_tools: one name should mean one thing.
    for name in sorted(
        {keys.fold(n) for n in named} & {keys.fold(e["key"]) for e in belt["tools"] + belt["toolkits"]}
    ):
        yield f"plugins.{name}: a tool or toolkit has this name too"
    for key, toolkit in toolkits.items():
        members = [member if isinstance(member, str) else member["tool"] for member in toolkit["members"]]
        if not MIN_MEMBERS <= len(members) <= MAX_MEMBERS:
            yield f"toolkits.{key}.members: {len(members)} of them"
        spoken_of = [("tool_notes", toolkit.get("tool_notes", {}))]
        spoken_of += [
            (f"triggers.{t['name']}.focus", t.get("focus", [])) for t in toolkit.get("triggers", [])
        ]
        for place, tools in spoken_of:
            yield from (
                f"toolkits.{key}.{place}: {tool} is not a member" for tool in tools if tool not in members
            )
        yield from (
            f"toolkits.{key}.{field}: missing"
            for field in ("title", "description", "policy")
            # Code writes the policy of its toolkits when it is asked for.
            if not toolkit.get(field) and not (field == "policy" and toolkit.get("plugin"))
        )


def main() -> int:
    belt = build()
    found = list(problems(belt))
    sys.stderr.writelines(f"{problem}\n" for problem in found)
    json.dump(belt, sys.stdout, ensure_ascii=False, indent=1)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
