"""Export of decisions only: the configuration without texts and schemas that servers, programs and code state.

A file of decisions is as long as the decisions are. Applied to the database that it comes from, it changes nothing
(:func:`toolbelt.core.facts.with_texts` keeps what it leaves out); applied to an empty one whose servers are listed
afterwards, it has the same decisions. So it names a listed tool if anything about it is not as its listing alone would
make it, or if another entry names it, which has to be valid before the tool is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.control.config import belts
from toolbelt.core import catalog, facts, tool_versions
from toolbelt.store import snapshots

# What says which tool of a source an entry is about.
_IDENTITY = frozenset({"key", "kind", "plugin", "upstream_name"})
_PLUGIN_IDENTITY = frozenset({"name", "namespace", "in_code"})
# What operators may have decided of an entry that lets a server ask users, besides its review.
_DECIDED_OF_ASKING = frozenset({"category", "default_on", "policy", "blocked", "block_ends"})
# The sections whose entries name tools and toolkits, besides that of toolkits.
_NAMING = ("loadouts", "agents", "sub_apps", "gate_rules")


def export() -> dict[str, Any]:
    """Return the decisions as a belt, with its sections in their order, and without empty ones."""
    document, stored = belts.export(), snapshots.catalog()
    named = {name for section in _NAMING for name in _texts(document.get(section))}
    toolkits = _toolkits(document.get("toolkits", ()), named, stored)
    named.update(_texts(toolkits))
    tools = [
        entry
        for written in document.get("tools", ())
        if (entry := _tool(written, stored, is_named=written["key"] in named)) is not None
    ]
    used = {entry.get("plugin") for entry in (*tools, *toolkits)}
    used.update(plugin for rule in document.get("gate_rules", ()) for plugin in rule.get("plugins", ()))
    plugins = [
        entry
        for written in document.get("plugins", ())
        if (entry := _plugin(written, stored, is_named=written["name"] in used)) is not None
    ]
    decided = {**document, "plugins": plugins, "tools": tools, "toolkits": toolkits}
    return {section: decided[section] for section in belts.SECTIONS if decided.get(section)}


def without_texts(kind: str, written: Mapping[str, Any], stored: catalog.Catalog) -> Mapping[str, Any]:
    """Return an entry of the whole export without what its source states: what was decided of it."""
    match kind:
        case "tool" if not _is_written_by_operators(stored.tools[written["key"]], stored):
            left_out = facts.TEXTS | {"approved_version"}
        case "plugin" if written.get("in_code"):
            left_out = facts.TEXTS
        case "toolkit" if written.get("plugin"):
            left_out = frozenset(written) - facts.DECIDED_OF_CODE_TOOLKITS
        case _:
            return written
    return {name: value for name, value in written.items() if name not in left_out}


def _is_written_by_operators(tool: catalog.Tool, stored: catalog.Catalog) -> bool:
    """Return whether operators, or Toolbelt itself, wrote the texts of a tool: a listing or a declaration would have
    left it unseen, or approved.
    """
    plugin = stored.plugins.get(tool.plugin)
    if plugin is None or tool.kind == "elicitation":
        return True
    return plugin.runner != "code" and tool.seen and not tool.approved


def _tool(written: Mapping[str, Any], stored: catalog.Catalog, *, is_named: bool) -> Mapping[str, Any] | None:
    tool = stored.tools[written["key"]]
    plugin = stored.plugins.get(tool.plugin)
    kept = without_texts("tool", written, stored)
    if is_named or plugin is None:
        return kept
    if tool.kind == "elicitation":
        return kept if tool.seen or kept.keys() & _DECIDED_OF_ASKING else None
    decided = {name: value for name, value in kept.items() if name not in _IDENTITY}
    is_own = _is_written_by_operators(tool, stored)
    return kept if is_own or decided != _as_listed(tool, plugin) else None


def _as_listed(tool: catalog.Tool, plugin: catalog.Plugin) -> dict[str, Any]:
    """Return what the listing of a new tool decides: nothing in code, trust, or that it awaits review."""
    if plugin.runner == "code":
        return {}
    if not plugin.trusted:
        return {"seen": False}
    details = tool_versions.details_version(tool) if tool.kind == "tool" else ""
    return {"approved": tool_versions.version(tool)} | ({"details_approved": details} if details else {})


def _toolkits(written: Any, named: set[str], stored: catalog.Catalog) -> list[Mapping[str, Any]]:
    """Return the toolkits in order. One in code is left out if nothing depends on it, nor on its position."""
    kept: list[Mapping[str, Any]] = []
    for entry in reversed(written):
        if kept or not entry.get("plugin") or entry.get("blocked") or entry["key"] in named:
            kept.append(without_texts("toolkit", entry, stored))
    return kept[::-1]


def _plugin(
    written: Mapping[str, Any], stored: catalog.Catalog, *, is_named: bool
) -> Mapping[str, Any] | None:
    kept = without_texts("plugin", written, stored)
    is_decided = not written.get("in_code") or bool(kept.keys() - _PLUGIN_IDENTITY)
    return kept if is_named or is_decided else None


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a part of a belt, among them the names of tools."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
