"""The approved descriptions that an operator decided to keep, of tools that were held for another one.

The import of a server's list keeps them from then on (:mod:`toolbelt.core.imported.rewordings`). Here they are restored
as soon as it is decided, so that no agent waits for the next list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import belts, catalog, risks, tool_versions
from toolbelt.store import snapshots

FIELDS: Mapping[str, str] = {"plugin": "keep_descriptions", "tool": "keep_description"}


def is_decided(kind: str, changed: Mapping[str, Any]) -> bool:
    """Return whether these changed fields of an entry decide that descriptions are kept."""
    return bool(changed.get(FIELDS.get(kind, "")))


def restored() -> Iterator[dict[str, Any]]:
    """Yield the entries of the tools whose approved description is kept, but which still have another one."""
    stored = snapshots.catalog()
    for tool in stored.tools.values():
        is_kept = tool.approved_version and catalog.keeps_description(tool, stored.plugins.get(tool.plugin))
        if is_kept and tool_versions.is_reworded(tool):
            yield belts.entry("tool", _as_approved(tool))


def _as_approved(tool: catalog.Tool) -> catalog.Tool:
    tool = dataclasses.replace(tool, description=tool_versions.approved_description(tool))
    # The approved version is also stored while details, or a higher risk, await review.
    if tool_versions.has_undecided_details(tool) or risks.is_restated(tool):
        return tool
    return dataclasses.replace(tool, approved_version="")
