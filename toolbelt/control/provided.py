"""How do the tools that one plugin provides become rows, many at once?

Installed code and upstream servers alike: what is as it should be is left alone, what is not sound or taken is told of
with both sources, and the rest goes on. One statement writes hundreds: two thousand tools are written in the time
that twenty took when each was written as an operator's own change is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import actors, entries
from toolbelt.core import belts, catalog, errors
from toolbelt.store import audit, tokens, tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written, by key, and what stood against the rest."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[errors.Problem, ...] = ()


def write(
    actor: actors.Actor,
    wanted: Iterable[Mapping[str, Any]],
    *,
    source: str,
    stored: catalog.Catalog,
    known: belts.Known,
    reason: str,
    batch: uuid.UUID,
    counts: Mapping[str, int] | None = None,
) -> Written:
    """Write those of the tools that differ from what is stored, within the caller's transaction.

    ``source`` says in messages where they come from. ``counts`` has the tokens of a tool by the text that is sent of
    it: whoever has many counts them before anybody waits.
    """
    values: list[catalog.Tool] = []
    changes: list[tuple[str, str, Any, Any]] = []
    created: list[str] = []
    changed: list[str] = []
    problems: list[errors.Problem] = []

    def count(text: str) -> int:
        known_count = (counts or {}).get(text)
        return tokens.count(text) if known_count is None else known_count

    for entry in wanted:
        key = entry["key"]
        now = stored.tools.get(key)
        before = None if now is None else belts.entry("tool", now)
        if before is not None and before == belts.entry("tool", belts.value("tool", dict(entry), stored)):
            continue
        if against := belts.check_entry("tool", dict(entry), known):
            problems += [
                errors.Problem(path=one.path, message=f"{one.message} It comes from {source}.")
                for one in against
            ]
            continue
        value = belts.value("tool", dict(entry), stored, count_tokens=count)
        had, has = entries.differences(before, belts.entry("tool", value))
        values.append(value)
        if before is None:
            created.append(key)
            changes.append(("tool.create", key, None, has))
        else:
            changed.append(key)
            changes.append(("tool.change", key, had, has))
    tools.put(values)
    audit.record_all(
        actor=actor.name,
        via=actor.via,
        subject_kind="tool",
        changes=changes,
        reason=reason,
        batch=batch,
    )
    return Written(created=tuple(created), changed=tuple(changed), problems=tuple(problems))


def taken(section: str, key: str, source: str, stored: catalog.Catalog, known: belts.Known) -> errors.Problem:
    """Say that somebody else has the key of a tool or toolkit, and that its source goes without it."""
    kind, name = known.owner("tool", key) or ("tool", key)
    found = (stored.tools if kind == "tool" else stored.toolkits).get(name)
    owner = f"the plugin {found.plugin!r}" if found is not None and found.plugin else "operators"
    message = f"{key!r} is taken by the {kind} {name!r} of {owner}: {source} goes without it."
    return errors.Problem(path=f"{section}.{key}", message=message)


def is_taken(key: str, plugin: str, stored: catalog.Catalog, known: belts.Known) -> bool:
    """Say whether a tool of the plugin cannot have this key, as somebody else has it or one like it."""
    now = stored.tools.get(key)
    return now.plugin != plugin if now is not None else known.owner("tool", key) is not None


def in_another_case(
    key: str, plugin: str, stored: catalog.Catalog, known: belts.Known
) -> catalog.Tool | None:
    """Give the plugin's own tool whose key is this one but for the case of its letters."""
    kind, name = known.owner("tool", key) or ("", "")
    now = stored.tools.get(name) if kind == "tool" and key not in stored.tools else None
    return now if now is not None and now.plugin == plugin else None
