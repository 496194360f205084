"""A belt as the reference reads it: entries by name, in their order, with the defaults of docs/reference/belt.md."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jsonschema

Entry = Mapping[str, Any]

CATEGORIES = [
    "filesystem",
    "git",
    "github",
    "shell",
    "web",
    "search",
    "network",
    "memory",
    "orchestration",
    "analysis",
    "scheduling",
    "multimodal",
    "security",
]
# The category of a plugin that states none, by its name (seed: Tool Loadouts).
PLUGINS_OF_CATEGORIES = {
    "filesystem": "file batchEdit diff notebook migration",
    "git": "git",
    "github": "github",
    "shell": "shell environment clipboard runtime",
    "web": "web browser",
    "search": "search websearch",
    "network": "tailscale",
    "memory": "memory",
    "orchestration": "tasks sessions mcp mcpEcosystem capabilities channels",
    "analysis": "think parityDocs skillParity benchmark usage",
    "scheduling": "scheduler",
    "multimodal": "multimodal",
    "security": "policy encoding",
}
CATEGORY_OF_PLUGIN = {
    name.lower(): category for category, names in PLUGINS_OF_CATEGORIES.items() for name in names.split()
}
MINIMAL = {
    "name": "minimal",
    "plugins": ["think", "toolDiscovery"],
    "categories": ["filesystem", "shell"],
    "discoverable": ["*"],
}
BUILT_IN_LOADOUTS: list[Entry] = [
    MINIMAL,
    {
        "name": "developer",
        "parent": "minimal",
        "categories": ["git", "github", "search", "analysis", "memory"],
        "discoverable": ["docker*", "mcp*"],
    },
    {"name": "research", "parent": "minimal", "categories": ["search", "web", "memory", "multimodal"]},
    {
        "name": "devops",
        "parent": "minimal",
        "categories": ["git", "network", "scheduling"],
        "discoverable": ["docker*", "kube*", "terraform*"],
    },
    {"name": "full", "plugins": ["toolDiscovery"], "categories": CATEGORIES},
]
LOADOUT_OF_KIND = {
    "explore": "research",
    "task": "minimal",
    "plan": "developer",
    "review": "developer",
    "general": "full",
}


META_SCHEMA = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)


@dataclass(frozen=True)
class Belt:
    """A configuration. Loadouts are found by their names in lower case."""

    tools: dict[str, Entry]
    plugins: dict[str, Entry]
    toolkits: dict[str, Entry]
    loadouts: dict[str, Entry]
    agents: dict[str, Entry]
    sub_apps: list[Entry]
    # The tools whose schemas are invalid.
    invalid: set[str]


def read(document: Entry) -> Belt:
    """Return the configuration of a document, which is valid or nearly so."""

    def entries(section: str, name: str) -> dict[str, Entry]:
        return {entry[name]: entry for entry in document.get(section) or ()}

    tools = entries("tools", "key")
    loadouts = [*BUILT_IN_LOADOUTS, *(document.get("loadouts") or ())]
    return Belt(
        tools=tools,
        plugins=entries("plugins", "name"),
        toolkits=entries("toolkits", "key"),
        loadouts={entry["name"].lower(): entry for entry in loadouts},
        agents=entries("agents", "key"),
        sub_apps=list(document.get("sub_apps") or ()),
        invalid={key for key, tool in tools.items() if not has_valid_schemas(tool)},
    )


def config_of(agent: Entry, now: datetime | None) -> dict[str, bool]:
    """Return an agent's switches and overrides at a time. Without a time, nothing ends."""
    ends = agent.get("ends") or {}
    config = {key: on for key, on in (agent.get("tools_config") or {}).items() if on is not None}
    now_on = {
        key: ends[key].get("then") if _has_passed(ends.get(key), now) else on for key, on in config.items()
    }
    return {key: on for key, on in now_on.items() if on is not None}


def _has_passed(end: Entry | None, now: datetime | None) -> bool:
    return now is not None and end is not None and datetime.fromisoformat(end["at"]) <= now


def _edited_agent(agent: Entry, change: Entry, now: datetime | None) -> Entry:
    """Return an agent's entry after a change. What has ended is written down first, what changes is permanent."""
    before = config_of(agent, now)
    ends = {key: end for key, end in (agent.get("ends") or {}).items() if not _has_passed(end, now)}
    result = {**agent, "tools_config": before, "ends": ends, **change}
    if "ends" not in change:
        config = result["tools_config"] or {}
        result["ends"] = {key: end for key, end in ends.items() if config.get(key) is before.get(key)}
    return result


def edited(document: Entry, edits: Mapping[str, Iterable[Entry]], now: datetime | None) -> Entry:
    """Return the document after an operator's change: each entry replaces the keys that it names."""
    result = dict(document)
    for section, changes in edits.items():
        name = "name" if section in ("plugins", "loadouts") else "key"
        entries = {entry[name]: entry for entry in result.get(section) or ()}
        for change in changes:
            entry = dict(entries.get(change[name], {}))
            if "blocked" in change:
                entry.pop("block_ends", None)
            entries[change[name]] = (
                _edited_agent(entry, change, now) if section == "agents" else {**entry, **change}
            )
        result[section] = list(entries.values())
    return result


def plugin_of(belt: Belt, tool: Entry) -> Entry:
    """Return the plugin of a tool, an empty entry if it has none."""
    return belt.plugins.get(tool.get("plugin") or "", {})


def category_of(belt: Belt, tool: Entry) -> str:
    """Return the category of a tool: its own, its plugin's, or that of the plugin's name, in lower case."""
    name = tool.get("plugin") or ""
    own = tool.get("category") or plugin_of(belt, tool).get("category")
    return str(own or CATEGORY_OF_PLUGIN.get(name.lower(), "")).lower()


def is_tool(tool: Entry) -> bool:
    """Return whether an entry is a tool, not a prompt, a resource, a template or an elicitation."""
    return (tool.get("kind") or "tool") == "tool"


def uses(entries: Iterable[Any] | None) -> dict[str, Entry | None]:
    """Return the options by tool of a toolkit's members or an agent's always-on tools, in their order."""
    result: dict[str, Entry | None] = {}
    for entry in entries or ():
        name, options = (entry, None) if isinstance(entry, str) else (entry["tool"], entry.get("options"))
        result.setdefault(name, options)
    return result


def members(toolkit: Entry) -> dict[str, Entry | None]:
    """Return the options of a toolkit's members, in their order."""
    return uses(toolkit.get("members"))


def toolkits_of(belt: Belt, key: str) -> list[str]:
    """Return the keys of the toolkits that have a tool, in the order of the toolkits."""
    return [name for name, toolkit in belt.toolkits.items() if key in members(toolkit)]


def chain_of(belt: Belt, name: str) -> list[Entry]:
    """Return a loadout and those that it extends: up to a repetition, or one that does not exist."""
    chain: list[Entry] = []
    while (entry := belt.loadouts.get(name.lower())) is not None and entry not in chain:
        chain.append(entry)
        name = entry.get("parent") or ""
    return chain


def schema_of(tool: Entry) -> Any:
    """Return the schema of a tool's arguments."""
    return tool.get("input_schema") or {"type": "object"}


def has_valid_schemas(tool: Entry) -> bool:
    """Return whether a tool's schemas are valid, and refer to nothing outside it."""
    schemas = (schema_of(tool), tool.get("output_schema") or {})
    return all(_is_valid(json.dumps(schema)) and not _refers_outside(schema) for schema in schemas)


@functools.cache
def _is_valid(schema: str) -> bool:
    return META_SCHEMA.is_valid(json.loads(schema))


def _refers_outside(schema: Any) -> bool:
    if isinstance(schema, Mapping):
        references = [schema.get("$ref"), schema.get("$dynamicRef")]
        outside = any(isinstance(it, str) and not it.startswith("#") for it in references)
        return outside or any(_refers_outside(value) for value in schema.values())
    return isinstance(schema, list) and any(_refers_outside(value) for value in schema)


def risks_of(tool: Entry) -> list[str]:
    """Return the risk that a tool states, and that of its approved version while another waits for review."""
    if not is_tool(tool):
        return []
    risks = {_risk(tool.get("annotations"))}
    if approved := tool.get("approved_version"):
        risks.add(_risk(approved.get("annotations")))
    return [risk for risk in ("writes", "destructive", "unstated") if risk in risks]


def _risk(hints: Entry | None) -> str:
    hints = hints or {}
    if hints.get("readOnlyHint") is True:
        return ""
    return {True: "destructive", False: "writes"}.get(hints.get("destructiveHint"), "unstated")  # type: ignore[arg-type]
