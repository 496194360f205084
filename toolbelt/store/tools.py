"""Writing many tools in a few statements, ten times as fast as one by one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from toolbelt import models
from toolbelt.core import belts, catalog
from toolbelt.store import token_counts, tool_schemas, writing

_BATCH_SIZE = 200


def put(values: Sequence[catalog.Tool]) -> None:
    """Update the rows to match these tools; tokens are counted if a value has none."""
    entries = {value.key: belts.entry("tool", value) for value in values}
    counted = {value.key: value.tokens for value in values}
    existing = {row.key: row for row in _rows(entries)}
    plugins = _plugins({value.plugin for value in values if value.plugin})
    new: list[models.Tool] = []
    # By the columns that differ, because one statement sets the same columns of all its rows.
    differing: defaultdict[tuple[str, ...], list[models.Tool]] = defaultdict(list)
    for key, entry in entries.items():
        columns = writing.columns("tool", entry)
        columns["plugin_id"] = plugins.get(entry.get("plugin", ""))
        row = existing.get(key)
        if row is None:
            row = models.Tool(key=key, **columns)
            row.tokens = counted[key] or token_counts.of(row)
            row.schema_problem = tool_schemas.problem_of(row)
            new.append(row)
        elif changed := writing.set_columns(row, columns):
            if not token_counts.COUNTED.isdisjoint(changed):
                row.tokens = counted[key] or token_counts.of(row)
                changed = (*changed, "tokens")
            if tool_schemas.is_checked(changed):
                row.schema_problem = tool_schemas.problem_of(row)
                changed = (*changed, "schema_problem")
            differing[changed].append(row)
    models.Tool.objects.bulk_create(new, batch_size=_BATCH_SIZE)
    for changed, rows in differing.items():
        models.Tool.objects.bulk_update(rows, changed, batch_size=_BATCH_SIZE)


def put_declared(versions: Mapping[str, str]) -> None:
    """Store the declared versions of tools, by key, as JSON; empty for none. Other columns stay as they are."""
    differing = []
    for row in _rows(versions):
        stored = json.loads(versions[row.key]) if versions[row.key] else None
        if row.declared_versions != stored:
            row.declared_versions = stored
            differing.append(row)
    models.Tool.objects.bulk_update(differing, ["declared_versions"], batch_size=_BATCH_SIZE)


def with_declared_versions() -> list[str]:
    """Return the keys of the tools that agents' programs declared lately."""
    return list(models.Tool.objects.exclude(declared_versions=None).values_list("key", flat=True))


def _rows(keys: Iterable[str]) -> Iterable[models.Tool]:
    keys_ = list(keys)
    for start in range(0, len(keys_), _BATCH_SIZE):
        yield from models.Tool.objects.filter(key__in=keys_[start : start + _BATCH_SIZE])


def _plugins(names: Iterable[str]) -> Mapping[str, int]:
    return dict(models.Plugin.objects.filter(name__in=names).values_list("name", "pk"))
