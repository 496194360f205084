"""What exists? Tools, plugins, toolkits, loadouts and sub-apps as frozen values, and the compiled catalog.

A catalog is compiled once per number and then only read. Schemas stay text until somebody is granted them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbelt.core import code as in_code
from toolbelt.core import keys, schema

CATEGORIES = (
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
)

# The seed's table of plugin names (Tool Loadouts: Plugin name reference), for plugins that state no category.
PLUGIN_CATEGORIES: Mapping[str, str] = {
    keys.fold(name): category
    for category, names in {
        "filesystem": ("file", "batchEdit", "diff", "notebook", "migration"),
        "git": ("git",),
        "github": ("github",),
        "shell": ("shell", "environment", "clipboard", "runtime"),
        "web": ("web", "browser"),
        "search": ("search", "websearch"),
        "network": ("tailscale",),
        "memory": ("memory",),
        "orchestration": ("tasks", "sessions", "mcp", "mcpEcosystem", "capabilities", "channels"),
        "analysis": ("think", "parityDocs", "skillParity", "benchmark", "usage"),
        "scheduling": ("scheduler",),
        "multimodal": ("multimodal",),
        "security": ("policy", "encoding"),
    }.items()
    for name in names
}

PluginStatus = Literal["ready", "failed"]
ToolChoice = Literal["auto", "required"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed provider of tools. ``active`` is the operator's, ``status`` what a process found.

    ``upstream`` is the text of the connection (:mod:`toolbelt.core.connections`) of one that is an MCP server; empty:
    it is Python code.
    """

    name: str
    namespace: str = ""
    title: str = ""
    description: str = ""
    category: str = ""
    status: PluginStatus = "ready"
    active: bool = True
    trusted: bool = False
    blocked: bool = False
    upstream: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One function that a model can call. The JSON fields are texts; empty means not given.

    ``tokens`` is the o200k count of the JSON sent, counted when the tool is stored. ``approved`` is the
    version (see :func:`version`) that an operator approved; empty: nothing was ever held. ``approved_version``
    is what that version said, as long as another one waits for approval.
    """

    key: str
    plugin: str = ""
    title: str = ""
    description: str = ""
    category: str = ""
    default_on: bool = False
    input_schema: str = schema.EMPTY_TEXT
    output_schema: str = ""
    annotations: str = ""
    policy: str = ""
    blocked: bool = False
    retired: bool = False
    seen: bool = True
    approved: str = ""
    approved_version: str = ""
    upstream_name: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A tool in a toolkit, with the options that the toolkit hands it (None: none)."""

    tool: str
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When a message asks for a focus: ``any`` of these, ``all`` of these groups, ``none`` of those."""

    name: str
    any: tuple[str, ...] | None = None
    all: tuple[tuple[str, ...], ...] | None = None
    none: tuple[str, ...] = ()
    focus: tuple[str, ...] | None = None
    tool_choice: ToolChoice = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A named bundle of tools with one switch, policy text and triggers; members are in order.

    ``plugin`` names the plugin whose code owns it (see :mod:`toolbelt.core.code`); empty: operators do.
    """

    key: str
    title: str = ""
    description: str = ""
    plugin: str = ""
    members: tuple[Member, ...] = ()
    policy: str = ""
    policy_when_off: str = ""
    tool_notes: Mapping[str, str] = field(default_factory=dict)
    triggers: tuple[Trigger, ...] = ()
    examples: str = ""
    blocked: bool = False

    def in_order(self, tools: Iterable[str]) -> tuple[str, ...]:
        """Give those of the tools that are members, in the members' order."""
        wanted = set(tools)
        return tuple(member.tool for member in self.members if member.tool in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loadout:
    """A named, inheritable profile. Its names and patterns are compared ignoring case."""

    name: str
    description: str = ""
    parent: str = ""
    plugins: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    discoverable: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubApp:
    """An application that embeds agents and binds tools to them by name."""

    key: str
    title: str = ""
    description: str = ""
    tool_names: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


def sent(name: str, description: str, input_schema: Mapping[str, Any]) -> str:
    """Give the JSON whose tokens a tool costs: name, description and input schema, in canonical form."""
    return schema.canonical({"description": description, "input_schema": input_schema, "name": name})


def version(tool: Tool) -> str:
    """Give the hash that an approval holds a tool to: of its name, description and schema."""
    text = sent(
        tool.upstream_name or tool.key, tool.description, schema.mapping(tool.input_schema, schema.EMPTY)
    )
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def name_at_server(tool: Tool, namespace: str) -> str:
    """Give what a tool is called by the upstream server that offers it under this namespace."""
    if tool.upstream_name or not namespace:
        return tool.upstream_name or tool.key
    return tool.key.removeprefix(namespace + keys.SEPARATOR)


def is_changed(tool: Tool) -> bool:
    """Say whether the tool differs from the version that an operator approved."""
    return bool(tool.approved) and version(tool) != tool.approved


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """All that exists, with the indexes that a question needs. Made by :func:`compile_`.

    ``toolkits_of`` and ``tools_of_*`` are by key and in order; ``derived`` is where the rooms above keep
    what they worked out once for this catalog (loadout views, definitions, policy sections). ``code`` holds
    what speaks for toolkits in code; ask :meth:`voice`.
    """

    number: int
    stamp: str
    categories: tuple[str, ...]
    plugins: Mapping[str, Plugin]
    tools: Mapping[str, Tool]
    toolkits: Mapping[str, Toolkit]
    loadouts: Mapping[str, Loadout]
    sub_apps: Mapping[str, SubApp]
    toolkits_of: Mapping[str, tuple[Toolkit, ...]]
    position: Mapping[str, int]
    tools_of_plugin: Mapping[str, tuple[str, ...]]
    tools_of_category: Mapping[str, tuple[str, ...]]
    default_on: tuple[str, ...]
    bound: Mapping[str, tuple[tuple[str, str], ...]]
    with_off_text: tuple[Toolkit, ...]
    with_options: frozenset[str]
    with_own_policy: frozenset[str]
    code: in_code.Voices = field(default_factory=dict)
    derived: dict[Any, Any] = field(default_factory=dict)

    def in_order(self, toolkits: Iterable[str]) -> list[Toolkit]:
        """Give those of the named toolkits that exist, in the order of the toolkits."""
        known = [self.toolkits[key] for key in toolkits if key in self.toolkits]
        return sorted(known, key=lambda toolkit: self.position[toolkit.key])

    def category(self, tool: Tool) -> str:
        """Name the tool's category: its own, else its plugin's, else the seed's for that plugin's name."""
        return tool.category or _plugin_category(self.plugins.get(tool.plugin), tool.plugin)

    def voice(self, toolkit: Toolkit) -> in_code.Voice | None:
        """Give the code that speaks for the toolkit; None: its row does (see :mod:`toolbelt.core.code`)."""
        owner = self.plugins.get(toolkit.plugin) if toolkit.plugin else None
        if owner is None or not owner.active or owner.status == "failed":
            return None
        return self.code.get((owner.name, toolkit.key))


def compile_(
    *,
    number: int = 0,
    stamp: str = "",
    categories: Iterable[str] = (),
    plugins: Iterable[Plugin] = (),
    tools: Iterable[Tool] = (),
    toolkits: Iterable[Toolkit] = (),
    loadouts: Iterable[Loadout] = (),
    sub_apps: Iterable[SubApp] = (),
    code: in_code.Voices | None = None,
) -> Catalog:
    """Index the values. ``toolkits`` come in order (position, then key). Never raises on unsound values:

    a member, a bound tool or a plugin that is not there is passed over, as resolution must always answer.
    """
    plugin_by_name = {plugin.name: plugin for plugin in plugins}
    tool_by_key = {tool.key: tool for tool in tools}
    of_plugin: dict[str, list[str]] = {}
    of_category: dict[str, list[str]] = {}
    for tool in tool_by_key.values():
        if tool.plugin:
            of_plugin.setdefault(tool.plugin, []).append(tool.key)
        category = tool.category or _plugin_category(plugin_by_name.get(tool.plugin), tool.plugin)
        if category:
            of_category.setdefault(category, []).append(tool.key)
    toolkit_by_key = {toolkit.key: toolkit for toolkit in toolkits}
    over: dict[str, list[Toolkit]] = {}
    with_options = set()
    for toolkit in toolkit_by_key.values():
        for member in toolkit.members:
            if member.tool in tool_by_key and toolkit not in over.setdefault(member.tool, []):
                over[member.tool].append(toolkit)
            if member.options:
                with_options.add(member.tool)
    sub_app_by_key = {sub_app.key: sub_app for sub_app in sub_apps}
    bound: dict[str, list[tuple[str, str]]] = {}
    for sub_app in sub_app_by_key.values():
        for agent in sub_app.agents:
            bound.setdefault(agent, []).extend(
                (t, sub_app.key) for t in sub_app.tool_names if t in tool_by_key
            )
    return Catalog(
        number=number,
        stamp=stamp,
        categories=tuple(categories),
        plugins=plugin_by_name,
        tools=tool_by_key,
        toolkits=toolkit_by_key,
        loadouts={keys.fold(loadout.name): loadout for loadout in loadouts},
        sub_apps=sub_app_by_key,
        toolkits_of={key: tuple(found) for key, found in over.items()},
        position={key: place for place, key in enumerate(toolkit_by_key)},
        tools_of_plugin={name: tuple(found) for name, found in of_plugin.items()},
        tools_of_category={name: tuple(found) for name, found in of_category.items()},
        default_on=tuple(tool.key for tool in tool_by_key.values() if tool.default_on),
        bound={agent: tuple(found) for agent, found in bound.items()},
        with_off_text=tuple(toolkit for toolkit in toolkit_by_key.values() if toolkit.policy_when_off),
        with_options=frozenset(with_options),
        with_own_policy=frozenset(
            t.key for t in tool_by_key.values() if t.policy.strip() and t.key not in over
        ),
        code={} if code is None else code,
    )


def _plugin_category(plugin: Plugin | None, name: str) -> str:
    if plugin is not None and plugin.category:
        return plugin.category
    return PLUGIN_CATEGORIES.get(keys.fold(name), "") if name else ""
