"""Definitions: what a model receives for one tool.

A definition is built when its tool is first active and then cached with the catalog, so that a request costs what the
agent has, not what exists.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import catalog, declared_versions, details, schema, tool_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The definition of a tool for a model. ``text`` is its canonical JSON, ``digest`` the SHA-256 of that."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    annotations: Mapping[str, Any]
    icons: tuple[Mapping[str, Any], ...]
    meta: Mapping[str, Any]
    toolkits: tuple[str, ...]
    tokens: int
    text: str
    digest: bytes

    def document(self) -> dict[str, Any]:
        """Return the definition as JSON for the wire."""
        result: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "annotations": self.annotations,
            "toolkits": list(self.toolkits),
            "tokens": self.tokens,
        }
        if self.title:
            result["title"] = self.title
        if self.output_schema is not None:
            result["output_schema"] = self.output_schema
        if self.icons:
            result["icons"] = list(self.icons)
        if self.meta:
            result["meta"] = self.meta
        return result


def of(stored: catalog.Catalog, key: str) -> Definition:
    """Return the definition of a tool of the catalog."""
    kept = computed(stored)
    definition = kept.get(key)
    if definition is None:
        definition = kept[key] = _of_tool(stored, stored.tools[key])
    return definition


@catalog.derived
def computed(stored: catalog.Catalog) -> dict[str, Definition]:
    """Return the definitions that were computed so far, by tool."""
    return {}


def define(
    *,
    name: str,
    description: str,
    input_schema: Mapping[str, Any],
    annotations: Mapping[str, Any],
    title: str = "",
    output_schema: Mapping[str, Any] | None = None,
    icons: tuple[Mapping[str, Any], ...] = (),
    meta: Mapping[str, Any] | None = None,
    toolkits: tuple[str, ...] = (),
    tokens: int = 0,
) -> Definition:
    """Return a definition, with its text and digest."""
    draft = Definition(
        name=name,
        title=title,
        description=description,
        input_schema=input_schema,
        output_schema=output_schema,
        annotations=annotations,
        icons=icons,
        meta=meta or {},
        toolkits=toolkits,
        tokens=tokens,
        text="",
        digest=b"",
    )
    text = schema.canonical(draft.document())
    return dataclasses.replace(draft, text=text, digest=hashlib.sha256(text.encode()).digest())


def _of_tool(stored: catalog.Catalog, tool: catalog.Tool) -> Definition:
    tool = declared_versions.offered(tool)
    approved = details.read(tool.details if tool_versions.has_approved_details(tool) else "")
    return define(
        name=tool.key,
        title=tool.title,
        description=tool.description,
        input_schema=schema.mapping(tool.input_schema, schema.EMPTY),
        output_schema=approved.output_schema or schema.mapping(tool.output_schema, None),
        annotations=schema.mapping(tool.annotations, {}),
        icons=approved.icons,
        meta=approved.meta,
        toolkits=tuple(toolkit.key for toolkit in stored.toolkits_of.get(tool.key, ())),
        tokens=tokens(stored, [tool.key]),
    )


def tokens(stored: catalog.Catalog, keys_: Collection[str]) -> int:
    """Return what the definitions of these tools cost, as agents have them."""
    corrections = _corrections(stored)
    count = sum([stored.tools[key].tokens for key in keys_])
    return count + sum([corrections.get(key, 0) for key in keys_]) if corrections else count


@catalog.derived
def _corrections(stored: catalog.Catalog) -> Mapping[str, int]:
    """Return how many tokens more each tool has as it was approved than in the version that awaits review, which is the
    one whose tokens are stored. Only of tools that agents have as they were approved.
    """
    corrections: dict[str, int] = {}
    for key, tool in stored.tools.items():
        if tool.approved_version and stored.count_tokens is not None:
            shown = declared_versions.offered(tool)
            if shown is not tool:
                takes = schema.mapping(shown.input_schema, schema.EMPTY)
                text = catalog.model_json(key, shown.description, takes)
                corrections[key] = stored.count_tokens(text) - tool.tokens
    return corrections
