"""Rejecting tools: what a rejection stores, and the rejections that a server's own lists decide in advance."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import approvals, tool_writes
from toolbelt.core import belts, catalog, tool_versions
from toolbelt.core.imported import rejections
from toolbelt.store import snapshots

DECIDED = writing.by(
    "toolbelt",
    "system",
    "as decided before the server listed it (reject_tools, reject_all_but)",
    kind="person",
)


def fields_of(item: approvals.ReviewItem) -> dict[str, Any]:
    """Return the fields of a tool that its rejection sets. If only its details changed, only those are rejected."""
    if item.kind == "details":
        rejected = tool_versions.REJECTED + tool_versions.details_version(item.tool)
        return {"details_approved": rejected, "approved_version": None}
    rejected = tool_versions.REJECTED + tool_versions.version(item.tool)
    return {"seen": None, "approved": rejected, "approved_version": None, "blocked": True, "block_ends": None}


def reject_listed(write: writing.Write, plugin: catalog.Plugin, keys: Collection[str]) -> tuple[str, ...]:
    """Reject a server's new tools that its two lists leave out, and return their keys.

    What an operator decides about them later counts: they are never rejected again.
    """
    if not keys or not (plugin.reject_tools or plugin.reject_all_but):
        return ()
    stored = snapshots.catalog()
    items = approvals.review_items(plugin.name, stored)
    rejected = tuple(
        key
        for key in keys
        if key in items
        and (tool := items[key].tool).kind == "tool"
        and rejections.is_rejected(plugin, catalog.name_at_server(tool, plugin.namespace))
    )
    if rejected:
        merged = ({**belts.entry("tool", items[key].tool), **fields_of(items[key])} for key in rejected)
        to_write = [{field: value for field, value in entry.items() if value is not None} for entry in merged]
        decided = DECIDED.replace(batch=write.batch)
        names = entries.name_index()
        tool_writes.store_tools(
            decided, to_write, source="its rejection", stored=stored, names=names, act="reject"
        )
    return rejected
