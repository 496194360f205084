"""The version of a tool: the hash of what an operator approves, so that a change awaits review.

A tool's name, description and schema are approved together, and what else its server lists (its details) beside them.
"""

from __future__ import annotations

import functools
import hashlib

from toolbelt.core import catalog, schema

# Prefix of the hash of a version, or of details, that an operator rejected.
REJECTED = "rejected:"


def version(tool: catalog.Tool) -> str:
    """Return the hash that an approval covers: name, description and schema of a tool; all that the server lists of any
    other entry.
    """
    if tool.kind != "tool":
        listed = [tool.kind, tool.upstream_name or tool.key, tool.title, tool.description, tool.details]
        return "sha256:" + hashlib.sha256(schema.canonical(listed).encode()).hexdigest()
    return _version(tool.upstream_name or tool.key, tool.description, tool.input_schema)


@functools.lru_cache(maxsize=1024)
def _version(name: str, description: str, input_schema: str) -> str:
    text = catalog.model_json(name, description, schema.mapping(input_schema, schema.EMPTY))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def details_version(tool: catalog.Tool) -> str:
    """Return the hash of the tool's details; empty if it has none."""
    return "sha256:" + hashlib.sha256(tool.details.encode()).hexdigest() if tool.details else ""


def shown_version(tool: catalog.Tool) -> str:
    """Return the hash that a review shows: of what :func:`version` covers, of the details, and, if another version was
    approved, of the annotations, because the review may show a higher risk.
    """
    beside = details_version(tool) + (tool.annotations if tool.approved_version else "")
    if not beside or tool.kind != "tool":
        return version(tool)
    text = version(tool) + beside
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def has_approved_details(tool: catalog.Tool) -> bool:
    """Return whether the tool has details that an operator approved as they are."""
    return bool(tool.details) and tool.details_approved == details_version(tool)


def has_undecided_details(tool: catalog.Tool) -> bool:
    """Return whether the tool has details that an operator has neither approved nor rejected."""
    if not tool.details or tool.kind != "tool":
        return False
    return tool.details_approved.removeprefix(REJECTED) != details_version(tool)


def is_rejected(tool: catalog.Tool) -> bool:
    """Return whether an operator rejected the tool as it is now. A rejected tool is blocked; if it is unblocked, or if
    its server changes it, it awaits review again.
    """
    return tool.approved.startswith(REJECTED) and tool.approved == REJECTED + version(tool)


def awaits_review(tool: catalog.Tool) -> bool:
    """Return whether a plugin's tool awaits a decision, by what is stored of it: nothing is hashed.

    `toolbelt.store.counts` has the same rule as a query. Both miss a changed tool if only the hash of its approved
    version is stored, as after the import of a belt; the review finds that one by its hash.
    """
    if not tool.plugin or tool.retired:
        return False
    is_open_again = tool.approved.startswith(REJECTED) and not tool.blocked
    return not tool.seen or bool(tool.approved_version) or is_open_again


def is_changed(tool: catalog.Tool) -> bool:
    """Return whether the tool differs from the version that an operator approved."""
    return bool(tool.approved) and version(tool) != tool.approved
