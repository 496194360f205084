"""The kinds of entry in a belt and the fields of each, in the order in which they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from toolbelt.core import agents, catalog, connections
from toolbelt.core.belts import shapes

KindName = Literal["category", "plugin", "tool", "toolkit", "loadout", "agent", "sub_app"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of entry: the section that lists it, and the field that names it (empty: the entry is a name)."""

    word: str
    section: str
    named_by: str
    shape: shapes.Text | shapes.Fields

    def name_of(self, entry: object) -> object:
        """Return the value of the entry's name field; in an invalid entry, it may be anything."""
        if not self.named_by:
            return entry
        return entry.get(self.named_by) if isinstance(entry, Mapping) else None

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields that an entry of this kind may have, in the order in which they are written."""
        return tuple(self.shape.fields) if isinstance(self.shape, shapes.Fields) else ()

    def name_path(self) -> tuple[str, ...]:
        """Return the path of the name inside the entry."""
        return (self.named_by,) if self.named_by else ()


_TEXT, _YES_NO, _JSON = shapes.Text(), shapes.YesNo(), shapes.Json()
_TEXTS, _USES = shapes.Each(_TEXT), shapes.Each(shapes.Use())
_ABOUT: Mapping[str, shapes.Shape] = {"title": _TEXT, "description": _TEXT}

# How an MCP server is reached, by a command or at a URL, and which agents and sessions share a connection.
UPSTREAM = shapes.Fields(
    {
        "command": _TEXT,
        "args": _TEXTS,
        "env": shapes.Pairs(_TEXT),
        "cwd": _TEXT,
        "url": _TEXT,
        "headers": shapes.Pairs(_TEXT),
        "timeout": shapes.Whole(),
        "sharing": shapes.OneOf(connections.SHARING),
        "idle": shapes.Whole(),
        "max_connections": shapes.Whole(),
    }
)
_PLUGIN: Mapping[str, shapes.Shape] = {
    "name": _TEXT,
    "namespace": _TEXT,
    **_ABOUT,
    "category": _TEXT,
    # "disabled" is an alias of active: false; it is read, never written.
    "status": shapes.OneOf(("ready", "failed", "disabled")),
    "active": _YES_NO,
    "trusted": _YES_NO,
    "blocked": _YES_NO,
    "upstream": UPSTREAM,
    # Set by the synchronization with installed code.
    "in_code": _YES_NO,
    # Agents whose tokens may declare the tools of a plugin that the agent's program runs.
    "declared_by": _TEXTS,
    # Tools that no running process can run; servers write it.
    "not_running": _TEXTS,
    "preapproved": shapes.Pairs(_TEXT),
}
_TOOL: Mapping[str, shapes.Shape] = {
    "key": _TEXT,
    "kind": shapes.OneOf(catalog.KINDS),
    **_ABOUT,
    "plugin": _TEXT,
    "category": _TEXT,
    "default_on": _YES_NO,
    "input_schema": _JSON,
    "output_schema": _JSON,
    "annotations": _JSON,
    "policy": _TEXT,
    "blocked": _YES_NO,
    "retired": _YES_NO,
    "seen": _YES_NO,
    "approved": _TEXT,
    "details": _JSON,
    "details_approved": _TEXT,
    "approved_version": _JSON,
    "upstream_name": _TEXT,
}
_TRIGGER: Mapping[str, shapes.Shape] = {
    "name": _TEXT,
    "any": _TEXTS,
    "all": shapes.Each(_TEXTS),
    "none": _TEXTS,
    "focus": _TEXTS,
    "tool_choice": shapes.OneOf(("auto", "required")),
}
TRIGGER = shapes.Fields(_TRIGGER, required=("name",))
_TOOLKIT: Mapping[str, shapes.Shape] = {
    "key": _TEXT,
    **_ABOUT,
    # The plugin whose code owns the toolkit.
    "plugin": _TEXT,
    "members": _USES,
    "policy": _TEXT,
    "policy_when_off": _TEXT,
    "tool_notes": shapes.Pairs(_TEXT),
    "triggers": shapes.Each(TRIGGER),
    "examples": _TEXT,
    "blocked": _YES_NO,
}
_LOADOUT: Mapping[str, shapes.Shape] = {
    "name": _TEXT,
    "description": _TEXT,
    "parent": _TEXT,
    "plugins": _TEXTS,
    "categories": _TEXTS,
    "discoverable": _TEXTS,
    "disabled": _TEXTS,
}
BUDGET = shapes.Fields(
    {"max_tools": shapes.Whole(), "max_tokens": shapes.Whole(), "on_exceed": shapes.OneOf(agents.ON_EXCEED)}
)
END = shapes.Fields({"at": shapes.Moment(), "then": _YES_NO, "by": _TEXT}, required=("at",))
_AGENT: Mapping[str, shapes.Shape] = {
    "key": _TEXT,
    **_ABOUT,
    "role": _TEXT,
    "model": _TEXT,
    "kind": shapes.OneOf(agents.KINDS),
    "loadout": _TEXT,
    "tools": _USES,
    "tools_config": shapes.Pairs(_YES_NO),
    # Which of them expire, by key: when, and the value afterwards.
    "ends": shapes.Pairs(END),
    "allowed_toolkits": _TEXTS,
    "initial_toolkits": _TEXTS,
    "budget": BUDGET,
    "protected": _YES_NO,
    "archived": _YES_NO,
    "session_loadouts": _TEXTS,
    "subagent_kinds": shapes.Each(shapes.OneOf(agents.KINDS)),
    "mcp_loading": shapes.OneOf(agents.MCP_LOADINGS),
}
_SUB_APP: Mapping[str, shapes.Shape] = {"key": _TEXT, **_ABOUT, "tool_names": _TEXTS, "agents": _TEXTS}


def _entries(word: str, section: str, named_by: str, fields: Mapping[str, shapes.Shape]) -> Kind:
    return Kind(
        word=word, section=section, named_by=named_by, shape=shapes.Fields(fields, required=(named_by,))
    )


KINDS: Mapping[KindName, Kind] = {
    "category": Kind(word="category", section="categories", named_by="", shape=_TEXT),
    "plugin": _entries("plugin", "plugins", "name", _PLUGIN),
    "tool": _entries("tool", "tools", "key", _TOOL),
    "toolkit": _entries("toolkit", "toolkits", "key", _TOOLKIT),
    "loadout": _entries("loadout", "loadouts", "name", _LOADOUT),
    "agent": _entries("agent", "agents", "key", _AGENT),
    "sub_app": _entries("sub-app", "sub_apps", "key", _SUB_APP),
}
SECTIONS: Mapping[str, KindName] = {kind.section: name for name, kind in KINDS.items()}
