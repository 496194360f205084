"""The kinds of entry in a belt and the fields of each, in the order in which they are written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pydantic

from toolbelt.core import agents, call_limits, catalog, connections, keys
from toolbelt.core.belts import fields

KindName = Literal["category", "plugin", "tool", "toolkit", "loadout", "agent", "sub_app", "gate_rule"]

# The form of entries' names and keys (toolbelt.core.keys), for the API's document. Rules check it.
_FORM = {"type": "string", "minLength": 1, "maxLength": keys.MAX_LENGTH}
EntryName = Annotated[
    fields.Name,
    pydantic.WithJsonSchema({**_FORM, "pattern": "^[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$"}),
]
Key = Annotated[fields.Name, pydantic.WithJsonSchema({**_FORM, "pattern": "^[a-zA-Z_][a-zA-Z0-9_-]*$"})]
_Text = fields.Text
_Texts = fields.Each[_Text]
_DeniedRisk = fields.Word[catalog.DeniedRisk]
_AgentKind = fields.Word[Literal["", agents.Kind]]


@dataclass(frozen=True, slots=True)
class Names:
    """What a field names: one entry of a kind, or several in a list or as keys. Without a kind, they need not exist.

    In a list, a name that is ``alike`` an earlier one is a repetition; None: names may be repeated.
    """

    kind: str = ""
    alike: Callable[[str], str] | None = str


class Upstream(fields.Fields):
    """How an MCP server is reached, by a command or at a URL, and which agents and sessions share a connection."""

    command: _Text | None = None
    args: _Texts | None = None
    env: fields.Pairs[_Text] | None = None
    cwd: _Text | None = None
    url: _Text | None = None
    headers: fields.Pairs[_Text] | None = None
    timeout: fields.Whole | None = None
    sharing: fields.Word[connections.Sharing] | None = None
    idle: fields.Whole | None = None
    max_connections: fields.Whole | None = None
    revision: fields.Word[connections.Revision] | None = None
    result_bytes: fields.Whole | None = None
    resource_bytes: fields.Whole | None = None
    sign_in: fields.Word[connections.SignIn] | None = None
    client_id: _Text | None = None
    client_secret: _Text | None = None
    issuer: _Text | None = None
    scopes: _Text | None = None


class Plugin(fields.Fields):
    """A provider of tools: installed code, an upstream server, or an agent's own program."""

    name: EntryName
    namespace: _Text | None = None
    title: _Text | None = None
    description: _Text | None = None
    category: Annotated[_Text | None, Names("category")] = None
    # "disabled" is an alias of active: false; it is read, never written.
    status: fields.Word[Literal["", "ready", "failed", "disabled"]] | None = None
    active: bool | None = None
    trusted: bool | None = None
    blocked: bool | None = None
    # When the block ends; missing: never.
    block_ends: fields.Moment | None = None
    upstream: Upstream | None = None
    # Set by the synchronization with installed code.
    in_code: bool | None = None
    # Agents whose tokens may declare the tools of a plugin that the agent's program runs.
    declared_by: Annotated[_Texts | None, Names()] = None
    # Tools that no running process can run; servers write it.
    not_running: Annotated[_Texts | None, Names()] = None
    preapproved: fields.Pairs[_Text] | None = None
    keep_descriptions: bool | None = None
    # A server's own names for tools, with * for any text, that are rejected when they are first listed.
    reject_tools: _Texts | None = None
    reject_all_but: _Texts | None = None
    # Set by the import of what a server lists.
    instructions: _Text | None = None
    instructions_seen: _Text | None = None


class Tool(fields.Fields):
    """A tool, or a prompt, a resource or another thing that an upstream server offers."""

    key: Key
    kind: fields.Word[Literal["", catalog.Kind]] | None = None
    title: _Text | None = None
    description: _Text | None = None
    plugin: Annotated[_Text | None, Names("plugin")] = None
    category: Annotated[_Text | None, Names("category")] = None
    default_on: bool | None = None
    input_schema: fields.Json | None = None
    output_schema: fields.Json | None = None
    annotations: fields.Json | None = None
    policy: _Text | None = None
    blocked: bool | None = None
    # When the block ends; missing: never.
    block_ends: fields.Moment | None = None
    retired: bool | None = None
    seen: bool | None = None
    approved: _Text | None = None
    details: fields.Json | None = None
    details_approved: _Text | None = None
    approved_version: fields.Json | None = None
    upstream_name: _Text | None = None
    # Set by the import of what a server lists.
    varies: bool | None = None
    keep_description: bool | None = None
    repairs: fields.Json | None = None
    # Paths of arguments that records of calls keep.
    recorded_fields: Annotated[_Texts | None, Names()] = None
    # Labels that a call leaves in its session, for gate rules.
    brings: Annotated[_Texts | None, Names()] = None


class Trigger(fields.Fields):
    """Patterns that give a message a focus: the tools for it."""

    name: fields.Name
    any: _Texts | None = None
    all: fields.Each[_Texts] | None = None
    none: _Texts | None = None
    focus: Annotated[_Texts | None, Names("tool", alike=None)] = None
    tool_choice: fields.Word[Literal["", catalog.ToolChoice]] | None = None


class Toolkit(fields.Fields):
    """A named bundle of tools with one switch, policy text and triggers."""

    key: Key
    title: _Text | None = None
    description: _Text | None = None
    # The plugin whose code owns the toolkit.
    plugin: Annotated[_Text | None, Names("plugin")] = None
    members: Annotated[fields.Each[fields.Use] | None, Names("tool")] = None
    policy: _Text | None = None
    policy_when_off: _Text | None = None
    tool_notes: Annotated[fields.Pairs[_Text] | None, Names("tool")] = None
    triggers: fields.Each[Trigger] | None = None
    examples: _Text | None = None
    blocked: bool | None = None
    # When the block ends; missing: never.
    block_ends: fields.Moment | None = None
    # Labels that a call of any member leaves in its session, for gate rules.
    brings: Annotated[_Texts | None, Names()] = None


class Loadout(fields.Fields):
    """A named profile that may inherit from another."""

    name: EntryName
    description: _Text | None = None
    parent: _Text | None = None
    plugins: Annotated[_Texts | None, Names(alike=keys.fold)] = None
    categories: Annotated[_Texts | None, Names("category", alike=keys.fold)] = None
    discoverable: Annotated[_Texts | None, Names(alike=keys.fold)] = None
    disabled: Annotated[_Texts | None, Names(alike=keys.fold)] = None
    denied_risks: Annotated[fields.Each[_DeniedRisk] | None, Names()] = None


class AgentBudget(fields.Fields):
    """Limits on an agent's active tools and tokens, and what happens when they are exceeded."""

    max_tools: fields.Whole | None = None
    max_tokens: fields.Whole | None = None
    on_exceed: fields.Word[Literal["", agents.OnExceed]] | None = None


class End(fields.Fields):
    """When a switch or an override expires, and its value afterwards."""

    at: fields.Moment
    then: bool | None = None
    by: _Text | None = None


class Agent(fields.Fields):
    """An agent, and what it has."""

    key: EntryName
    title: _Text | None = None
    description: _Text | None = None
    role: _Text | None = None
    model: _Text | None = None
    kind: fields.Word[Literal["", agents.Kind]] | None = None
    loadout: Annotated[_Text | None, Names("loadout")] = None
    tools: Annotated[fields.Each[fields.Use] | None, Names("tool")] = None
    tools_config: Annotated[fields.Pairs[bool] | None, Names("tool or toolkit")] = None
    # Which of them expire, by key: when, and the value afterwards.
    ends: fields.Pairs[End] | None = None
    allowed_toolkits: Annotated[_Texts | None, Names("toolkit")] = None
    initial_toolkits: Annotated[_Texts | None, Names("toolkit")] = None
    budget: AgentBudget | None = None
    protected: bool | None = None
    archived: bool | None = None
    session_loadouts: Annotated[_Texts | None, Names("loadout", alike=keys.fold)] = None
    subagent_kinds: Annotated[fields.Each[_AgentKind] | None, Names()] = None
    denied_risks: Annotated[fields.Each[_DeniedRisk] | None, Names()] = None
    mcp_loading: fields.Word[Literal["", agents.McpLoading]] | None = None


class SubApp(fields.Fields):
    """An application that embeds agents and binds tools to them."""

    key: EntryName
    title: _Text | None = None
    description: _Text | None = None
    tool_names: Annotated[_Texts | None, Names("tool")] = None
    agents: Annotated[_Texts | None, Names("agent")] = None


class CallLimit(fields.Fields):
    """How many calls may be made within a time (hour, day, 10m), and whose are counted together."""

    calls: fields.Whole | None = None
    per: _Text | None = None
    of: fields.Word[Literal["", call_limits.Of]] | None = None


class GateRule(fields.Fields):
    """A rule on calls: for whom, for which tools, when, and its effect."""

    key: EntryName
    # "deny" if it is left out.
    effect: fields.Word[Literal["", catalog.Effect]] | None = None
    # Calls of any of these agents, of agents of these kinds and in these sub-apps. None: of everyone.
    agents: Annotated[_Texts | None, Names("agent")] = None
    kinds: Annotated[fields.Each[_AgentKind] | None, Names()] = None
    sub_apps: Annotated[_Texts | None, Names("sub-app")] = None
    # Of any of these tools, with * for the rest of a key, and tools of any of these. None: of every tool.
    tools: Annotated[_Texts | None, Names(alike=keys.fold)] = None
    toolkits: Annotated[_Texts | None, Names("toolkit")] = None
    plugins: Annotated[_Texts | None, Names("plugin")] = None
    risks: Annotated[fields.Each[_DeniedRisk] | None, Names()] = None
    # Conditions on the arguments: a JSON Schema, or a mapping of arguments to schemas.
    when: fields.Json | None = None
    unless: fields.Json | None = None
    # It applies in sessions with all of these labels, and in those that lack one of these.
    labels: Annotated[_Texts | None, Names()] = None
    without: Annotated[_Texts | None, Names()] = None
    # It applies to calls beyond this number.
    more_than: CallLimit | None = None
    # What the model reads.
    reason: _Text | None = None
    announce: bool | None = None
    observed: bool | None = None
    ends: fields.Moment | None = None
    # Of a rule that asks: how many people have to approve a call (1 if it is left out), and within how many seconds.
    approvals: fields.Whole | None = None
    expires: fields.Whole | None = None
    # Of which groups they have to be. None: of any.
    approvers: Annotated[_Texts | None, Names()] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of entry: the section that lists it, and the field that names it (empty: the entry is a name).

    ``name_problem`` returns why a name is no name of this kind.
    """

    word: str
    section: str
    named_by: str
    model: Any
    name_problem: Callable[[str], str | None] = keys.name_problem

    def name_of(self, entry: object) -> object:
        """Return the value of the entry's name field; in an invalid entry, it may be anything."""
        if not self.named_by:
            return entry
        return entry.get(self.named_by) if isinstance(entry, Mapping) else None

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields that an entry of this kind may have, in the order in which they are written."""
        return tuple(self.model.model_fields) if self.named_by else ()

    def name_path(self) -> tuple[str, ...]:
        """Return the path of the name inside the entry."""
        return (self.named_by,) if self.named_by else ()


KINDS: Mapping[KindName, Kind] = {
    "category": Kind(word="category", section="categories", named_by="", model=fields.Text),
    "plugin": Kind(word="plugin", section="plugins", named_by="name", model=Plugin),
    "tool": Kind(
        word="tool", section="tools", named_by="key", model=Tool, name_problem=keys.tool_key_problem
    ),
    "toolkit": Kind(
        word="toolkit",
        section="toolkits",
        named_by="key",
        model=Toolkit,
        name_problem=keys.toolkit_key_problem,
    ),
    "loadout": Kind(word="loadout", section="loadouts", named_by="name", model=Loadout),
    "agent": Kind(word="agent", section="agents", named_by="key", model=Agent),
    "sub_app": Kind(word="sub-app", section="sub_apps", named_by="key", model=SubApp),
    "gate_rule": Kind(word="rule", section="gate_rules", named_by="key", model=GateRule),
}
SECTIONS: Mapping[str, KindName] = {kind.section: name for name, kind in KINDS.items()}


@functools.cache
def naming(model: Any) -> Mapping[str, Names]:
    """Return the fields of a model that name entries, with what they name."""
    return {
        name: declared
        for name, field in getattr(model, "model_fields", {}).items()
        for declared in field.metadata
        if isinstance(declared, Names)
    }
