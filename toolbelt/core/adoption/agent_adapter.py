"""agent-adapter's configuration (seed: Tool Plugins): its ``toolPlugins`` section, as a plugins file.

Plugins are code, so they are not part of a belt: a server runs those that its plugins file lists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.core import secret_texts
from toolbelt.core.adoption import reading

SECTION = "tool_plugins"

_TOP = {"toolplugins": "toolPlugins"}
_PLUGIN = {"id": "id", "module": "module", "classname": "class_name", "config": "config"}
_MISPLACED = dict.fromkeys(("classname", "module"), "toolPlugins[…]")
_NOT_LETTERS = re.compile(r"[^A-Za-z0-9]+")


def recognizes(document: Any) -> bool:
    """Return whether this has a section of tool plugins."""
    return isinstance(document, Mapping) and any(reading.normal(str(key)) in _TOP for key in document)


def convert(document: Any, reader: reading.Reader) -> reading.Adopted:
    """Return the plugins file for the section; every other section is skipped."""
    top = reader.fields(document, "", _TOP, misplaced=_MISPLACED, unused="It is agent-adapter's own.")
    path, listed = top.get("toolPlugins", ("toolPlugins", None))
    plugins = [_plugin(at, entry, reader) for at, entry in reader.items(listed, path)]
    return reader.adopted("agent-adapter", {}, plugins_file={SECTION: plugins} if plugins else {})


def _plugin(path: str, entry: Any, reader: reading.Reader) -> dict[str, Any]:
    fields = reader.fields(
        entry, path, _PLUGIN, misplaced={}, unused="An entry of the plugins file has no counterpart for it."
    )
    plugin: dict[str, Any] = {
        name: reader.text(*reversed(fields[name]))
        for name in ("id", "module", "class_name")
        if name in fields
    }
    if ("module" in plugin) != ("class_name" in plugin):
        missing = "class_name" if "module" in plugin else "module"
        reader.report(
            path, f"An entry with a module needs a class_name, and the other way round: add {missing}."
        )
    elif not plugin.get("id") and not plugin.get("module"):
        reader.report(path, "An entry needs the id of an installed plugin, or a module and a class_name.")
    if "config" in fields:
        at, config = fields["config"]
        name = plugin.get("id") or plugin.get("class_name") or "plugin"
        plugin["config"] = {
            key: _setting(reading.join(at, key), [name, key], value, reader)
            for key, value in reader.mapping(config, at).items()
        }
    return plugin


def _setting(path: str, names: list[str], value: Any, reader: reading.Reader) -> Any:
    """Return a setting's value; instead of a secret, a reference to a variable that is to be set to it."""
    match value:
        case Mapping():
            return {
                key: _setting(reading.join(path, str(key)), [*names, str(key)], item, reader)
                for key, item in value.items()
            }
        case list() | tuple():
            return [
                _setting(f"{path}[{position}]", [*names, str(position)], item, reader)
                for position, item in enumerate(value)
            ]
    if not secret_texts.is_secret(".".join(names[1:]), value):
        return value
    variable = _NOT_LETTERS.sub("_", "_".join(names)).strip("_").upper()
    reader.note(path, f"It looks like a secret: set the server's variable {variable} to it.")
    return f"${{{variable}}}"
