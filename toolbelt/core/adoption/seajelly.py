"""SeaJelly's permissions (seed: Tools & Toolkits): ``tools_config``, alone or in the JSON of one agent or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import keys
from toolbelt.core.adoption import reading

SECTION = "tools_config"

_KNOWN = {
    "toolsconfig": SECTION,
    **dict.fromkeys(("agent", "key", "slug"), "agent"),
    **dict.fromkeys(("name", "displayname"), "name"),
    "model": "model",
}


def recognizes(document: Any) -> bool:
    """Return whether this is a ``tools_config``, or one agent or several with one."""
    if isinstance(document, list):
        return bool(document) and all(map(_has_config, document))
    return _has_config(document) or _is_flat(document)


def convert(document: Any, stored: Mapping[str, Any], reader: reading.Reader, agent: str) -> reading.Adopted:
    """Return the belt of the agents. An agent that is stored keeps everything else."""
    by_key = {entry["key"]: entry for entry in stored.get("agents", ())}
    rows = list(_rows(document))
    is_flat = _is_flat(document)
    entries = [
        _agent(path, row, by_key, reader, agent if len(rows) == 1 else "", is_flat=is_flat)
        for path, row in rows
    ]
    return reader.adopted("seajelly", {"agents": [entry for entry in entries if entry]})


def _rows(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield each agent with its path; a flat tools_config is that of an agent without a name."""
    if isinstance(document, list):
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
    entry[SECTION] = {switch: on for switch, on in switches.items() if on is not None}
    # An expiry belongs to the switch that was stored, not to the one in the file.
    entry.pop("ends", None)
    return entry


def _has_config(row: Any) -> bool:
    return isinstance(row, Mapping) and any(reading.normal(str(key)) == "toolsconfig" for key in row)


def _is_flat(document: Any) -> bool:
    """Return whether these are switches by key, and nothing else."""
    if not isinstance(document, Mapping) or not all(
        on is None or isinstance(on, bool) for on in document.values()
    ):
        return False
    return any(isinstance(on, bool) for on in document.values())
