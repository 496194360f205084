"""The kinds of entry in a belt and the fields of each, in the order in which they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pydantic

from toolbelt.core import agents, catalog, connections, keys
from toolbelt.core.belts import fields

KindName = Literal["category", "plugin", "tool", "toolkit", "loadout", "agent", "sub_app"]

# The form of entries' names and keys (toolbelt.core.keys), for the API's document. Rules check it.
_FORM = {"type": "string", "minLength": 1, "maxLength": keys.MAX_LENGTH}
EntryName = Annotated[
    fields.Name,
    pydantic.WithJsonSchema({**_FORM, "pattern": "^[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$"}),
]
Key = Annotated[fields.Name, pydantic.WithJsonSchema({**_FORM, "pattern": "^[a-zA-Z_][a-zA-Z0-9_-]*$"})]


class Upstream(fields.Fields):
    """How an MCP server is reached, by a command or at a URL, and which agents and sessions share a connection."""

    command: fields.Text | None = None
    args: fields.Each[fields.Text] | None = None
    env: fields.Pairs[fields.Text] | None = None
    cwd: fields.Text | None = None
    url: fields.Text | None = None
    headers: fields.Pairs[fields.Text] | None = None
    timeout: fields.Whole | None = None
    sharing: fields.Word[connections.Sharing] | None = None
    idle: fields.Whole | None = None
    max_connections: fields.Whole | None = None


class Plugin(fields.Fields):
    """A provider of tools: installed code, an upstream server, or an agent's own program."""

    name: EntryName
    namespace: fields.Text | None = None
    title: fields.Text | None = None
    description: fields.Text | None = None
    category: fields.Text | None = None
    # "disabled" is an alias of active: false; it is read, never written.
    status: fields.Word[Literal["", "ready", "failed", "disabled"]] | None = None
    active: bool | None = None
    trusted: bool | None = None
    blocked: bool | None = None
    upstream: Upstream | None = None
    # Set by the synchronization with installed code.
    in_code: bool | None = None
    # Agents whose tokens may declare the tools of a plugin that the agent's program runs.
    declared_by: fields.Each[fields.Text] | None = None
    # Tools that no running process can run; servers write it.
    not_running: fields.Each[fields.Text] | None = None
    preapproved: fields.Pairs[fields.Text] | None = None


class Tool(fields.Fields):
    """A tool, or a prompt, a resource or another thing that an upstream server offers."""

    key: Key
    kind: fields.Word[Literal["", catalog.Kind]] | None = None
    title: fields.Text | None = None
    description: fields.Text | None = None
    plugin: fields.Text | None = None
    category: fields.Text | None = None
    default_on: bool | None = None
    input_schema: fields.Json | None = None
    output_schema: fields.Json | None = None
    annotations: fields.Json | None = None
    policy: fields.Text | None = None
    blocked: bool | None = None
    retired: bool | None = None
    seen: bool | None = None
    approved: fields.Text | None = None
    details: fields.Json | None = None
    details_approved: fields.Text | None = None
    approved_version: fields.Json | None = None
    upstream_name: fields.Text | None = None


class Trigger(fields.Fields):
    """Patterns that give a message a focus: the tools for it."""

    name: fields.Name
    any: fields.Each[fields.Text] | None = None
    all: fields.Each[fields.Each[fields.Text]] | None = None
    none: fields.Each[fields.Text] | None = None
    focus: fields.Each[fields.Text] | None = None
    tool_choice: fields.Word[Literal["", catalog.ToolChoice]] | None = None


class Toolkit(fields.Fields):
    """A named bundle of tools with one switch, policy text and triggers."""

    key: Key
    title: fields.Text | None = None
    description: fields.Text | None = None
    # The plugin whose code owns the toolkit.
    plugin: fields.Text | None = None
    members: fields.Each[fields.Use] | None = None
    policy: fields.Text | None = None
    policy_when_off: fields.Text | None = None
    tool_notes: fields.Pairs[fields.Text] | None = None
    triggers: fields.Each[Trigger] | None = None
    examples: fields.Text | None = None
    blocked: bool | None = None


class Loadout(fields.Fields):
    """A named profile that may inherit from another."""

    name: EntryName
    description: fields.Text | None = None
    parent: fields.Text | None = None
    plugins: fields.Each[fields.Text] | None = None
    categories: fields.Each[fields.Text] | None = None
    discoverable: fields.Each[fields.Text] | None = None
    disabled: fields.Each[fields.Text] | None = None


class AgentBudget(fields.Fields):
    """Limits on an agent's active tools and tokens, and what happens when they are exceeded."""

    max_tools: fields.Whole | None = None
    max_tokens: fields.Whole | None = None
    on_exceed: fields.Word[Literal["", agents.OnExceed]] | None = None


class End(fields.Fields):
    """When a switch or an override expires, and its value afterwards."""

    at: fields.Moment
    then: bool | None = None
    by: fields.Text | None = None


class Agent(fields.Fields):
    """An agent, and what it has."""

    key: EntryName
    title: fields.Text | None = None
    description: fields.Text | None = None
    role: fields.Text | None = None
    model: fields.Text | None = None
    kind: fields.Word[Literal["", agents.Kind]] | None = None
    loadout: fields.Text | None = None
    tools: fields.Each[fields.Use] | None = None
    tools_config: fields.Pairs[bool] | None = None
    # Which of them expire, by key: when, and the value afterwards.
    ends: fields.Pairs[End] | None = None
    allowed_toolkits: fields.Each[fields.Text] | None = None
    initial_toolkits: fields.Each[fields.Text] | None = None
    budget: AgentBudget | None = None
    protected: bool | None = None
    archived: bool | None = None
    session_loadouts: fields.Each[fields.Text] | None = None
    subagent_kinds: fields.Each[fields.Word[Literal["", agents.Kind]]] | None = None
    mcp_loading: fields.Word[Literal["", agents.McpLoading]] | None = None


class SubApp(fields.Fields):
    """An application that embeds agents and binds tools to them."""

    key: EntryName
    title: fields.Text | None = None
    description: fields.Text | None = None
    tool_names: fields.Each[fields.Text] | None = None
    agents: fields.Each[fields.Text] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of entry: the section that lists it, and the field that names it (empty: the entry is a name)."""

    word: str
    section: str
    named_by: str
    model: Any

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
    "tool": Kind(word="tool", section="tools", named_by="key", model=Tool),
    "toolkit": Kind(word="toolkit", section="toolkits", named_by="key", model=Toolkit),
    "loadout": Kind(word="loadout", section="loadouts", named_by="name", model=Loadout),
    "agent": Kind(word="agent", section="agents", named_by="key", model=Agent),
    "sub_app": Kind(word="sub-app", section="sub_apps", named_by="key", model=SubApp),
}
SECTIONS: Mapping[str, KindName] = {kind.section: name for name, kind in KINDS.items()}
