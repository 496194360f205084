"""SeaJelly's permissions (seed: Tools & Toolkits): ``tools_config``, alone or in the JSON of one agent or several.

A key that names nothing here is a toolkit if it ends in ``_toolkit``, and else a tool that the agent's program declares
for the client plugin ``seajelly``. ``aliases`` beside it, which SeaJelly itself does not have, are today's names by the
old names that a configuration may still use.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import keys
from toolbelt.core.adoption import reading

SECTION = "tools_config"
ALIASES = "aliases"
_TOOLKIT_ENDING = "_toolkit"
# How similar a new name must be to a stored one to count as its misspelling. Two tools may share most of their names.
_MISSPELT = 0.9

_KNOWN = {
    "toolsconfig": SECTION,
    "aliases": ALIASES,
    **dict.fromkeys(("agent", "key", "slug"), "agent"),
    **dict.fromkeys(("name", "displayname"), "name"),
    "model": "model",
}


def recognizes(document: Any) -> bool:
    """Return whether this is a ``tools_config``, or one agent or several with one."""
    if _is_wrapped(document):
        document = document["agents"]
    if isinstance(document, list):
        return bool(document) and all(map(_has_config, document))
    return _has_config(document) or _is_flat(document)


def convert(document: Any, stored: Mapping[str, Any], reader: reading.Reader, agent: str) -> reading.Adopted:
    """Return the belt of the agents. An agent that is stored keeps everything else."""
    by_key = {entry["key"]: entry for entry in stored.get("agents", ())}
    shared = reader.mapping(document[ALIASES], ALIASES) if _is_wrapped(document) else {}
    rows = list(_rows(document))
    is_flat = _is_flat(document)
    entries = [
        _agent(path, row, by_key, reader, agent if len(rows) == 1 else "", shared, is_flat=is_flat)
        for path, row in rows
    ]
    entries = [entry for entry in entries if entry]
    return reader.adopted("seajelly", {**_named(entries, stored, reader), "agents": entries})


def _named(
    entries: list[dict[str, Any]], stored: Mapping[str, Any], reader: reading.Reader
) -> dict[str, list[dict[str, Any]]]:
    """Return the entries of the toolkits and tools that the switches name and nothing here has."""
    known = {entry["key"] for entry in stored.get("toolkits", ())}
    toolkits: dict[str, str] = {}
    tools: dict[str, str] = {}
    for entry in entries:
        for key in entry[SECTION]:
            at = reader.paths[f"agents.{entry['key']}.{SECTION}.{key}"]
            if key.endswith(_TOOLKIT_ENDING):
                toolkits.setdefault(key, at)
            elif key not in known:
                tools.setdefault(key, at)
    existing = known | {entry["key"] for entry in stored.get("tools", ())}
    for key, at in {**toolkits, **tools}.items():
        if key not in existing and (
            similar := difflib.get_close_matches(key, existing, n=1, cutoff=_MISSPELT)
        ):
            reader.report(at, f"There is no tool or toolkit {key!r}. Did you mean {similar[0]}?")
    new_toolkits = [key for key in toolkits if key not in existing]
    for key in new_toolkits:
        reader.paths |= {f"toolkits.{key}": toolkits[key], f"toolkits.{key}.key": toolkits[key]}
    if new_toolkits:
        reader.note(
            "",
            f"New toolkits, without members: {', '.join(new_toolkits)}. Add their tools, and what they are for.",
        )
    declared = reading.DeclaredTools("seajelly", "SeaJelly", stored, reader)
    return {
        **declared.entries(tools, [entry["key"] for entry in entries]),
        "toolkits": [{"key": key} for key in new_toolkits],
    }


def _rows(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield each agent with its path; a flat tools_config is that of an agent without a name."""
    if _is_wrapped(document):
        yield from ((f"agents[{position}]", row) for position, row in enumerate(document["agents"]))
    elif isinstance(document, list):
        yield from ((f"[{position}]", row) for position, row in enumerate(document))
    elif _is_flat(document):
        yield "", {SECTION: document}
    else:
        yield "", document


def _agent(
    path: str,
    row: Any,
    stored: Mapping[str, Any],
    reader: reading.Reader,
    agent: str,
    shared: Mapping[str, Any],
    *,
    is_flat: bool,
) -> dict[str, Any]:
    unused = "It is not a known permission."
    fields = reader.fields(row, path, _KNOWN, misplaced={}, unused=unused)
    name = reader.text(*reversed(fields["name"])) if "name" in fields else ""
    key = agent or (reader.text(*reversed(fields["agent"])) if "agent" in fields else "")
    if not key and name and not keys.name_problem(name):
        key = name
    if not key:
        message = 'The file does not name its agent: add "agent" with the agent\'s key'
        reader.report(path, f"{message} beside tools_config, or use the command's option --agent.")
        return {}
    entry: dict[str, Any] = {**stored.get(key, {}), "key": key}
    if name and name != key:
        entry["title"] = name
    if "model" in fields:
        entry["model"] = reader.text(*reversed(fields["model"]))
    at, config = fields.get(SECTION, (reading.join(path, SECTION), None))
    if is_flat:
        at = ""
    reader.paths |= {f"agents.{key}": path, f"agents.{key}.{SECTION}": at}
    switches = reader.mapping(config, at)
    for switch, on in switches.items():
        if on is not None and not isinstance(on, bool):
            reader.report(reading.join(at, switch), "A switch must be true, false or null.")
    aliases = {**shared, **reader.mapping(*reversed(fields.get(ALIASES, ("", None))))}
    entry[SECTION] = {}
    for switch, on in switches.items():
        name_today = aliases.get(switch, switch)
        if not isinstance(name_today, str):
            reader.report(
                reading.join(fields.get(ALIASES, (ALIASES, None))[0], switch), "An alias is a name."
            )
        elif entry[SECTION].get(name_today, on) is not on and on is not None:
            message = f"It is {name_today!r} today, which has another value: remove one of them."
            reader.report(reading.join(at, switch), message)
        elif on is not None:
            entry[SECTION][name_today] = on
            reader.paths[f"agents.{key}.{SECTION}.{name_today}"] = reading.join(at, switch)
    # An expiry belongs to the switch that was stored, not to the one in the file.
    entry.pop("ends", None)
    return entry


def _is_wrapped(document: Any) -> bool:
    """Return whether these are agents in a list under ``agents``, with ``aliases`` for all of them."""
    return isinstance(document, Mapping) and ALIASES in document and isinstance(document.get("agents"), list)


def _has_config(row: Any) -> bool:
    return isinstance(row, Mapping) and any(reading.normal(str(key)) == "toolsconfig" for key in row)


def _is_flat(document: Any) -> bool:
    """Return whether these are switches by key, and nothing else."""
    if not isinstance(document, Mapping) or not all(
        on is None or isinstance(on, bool) for on in document.values()
    ):
        return False
    return any(isinstance(on, bool) for on in document.values())
