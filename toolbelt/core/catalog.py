"""The catalog: tools, plugins, toolkits, loadouts and sub-apps as frozen values, compiled with indexes.

A catalog is compiled once per revision and then only read. Schemas stay text until an agent is granted their tool.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from toolbelt.core import call_limits, details, keys, schema, toolkit_hooks

_Parameters = ParamSpec("_Parameters")
_Value = TypeVar("_Value")


class ToolCategory:
    """The thirteen built-in categories, as constants; an operator may add others."""

    FILESYSTEM: Final = "filesystem"
    GIT: Final = "git"
    GITHUB: Final = "github"
    SHELL: Final = "shell"
    WEB: Final = "web"
    SEARCH: Final = "search"
    NETWORK: Final = "network"
    MEMORY: Final = "memory"
    ORCHESTRATION: Final = "orchestration"
    ANALYSIS: Final = "analysis"
    SCHEDULING: Final = "scheduling"
    MULTIMODAL: Final = "multimodal"
    SECURITY: Final = "security"


CATEGORIES: tuple[str, ...] = (
    ToolCategory.FILESYSTEM,
    ToolCategory.GIT,
    ToolCategory.GITHUB,
    ToolCategory.SHELL,
    ToolCategory.WEB,
    ToolCategory.SEARCH,
    ToolCategory.NETWORK,
    ToolCategory.MEMORY,
    ToolCategory.ORCHESTRATION,
    ToolCategory.ANALYSIS,
    ToolCategory.SCHEDULING,
    ToolCategory.MULTIMODAL,
    ToolCategory.SECURITY,
)

# The specification's table of plugin names (Tool Loadouts: Plugin name reference), for plugins that state no category.
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
Runner = Literal["code", "upstream", "client"]
Kind = Literal["tool", "prompt", "resource", "template", "elicitation"]
KINDS: tuple[Kind, ...] = ("tool", "prompt", "resource", "template", "elicitation")
ToolChoice = Literal["auto", "required"]
# What an agent or a loadout may deny: tools that state one of these risks, or none (toolbelt.core.risks).
DeniedRisk = Literal["writes", "destructive", "unstated"]
DENIED_RISKS: tuple[DeniedRisk, ...] = ("writes", "destructive", "unstated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed provider of tools. ``active`` is set by the operator, ``status`` by the process that loads it.
    ``block_ends`` is when its block ends (None: never).

    ``upstream`` is the JSON of the connection (:mod:`toolbelt.core.connections`) of an MCP server. The synchronization
    with installed code sets ``in_code``. A plugin with neither is the client's: the agent's own program runs its tools,
    and ``declared_by`` names the agents whose tokens may declare them. ``not_running`` are those of its
    tools that no running process can run. ``preapproved`` are versions of tools that an operator approved by their
    hash, before they are declared or listed. ``keep_descriptions``: agents keep the approved descriptions of a server's
    tools, whatever the server lists (:mod:`toolbelt.core.imported.rewordings`). ``instructions`` is the hash of those
    that a server states, and ``instructions_seen`` of those that an operator has seen. ``reject_tools`` are patterns of
    the server's names for tools that are rejected when it first lists them; so are all that match none of
    ``reject_all_but``, if there are any (:mod:`toolbelt.core.imported.rejections`).
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
    block_ends: datetime | None = None
    upstream: str = ""
    in_code: bool = False
    declared_by: tuple[str, ...] = ()
    not_running: tuple[str, ...] = ()
    preapproved: Mapping[str, str] = field(default_factory=dict)
    keep_descriptions: bool = False
    instructions: str = ""
    instructions_seen: str = ""
    reject_tools: tuple[str, ...] = ()
    reject_all_but: tuple[str, ...] = ()

    @property
    def runner(self) -> Runner:
        """Return who runs the plugin's tools: code in Toolbelt, an upstream server, or the agent's own program."""
        if self.upstream:
            return "upstream"
        return "code" if self.in_code else "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One function that a model can call, or another kind of entry that an upstream server offers: a prompt, a
    resource, a template of resources, or the right to ask the user. JSON fields are text; empty means "not given".

    Entries that are not tools are granted by the same rules and are never among an agent's tools. ``upstream_name`` is
    what the server calls the entry: a prompt's name, a resource's URI, a template's URI template. ``details`` is
    everything else that the server lists for it, and its version (:mod:`toolbelt.core.tool_versions`) covers it.

    ``tokens`` is the o200k count of the tool's JSON, counted when it is stored; ``schema_problem`` is why a model
    cannot be given the tool, checked at the same time: only what nothing else checks has one, such as a row of a
    fixture. ``approved`` is the version that an operator approved; empty if none was ever held for approval. The
    ``details`` of a tool are its full output schema, icons and ``_meta``. They reach clients only while
    ``details_approved`` is their hash; ``rejected:`` before the hash means that an operator rejected them.
    ``approved_version`` is the approved version while another waits for approval.
    ``repairs`` are those of the schemas that its server lists (:mod:`toolbelt.core.imported.repairs`).
    ``declared_versions`` are those that agents' programs declared lately (:mod:`toolbelt.core.declared_versions`).
    ``varies``: unused connections listed different descriptions, of which agents keep the approved one.
    ``keep_description``: they keep it in any case, because an operator decided so.
    ``recorded_fields`` are the paths of the arguments that records of calls keep (:mod:`toolbelt.core.chosen_fields`).
    ``brings`` are the labels that a call of it leaves in its session (docs/semantics.md: Labels).
    """

    key: str
    kind: Kind = "tool"
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
    block_ends: datetime | None = None
    retired: bool = False
    seen: bool = True
    approved: str = ""
    details: str = ""
    details_approved: str = ""
    approved_version: str = ""
    upstream_name: str = ""
    tokens: int = 0
    repairs: str = ""
    declared_versions: str = ""
    schema_problem: str = ""
    varies: bool = False
    keep_description: bool = False
    recorded_fields: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()


def schema_problem(kind: Kind, input_schema: str, output_schema: str = "") -> str:
    """Return why a model cannot be given a tool with these schemas; empty if it can, and for other kinds."""
    for name, text in (("input", input_schema), ("output", output_schema)):
        if kind == "tool" and text and (problem := schema.problem_of_text(text)):
            return f"its {name} schema is invalid: {problem}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A tool in a toolkit, with the options that the toolkit passes to it (None: no options)."""

    tool: str
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Patterns that give a message a focus: ``any`` of these, one of each group in ``all``, and ``none`` of those."""

    name: str
    any: tuple[str, ...] | None = None
    all: tuple[tuple[str, ...], ...] | None = None
    none: tuple[str, ...] = ()
    focus: tuple[str, ...] | None = None
    tool_choice: ToolChoice = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A named bundle of tools with one switch, policy text and triggers; members are in order.

    ``plugin`` is the plugin whose code owns the toolkit (see :mod:`toolbelt.core.toolkit_hooks`); empty if operators
    own it. ``brings`` are labels that a call of any member leaves in its session.
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
    block_ends: datetime | None = None
    brings: tuple[str, ...] = ()

    def in_order(self, tools: Iterable[str]) -> tuple[str, ...]:
        """Return those of the tools that are members, in the members' order."""
        keys_ = set(tools)
        return tuple(member.tool for member in self.members if member.tool in keys_)


def as_of(value: _Value, now: datetime) -> _Value:
    """Return a plugin, a tool or a toolkit as it is at ``now``: unblocked if its block has ended by then. Anything else
    is returned unchanged.
    """
    if (
        isinstance(value, (Plugin, Tool, Toolkit))
        and value.block_ends is not None
        and value.block_ends <= now
    ):
        return dataclasses.replace(value, blocked=False, block_ends=None)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Loadout:
    """A named profile that may inherit from another. Its names and patterns ignore case."""

    name: str
    description: str = ""
    parent: str = ""
    plugins: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    discoverable: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    denied_risks: tuple[DeniedRisk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubApp:
    """An application that embeds agents and binds tools to them by name."""

    key: str
    title: str = ""
    description: str = ""
    tool_names: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


Effect = Literal["deny", "ask", "allow"]
EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """A rule on calls (:mod:`toolbelt.core.gate_rules`): for whom, for which tools, when, and its effect.

    It concerns the calls of any of ``agents``, agents of ``kinds`` and agents in ``sub_apps`` (none: of everyone), of
    any of ``tools`` (keys, or the beginnings of keys with ``*``) and of the tools with one of the ``toolkits``,
    ``plugins`` and ``risks`` (none: of every tool). ``when`` and ``unless`` are conditions as JSON
    (:mod:`toolbelt.core.conditions`); empty: none. It applies in sessions that have all of ``labels``, and in those
    that lack one of ``without``; and to calls beyond the limit ``more_than``. ``reason`` is for the model.
    ``announce``: a refusal also names the rule. ``observed``: what the rule would do is recorded, and not done.
    ``ends``: from when on it has no effect. A rule that asks needs ``approvals`` by as many people, who are
    in one of the groups ``approvers`` (empty: all who may decide), and waits ``expires`` seconds for them (0: as the
    setting says).
    """

    key: str
    effect: Effect
    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sub_apps: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    toolkits: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    risks: tuple[DeniedRisk, ...] = ()
    when: str = ""
    unless: str = ""
    labels: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    more_than: call_limits.CallLimit | None = None
    reason: str = ""
    announce: bool = False
    observed: bool = False
    ends: datetime | None = None
    approvals: int = 1
    approvers: tuple[str, ...] = ()
    expires: int = 0


def model_json(name: str, description: str, input_schema: Mapping[str, Any]) -> str:
    """Return the JSON whose tokens a tool costs: name, description and input schema, in canonical form."""
    return schema.canonical({"description": description, "input_schema": input_schema, "name": name})


def is_for_apps_only(tool: Tool) -> bool:
    """Return whether only a host's apps may call a tool: its server says so, or said so in the approved version, while
    another awaits review.
    """
    if details.is_for_apps_only(tool.details):
        return True
    if '"visibility"' not in tool.approved_version:
        return False
    before = schema.mapping(tool.approved_version, {}).get("details")
    return bool(before) and details.is_for_apps_only(schema.canonical(before))


def name_at_server(tool: Tool, namespace: str) -> str:
    """Return the upstream server's name for a tool that it offers under this namespace."""
    if tool.upstream_name or not namespace:
        return tool.upstream_name or tool.key
    return tool.key.removeprefix(namespace + keys.SEPARATOR)


def keeps_description(tool: Tool, plugin: Plugin | None) -> bool:
    """Return whether agents keep the approved description of a server's tool, whatever its server lists."""
    return (
        plugin is not None and bool(plugin.upstream) and (tool.keep_description or plugin.keep_descriptions)
    )


def elicitation_key(plugin: Plugin) -> str:
    """Return the key of the entry that grants an upstream server the right to ask users."""
    return (
        keys.fit("elicitation", plugin.namespace)
        if plugin.namespace
        else keys.fit(f"{plugin.name}_elicitation")
    )


def elicitation(stored: Catalog, plugin: Plugin) -> Tool | None:
    """Return the entry that grants an upstream server the right to ask users, if it exists."""
    return _elicitations(stored).get(plugin.name)


def may_ask(stored: Catalog, plugin: Plugin) -> bool:
    """Return whether an operator approved that the server asks users, so that the server may be offered it."""
    entry = elicitation(stored, plugin)
    return entry is not None and entry.seen and not (entry.blocked or entry.retired)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """Everything that exists, with the indexes that a request needs; built by :func:`compile_`.

    ``toolkits_of`` and ``tools_of_*`` are by key and in order; ``non_tools`` are the keys of ``tools`` that no model
    has: prompts, resources and so on, and tools for apps only. ``derived`` keeps what functions with :func:`derived`
    computed from this catalog (loadout views, definitions, policy sections). ``code`` holds the hooks of toolkits in
    code; use :meth:`hooks`. ``purges`` are the numbers of the latest purges, by what must leave every conversation:
    ``tool fetch``, ``toolkit kb``. ``brings`` are the labels of the tools that bring some, by key. ``count_tokens``
    counts the tokens of a policy text or a search result; without it, policies cost nothing. ``block_ends`` are the
    times at which blocks end, the first first. Because the core has no clock, ended blocks stay here until
    :meth:`as_of` is called with a time.
    """

    number: int
    stamp: str
    categories: tuple[str, ...]
    plugins: Mapping[str, Plugin]
    tools: Mapping[str, Tool]
    toolkits: Mapping[str, Toolkit]
    loadouts: Mapping[str, Loadout]
    sub_apps: Mapping[str, SubApp]
    gate_rules: Mapping[str, GateRule]
    toolkits_of: Mapping[str, tuple[Toolkit, ...]]
    position: Mapping[str, int]
    tools_of_plugin: Mapping[str, tuple[str, ...]]
    tools_of_category: Mapping[str, tuple[str, ...]]
    default_on: tuple[str, ...]
    non_tools: frozenset[str]
    bound: Mapping[str, tuple[tuple[str, str], ...]]
    with_off_text: Mapping[str, Toolkit]
    with_options: frozenset[str]
    with_own_policy: frozenset[str]
    with_invalid_schema: frozenset[str]
    brings: Mapping[str, frozenset[str]] = field(default_factory=dict)
    block_ends: tuple[datetime, ...] = ()
    code: toolkit_hooks.HooksByToolkit = field(default_factory=dict)
    purges: Mapping[str, int] = field(default_factory=dict)
    count_tokens: Callable[[str], int] | None = None
    derived: dict[Any, Any] = field(default_factory=dict)

    @property
    def last_purge(self) -> int:
        """Return the number of the last purge; 0 if there was none."""
        return max(self.purges.values(), default=0)

    @property
    def tool_count(self) -> int:
        """The number of tools, including retired ones; prompts, resources and so on do not count."""
        return len(self.tools) - len(self.non_tools)

    def as_of(self, now: datetime) -> Catalog:
        """Return the catalog as it is at ``now``, without the blocks that have ended by then; its stamp says so."""
        ended = bisect.bisect_right(self.block_ends, now)
        return _after(self, self.block_ends[ended - 1]) if ended else self

    def next_end(self) -> datetime | None:
        """Return when the next block ends."""
        return self.block_ends[0] if self.block_ends else None

    def in_order(self, toolkits: Iterable[str]) -> list[Toolkit]:
        """Return those of the named toolkits that exist, in stored order."""
        existing = [self.toolkits[key] for key in toolkits if key in self.toolkits]
        return sorted(existing, key=lambda toolkit: self.position[toolkit.key])

    def category(self, tool: Tool) -> str:
        """Return the tool's category: its own, else its plugin's, else the default for its plugin's name."""
        return _category_of(tool, self.plugins)

    def is_not_running(self, key: str) -> bool:
        """Return whether no running process can run the tool, though its plugin is code."""
        plugin = self.plugins.get(self.tools[key].plugin)
        return plugin is not None and key in plugin.not_running

    def runner(self, tool: Tool) -> Runner:
        """Return who runs the tool; one that belongs to no plugin is the client's."""
        plugin = self.plugins.get(tool.plugin)
        return "client" if plugin is None else plugin.runner

    def hooks(self, toolkit: Toolkit) -> toolkit_hooks.ToolkitHooks | None:
        """Return the hooks of a toolkit in code; None if its stored texts apply (see
        :mod:`toolbelt.core.toolkit_hooks`).
        """
        owner = self.plugins.get(toolkit.plugin) if toolkit.plugin else None
        if owner is None or not owner.active or owner.status == "failed":
            return None
        return self.code.get((owner.name, toolkit.key))


def derived(
    compute: Callable[Concatenate[Catalog, _Parameters], _Value],
) -> Callable[Concatenate[Catalog, _Parameters], _Value]:
    """Make a function of a catalog compute its value once for the same further arguments.

    The value is kept with the catalog. If two threads compute it, both get the first.
    """

    @functools.wraps(compute)
    def kept(stored: Catalog, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Value:
        place = (compute, *args, *kwargs.items())
        try:
            return stored.derived[place]  # type: ignore[no-any-return]
        except KeyError:
            return stored.derived.setdefault(place, compute(stored, *args, **kwargs))  # type: ignore[no-any-return]

    return kept


@derived
def _after(stored: Catalog, at: datetime) -> Catalog:
    """Return the catalog without the blocks that have ended by ``at``, which is one of their ends."""
    return replace(
        stored,
        stamp=f"{stored.stamp}+{int(at.timestamp())}" if stored.stamp else "",
        plugins=[as_of(plugin, at) for plugin in stored.plugins.values()],
        tools=[as_of(tool, at) for tool in stored.tools.values()],
        toolkits=[as_of(toolkit, at) for toolkit in stored.toolkits.values()],
    )


@derived
def _elicitations(stored: Catalog) -> Mapping[str, Tool]:
    """Return the entry of each server that grants it the right to ask users, by plugin."""
    entries = [stored.tools[key] for key in sorted(stored.non_tools)]
    return {entry.plugin: entry for entry in reversed(entries) if entry.kind == "elicitation"}


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
    gate_rules: Iterable[GateRule] = (),
    code: toolkit_hooks.HooksByToolkit | None = None,
    purges: Mapping[str, int] | None = None,
    count_tokens: Callable[[str], int] | None = None,
) -> Catalog:
    """Index the values. ``toolkits`` are in order (position, then key).

    Never raises on invalid values: a member, a bound tool or a plugin that does not exist is skipped, because a request
    must always be answered.
    """
    plugin_by_name = {plugin.name: plugin for plugin in plugins}
    tool_by_key = {tool.key: tool for tool in tools}
    toolkit_by_key = {toolkit.key: toolkit for toolkit in toolkits}
    sub_app_by_key = {sub_app.key: sub_app for sub_app in sub_apps}
    toolkits_of = _toolkits_of(tool_by_key, toolkit_by_key)
    all_tools = tool_by_key.values()
    return Catalog(
        number=number,
        stamp=stamp,
        categories=tuple(categories),
        plugins=plugin_by_name,
        tools=tool_by_key,
        toolkits=toolkit_by_key,
        loadouts={keys.fold(loadout.name): loadout for loadout in loadouts},
        sub_apps=sub_app_by_key,
        gate_rules={rule.key: rule for rule in gate_rules},
        toolkits_of=toolkits_of,
        position={key: position for position, key in enumerate(toolkit_by_key)},
        tools_of_plugin=_grouped((tool.plugin, tool.key) for tool in all_tools),
        tools_of_category=_grouped((_category_of(tool, plugin_by_name), tool.key) for tool in all_tools),
        default_on=tuple(tool.key for tool in all_tools if tool.default_on),
        non_tools=frozenset(tool.key for tool in all_tools if tool.kind != "tool" or is_for_apps_only(tool)),
        bound=_bound(tool_by_key, sub_app_by_key),
        with_off_text={key: toolkit for key, toolkit in toolkit_by_key.items() if toolkit.policy_when_off},
        with_options=frozenset(
            member.tool for kit in toolkit_by_key.values() for member in kit.members if member.options
        ),
        with_own_policy=frozenset(
            tool.key for tool in all_tools if tool.policy.strip() and tool.key not in toolkits_of
        ),
        with_invalid_schema=frozenset(tool.key for tool in all_tools if tool.schema_problem),
        brings=_brings(tool_by_key, toolkit_by_key),
        block_ends=_block_ends(plugin_by_name, tool_by_key, toolkit_by_key),
        code={} if code is None else code,
        purges={} if purges is None else purges,
        count_tokens=count_tokens,
    )


def _grouped(pairs: Iterable[tuple[str, _Value]]) -> dict[str, tuple[_Value, ...]]:
    """Return the values by their first part, in order; those without one are left out."""
    groups: dict[str, list[_Value]] = {}
    for name, value in pairs:
        if name:
            groups.setdefault(name, []).append(value)
    return {name: tuple(values) for name, values in groups.items()}


def _toolkits_of(
    tools: Mapping[str, Tool], toolkits: Mapping[str, Toolkit]
) -> dict[str, tuple[Toolkit, ...]]:
    """Return the toolkits of each tool, each once."""
    return _grouped(
        (tool, toolkit)
        for toolkit in toolkits.values()
        for tool in dict.fromkeys(member.tool for member in toolkit.members)
        if tool in tools
    )


def _bound(
    tools: Mapping[str, Tool], sub_apps: Mapping[str, SubApp]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the tools that sub-apps bind to each agent, with the sub-app."""
    return _grouped(
        (agent, (tool, sub_app.key))
        for sub_app in sub_apps.values()
        for agent in sub_app.agents
        for tool in sub_app.tool_names
        if tool in tools
    )


def _brings(tools: Mapping[str, Tool], toolkits: Mapping[str, Toolkit]) -> Mapping[str, frozenset[str]]:
    """Return the labels that calls of tools bring: their own, and those of all toolkits that have them."""
    brings = {tool.key: frozenset(tool.brings) for tool in tools.values() if tool.brings}
    for toolkit in toolkits.values():
        for member in toolkit.members if toolkit.brings else ():
            brings[member.tool] = brings.get(member.tool, frozenset()).union(toolkit.brings)
    return brings


def _block_ends(*blockable: Mapping[str, Plugin | Tool | Toolkit]) -> tuple[datetime, ...]:
    """Return when the blocks of these entries end, each time once."""
    ends = (entry.block_ends for entries in blockable for entry in entries.values())
    return tuple(sorted({at for at in ends if at is not None}))


def _category_of(tool: Tool, plugins: Mapping[str, Plugin]) -> str:
    """Return the tool's own category, or its plugin's; empty if it has none."""
    plugin = plugins.get(tool.plugin)
    of_plugin = plugin.category if plugin is not None else ""
    return tool.category or of_plugin or PLUGIN_CATEGORIES.get(keys.fold(tool.plugin), "")


def replace(
    stored: Catalog,
    *,
    stamp: str = "",
    plugins: Iterable[Plugin] | None = None,
    tools: Iterable[Tool] | None = None,
    toolkits: Iterable[Toolkit] | None = None,
    loadouts: Iterable[Loadout] | None = None,
    sub_apps: Iterable[SubApp] | None = None,
    gate_rules: Iterable[GateRule] | None = None,
) -> Catalog:
    """Return the catalog with other values of these kinds, as it would be after a change; it has no stamp unless one is
    given.
    """
    return compile_(
        number=stored.number,
        stamp=stamp,
        categories=stored.categories,
        plugins=stored.plugins.values() if plugins is None else plugins,
        tools=stored.tools.values() if tools is None else tools,
        toolkits=stored.toolkits.values() if toolkits is None else toolkits,
        loadouts=stored.loadouts.values() if loadouts is None else loadouts,
        sub_apps=stored.sub_apps.values() if sub_apps is None else sub_apps,
        gate_rules=stored.gate_rules.values() if gate_rules is None else gate_rules,
        code=stored.code,
        purges=stored.purges,
        count_tokens=stored.count_tokens,
    )
