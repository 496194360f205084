"""The version of a tool: the hash of what an operator approves, so that a change awaits review.

A tool's name, description and schema are approved together, and what else its server lists (its details) beside them.
The hash is that of a normal form, and begins with the number of the form: a schema that only looks different is no
change, and a later form can tell which hashes are older. Hashes without a number are of the exact text.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib

from toolbelt.core import catalog, keys, schema
from toolbelt.core.schema import normal_form

# The number of the form, which begins each hash of a version.
NUMBER = "2:"
# How many digits of the hash name a version where it is only compared with other versions of the same tool.
SHORT = 24
# How many versions are cached: the rules compare that of every tool.
MAX_CACHED = 16_384
# Prefix of the hash of a version, or of details, that an operator rejected.
REJECTED = "rejected:"


def version(tool: catalog.Tool) -> str:
    """Return the hash that an approval covers: name, description and schema of a tool; all that the server lists of any
    other entry.
    """
    if tool.kind != "tool":
        return NUMBER + unnumbered_version(tool)
    return NUMBER + _normal(tool.upstream_name or tool.key, tool.description, tool.input_schema, False)


def short(version: str) -> str:
    """Return the beginning of a version's hash, by which records of calls name it."""
    return version.rpartition(":")[2][:SHORT]


def unnumbered_version(tool: catalog.Tool) -> str:
    """Return the hash of the tool's exact texts, as approvals referred to before hashes were numbered."""
    if tool.kind != "tool":
        listed = [tool.kind, tool.upstream_name or tool.key, tool.title, tool.description, tool.details]
        return _hash(schema.canonical(listed))
    return _exact(tool.upstream_name or tool.key, tool.description, tool.input_schema)


def is_version(tool: catalog.Tool, approved: str) -> bool:
    """Return whether a hash, with or without a number, is that of the tool as it is now."""
    return approved == (version(tool) if approved.startswith(NUMBER) else unnumbered_version(tool))


def renumbered(tool: catalog.Tool) -> catalog.Tool:
    """Return the tool with its approval or rejection numbered, if that refers to a version whose texts are stored."""
    prefix = REJECTED if tool.approved.startswith(REJECTED) else ""
    approved = tool.approved.removeprefix(prefix)
    if not approved or approved.startswith(NUMBER):
        return tool
    for stored in (tool, approved_texts(tool)):
        if stored is not None and is_version(stored, approved):
            return dataclasses.replace(tool, approved=prefix + version(stored))
    return tool


def approved_texts(tool: catalog.Tool) -> catalog.Tool | None:
    """Return the tool as it was approved, while another version awaits review; None if that is not stored."""
    fields = schema.mapping(tool.approved_version, {})
    if not fields:
        return None
    documents = {
        name: schema.canonical(fields[name]) if fields.get(name) else ""
        for name in ("output_schema", "annotations", "details")
    }
    return dataclasses.replace(
        tool,
        title=fields.get("title") or "",
        description=fields.get("description") or "",
        input_schema=schema.canonical(fields.get("input_schema", schema.EMPTY)),
        output_schema=documents["output_schema"],
        annotations=documents["annotations"],
        details=documents["details"],
        approved_version="",
    )


def approved_description(tool: catalog.Tool) -> str:
    """Return the description that an approval covers; that of the tool as it is if no other is stored."""
    approved = approved_texts(tool) if tool.approved_version and is_changed(tool) else None
    return (approved or tool).description


def is_reworded(tool: catalog.Tool) -> bool:
    """Return whether the tool differs from its approved version, but only in its description."""
    if not is_changed(tool):
        return False
    return is_version(dataclasses.replace(tool, description=approved_description(tool)), tool.approved)


def is_same_declaration(one: catalog.Tool, other: catalog.Tool) -> bool:
    """Return whether a program's tool is the same in two forms, as frameworks write the schema of one function."""
    return _open(one) == _open(other)


def _open(tool: catalog.Tool) -> str:
    return _normal(tool.upstream_name or tool.key, tool.description, tool.input_schema, True)


@functools.lru_cache(maxsize=MAX_CACHED)
def _normal(name: str, description: str, input_schema: str, is_open: bool) -> str:
    bare = name.partition(keys.SEPARATOR)[2] or name
    takes = normal_form.of(
        schema.mapping(input_schema, schema.EMPTY), (name, bare), description, is_open=is_open
    )
    return _hash(catalog.model_json(name, description.strip(), takes))


@functools.lru_cache(maxsize=MAX_CACHED)
def _exact(name: str, description: str, input_schema: str) -> str:
    return _hash(catalog.model_json(name, description, schema.mapping(input_schema, schema.EMPTY)))


def _hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def details_version(tool: catalog.Tool) -> str:
    """Return the hash of the tool's details; empty if it has none."""
    return _hash(tool.details) if tool.details else ""


def shown_version(tool: catalog.Tool) -> str:
    """Return the hash that a review shows: of what :func:`version` covers, of the details and repairs, and, if another
    version was approved, of the annotations, because the review may show a higher risk.
    """
    beside = details_version(tool) + (tool.annotations if tool.approved_version else "") + tool.repairs
    if not beside or tool.kind != "tool":
        return version(tool)
    return NUMBER + _hash(version(tool) + beside)


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
    return tool.approved.startswith(REJECTED) and is_version(tool, tool.approved.removeprefix(REJECTED))


def is_only_named(tool: catalog.Tool) -> bool:
    """Return whether nothing is stored of what the source of the tool states: a belt or an adopted file named it, and
    the source has not listed or declared it since.
    """
    stated = (tool.title, tool.description, tool.output_schema, tool.annotations, tool.details)
    return not any(stated) and tool.input_schema == schema.EMPTY_TEXT and not tool.declared_versions


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
    return bool(tool.approved) and not is_version(tool, tool.approved)
