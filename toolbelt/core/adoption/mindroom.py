"""MindRoom's configuration (seed: Dynamic Toolkits): ``toolkits`` and ``agents`` as mappings.

Each name in a list of tools is a tool. One that is not stored belongs to the client plugin ``mindroom``, for which the
file's agents declare what their program runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import secret_texts
from toolbelt.core.adoption import reading

_TOP = {"toolkits": "toolkits", "agents": "agents", "defaults": "defaults"}
_TOOLKIT = {"description": "description", "tools": "tools"}
_AGENT = {
    "displayname": "display_name",
    "role": "role",
    "model": "model",
    "tools": "tools",
    "includedefaulttools": "include_default_tools",
    "allowedtoolkits": "allowed_toolkits",
    "initialtoolkits": "initial_toolkits",
}
_DEFAULTS = {"tools": "tools"}
_LOADS = ("allowedtoolkits", "initialtoolkits")
_MISPLACED_TOP = {
    name: f"agents.NAME.{_AGENT[name]}" for name in (*_LOADS, "displayname", "includedefaulttools")
}
_MISPLACED_TOOLKIT = {
    **{name: f"agents.NAME.{_AGENT[name]}" for name in _LOADS},
    "toolkits": "the top of the file",
    "agents": "the top of the file",
}
_MISPLACED_AGENT = {"toolkits": "the top of the file", "agents": "the top of the file"}
# MindRoom adds them itself; Toolbelt has its own.
_BUILT_IN_TOOLS = frozenset({"dynamic_tools", "delegate", "self_config"})
_UNUSED = "Toolbelt has no counterpart for it."


def recognizes(document: Any) -> bool:
    """Return whether this is MindRoom's: toolkits or agents by name, where a belt has lists."""
    if not isinstance(document, Mapping):
        return False
    sections = [document.get(section) for section in ("toolkits", "agents")]
    return any(isinstance(section, Mapping) for section in sections)


def convert(document: Any, stored: Mapping[str, Any], reader: reading.Reader) -> reading.Adopted:
    """Return the belt of a configuration."""
    top = reader.fields(document, "", _TOP, misplaced=_MISPLACED_TOP, unused=_UNUSED)
    conversion = _Conversion(reader, stored)
    toolkits_at, toolkits = top.get("toolkits", ("toolkits", None))
    agents_at, agents = top.get("agents", ("agents", None))
    conversion.refuse_nested(toolkits_at, toolkits, agents_at, agents)
    shared = conversion.defaults(*top.get("defaults", ("defaults", None)))
    if reader.problems:
        return reader.adopted("mindroom", {})
    belt: dict[str, Any] = {
        "toolkits": [
            conversion.toolkit(reading.join(toolkits_at, key), key, entry)
            for key, entry in reader.mapping(toolkits, toolkits_at).items()
        ],
        "agents": [
            conversion.agent(reading.join(agents_at, key), key, entry, shared)
            for key, entry in reader.mapping(agents, agents_at).items()
        ],
    }
    declared = reading.DeclaredTools("mindroom", "MindRoom", stored, reader)
    keys_of_agents = [entry["key"] for entry in belt["agents"]]
    return reader.adopted("mindroom", {**declared.entries(conversion.tools, keys_of_agents), **belt})


class _Conversion:
    """A conversion in progress: the tools that it met, each with its first place."""

    def __init__(self, reader: reading.Reader, stored: Mapping[str, Any]) -> None:
        self._reader = reader
        self._stored = {
            section: {entry["key"]: entry for entry in stored.get(section, ())}
            for section in ("toolkits", "agents")
        }
        self.tools: dict[str, str] = {}

    def refuse_nested(self, toolkits_at: str, toolkits: Any, agents_at: str, agents: Any) -> None:
        """Report a section that is indented into the other one, where it would be read as an entry."""
        for at, section, other in ((toolkits_at, toolkits, "agents"), (agents_at, agents, "toolkits")):
            if isinstance(section, Mapping) and isinstance(section.get(other), Mapping):
                message = f"{other!r} is inside of {at!r}: move it to the top of the file."
                self._reader.report(reading.join(at, other), message)

    def defaults(self, path: str, value: Any) -> list[tuple[str, Any]]:
        """Return the uses of tools that every agent gets, with their paths."""
        fields = self._reader.fields(value, path, _DEFAULTS, misplaced=_MISPLACED_TOOLKIT, unused=_UNUSED)
        return list(self._uses(*fields.get("tools", ("", None))))

    def toolkit(self, path: str, key: str, value: Any) -> dict[str, Any]:
        """Return the entry of a toolkit."""
        reader, belt_path = self._reader, f"toolkits.{key}"
        fields = reader.fields(value, path, _TOOLKIT, misplaced=_MISPLACED_TOOLKIT, unused=_UNUSED)
        reader.paths[belt_path] = path
        members_at, members = fields.get("tools", (f"{path}.tools", None))
        uses = list(self._uses(members_at, members))
        self._map_items(f"{belt_path}.members", uses)
        entry: dict[str, Any] = {**self._stored["toolkits"].get(key, {}), "key": key}
        if "description" in fields:
            entry["description"] = reader.text(*reversed(fields["description"]))
        entry["members"] = [use for _, use in uses]
        return entry

    def agent(self, path: str, key: str, entry_value: Any, shared: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the entry of an agent."""
        reader, belt_path = self._reader, f"agents.{key}"
        fields = reader.fields(entry_value, path, _AGENT, misplaced=_MISPLACED_AGENT, unused=_UNUSED)
        reader.paths[belt_path] = path
        entry: dict[str, Any] = {**self._stored["agents"].get(key, {}), "key": key}
        for name, field in (("display_name", "title"), ("role", "role"), ("model", "model")):
            if name in fields:
                at, value = fields[name]
                reader.paths[f"{belt_path}.{field}"] = at
                entry[field] = reader.text(value, at)
        uses = list(self._uses(*fields.get("tools", (f"{path}.tools", None))))
        if fields.get("include_default_tools", ("", True))[1] is not False:
            own_tools = {_key(use) for _, use in uses}
            uses += [(at, use) for at, use in shared if _key(use) not in own_tools]
        self._map_items(f"{belt_path}.tools", uses)
        entry["tools"] = [use for _, use in uses]
        for name in ("allowed_toolkits", "initial_toolkits"):
            at, value = fields.get(name, (f"{path}.{name}", None))
            entry[name] = reader.texts(value, at)
        return entry

    def _uses(self, path: str, value: Any) -> list[tuple[str, Any]]:
        """Return the uses of a list, each with its path: a tool's name, or a mapping of one name to its options."""
        reader = self._reader
        uses: list[tuple[str, Any]] = []
        for at, item in reader.items(value, path):
            if isinstance(item, str) and item.strip():
                name, options = item, None
            elif isinstance(item, Mapping) and len(item) == 1 and isinstance(next(iter(item)), str):
                name, options = next(iter(item.items()))
            else:
                reader.report(at, "A tool is a name, or a mapping of one name to its options.")
                continue
            if name in _BUILT_IN_TOOLS:
                reader.skip(at, f"{name} is MindRoom's own; Toolbelt adds its own tools for loading.")
                continue
            self.tools.setdefault(name, at)
            options = self._options(options, reading.join(at, name))
            uses.append((at, name if options is None else {"tool": name, "options": options}))
        return uses

    def _options(self, stated: Any, path: str) -> dict[str, Any] | None:
        """Return the options of a tool without secrets; None if it has none."""
        if stated is None:
            return None
        options = self._reader.mapping(stated, path)
        safe = {}
        for name, value in options.items():
            if _holds_secret(name, value):
                why = "It looks like a secret, which is never stored here: set it where the tool runs."
                self._reader.skip(reading.join(path, name), why)
            else:
                safe[name] = value
        return safe

    def _map_items(self, belt_path: str, uses: list[tuple[str, Any]]) -> None:
        self._reader.paths |= {f"{belt_path}[{position}]": at for position, (at, _) in enumerate(uses)}


def _key(use: Any) -> str:
    return use if isinstance(use, str) else str(use["tool"])


def _holds_secret(name: str, value: Any) -> bool:
    match value:
        case Mapping():
            return any(_holds_secret(f"{name}.{key}", item) for key, item in value.items())
        case list() | tuple():
            return any(_holds_secret(name, item) for item in value)
    return secret_texts.is_secret(name, value)
