"""Writing the tools of one plugin, many at once.

Used for installed code and upstream servers: tools that are up to date are skipped, invalid or taken ones are reported
with both sources, and everything else continues. One statement writes hundreds of tools: two thousand take the time
that twenty took when each was written like an operator's own change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.access import expirations
from toolbelt.control.catalog import entries
from toolbelt.core import belts, catalog, errors, facts
from toolbelt.store import audit_writing, token_counts, tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The keys that were written, and the problems of the rest."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[errors.Problem, ...] = ()


def store_tools(
    write: writing.Write,
    definitions: Iterable[Mapping[str, Any]],
    *,
    source: str,
    stored: catalog.Catalog,
    names: belts.NameIndex,
    counts: Mapping[str, int] | None = None,
    act: str = "change",
) -> Written:
    """Write those of the definitions that differ from what is stored, within the caller's transaction.

    ``source`` names their origin in messages. ``act`` is what an operator does to the tools, for the audit log; what is
    observed of them has actions of its own. ``counts`` are token counts by the JSON of a tool: callers with many
    tools count them before they take the lock.
    """
    values: list[catalog.Tool] = []
    changes: list[tuple[str, str, Any, Any]] = []
    created: list[str] = []
    changed: list[str] = []
    problems: list[errors.Problem] = []

    def count(text: str) -> int:
        number = (counts or {}).get(text)
        return token_counts.count(text) if number is None else number

    for entry in definitions:
        key = entry["key"]
        now = stored.tools.get(key)
        before = None if now is None else belts.entry("tool", now)
        if before is not None and before == belts.entry("tool", belts.value("tool", dict(entry), stored)):
            continue
        if entry_problems := belts.check_entry("tool", dict(entry), names):
            problems += [
                errors.Problem(path=problem.path, message=f"{problem.message} It comes from {source}.")
                for problem in entry_problems
            ]
            continue
        value = belts.value("tool", dict(entry), stored, count_tokens=count)
        old_values, new_values = entries.differences(before, belts.entry("tool", value))
        values.append(value)
        if before is None:
            created.append(key)
            changes.append((_action(write, None, new_values, act), key, None, new_values))
        else:
            changed.append(key)
            changes.append((_action(write, old_values, new_values, act), key, old_values, new_values))
    if values:
        expirations.end_blocks("tool")
    tools.put(values)
    audit_writing.record_all(
        actor=write.actor.name,
        via=write.actor.via,
        subject_kind="tool",
        changes=changes,
        reason=write.reason,
        batch=write.batch,
        actor_kind=write.actor.kind,
        asked_by=write.asked_by,
    )
    return Written(created=tuple(created), changed=tuple(changed), problems=tuple(problems))


def _action(write: writing.Write, before: Any, after: Any, act: str) -> str:
    return facts.action_of("tool", before, after) if write.is_observation else f"tool.{act}"


def taken_problem(
    section: str, key: str, source: str, stored: catalog.Catalog, names: belts.NameIndex
) -> errors.Problem:
    """Return the problem that the key of a tool or toolkit is taken, so that its source does not get it."""
    kind, name = names.owner("tool", key) or ("tool", key)
    entry = (stored.tools if kind == "tool" else stored.toolkits).get(name)
    owner = f"the plugin {entry.plugin!r}" if entry is not None and entry.plugin else "operators"
    message = f"{key!r} is taken by the {kind} {name!r} of {owner}: {source} does not get it."
    return errors.Problem(path=f"{section}.{key}", message=message)


def is_taken(key: str, plugin: str, stored: catalog.Catalog, names: belts.NameIndex) -> bool:
    """Return whether the key, or one that differs only in case, belongs to something other than the plugin's tool."""
    now = stored.tools.get(key)
    return now.plugin != plugin if now is not None else names.owner("tool", key) is not None


def find_ignoring_case(
    key: str, plugin: str, stored: catalog.Catalog, names: belts.NameIndex
) -> catalog.Tool | None:
    """Return the plugin's own tool whose key differs from this one only in case."""
    kind, name = names.owner("tool", key) or ("", "")
    now = stored.tools.get(name) if kind == "tool" and key not in stored.tools else None
    return now if now is not None and now.plugin == plugin else None
