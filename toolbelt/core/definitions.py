"""What is a model sent of one tool?

A definition is built when its tool is first active and then kept with the catalog, so that a question costs what
the agent has and not what exists.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import catalog, schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a model is sent of one tool. ``text`` is its canonical JSON, ``digest`` the SHA-256 of that."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    annotations: Mapping[str, Any]
    toolkits: tuple[str, ...]
    tokens: int
    text: str
    digest: bytes

    def document(self) -> dict[str, Any]:
        """Give the definition as it stands on the wire (wire.md: A surface)."""
        found: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "annotations": self.annotations,
            "toolkits": list(self.toolkits),
            "tokens": self.tokens,
        }
        if self.title:
            found["title"] = self.title
        if self.output_schema is not None:
            found["output_schema"] = self.output_schema
        return found


def of(stored: catalog.Catalog, key: str) -> Definition:
    """Give the definition of a tool of the catalog."""
    kept: dict[str, Definition] = stored.derived.setdefault("definitions", {})
    known = kept.get(key)
    if known is None:
        known = kept[key] = _of_tool(stored, stored.tools[key])
    return known


def define(
    *,
    name: str,
    description: str,
    input_schema: Mapping[str, Any],
    annotations: Mapping[str, Any],
    title: str = "",
    output_schema: Mapping[str, Any] | None = None,
    toolkits: tuple[str, ...] = (),
    tokens: int = 0,
) -> Definition:
    """Put a definition together, with the text and the digest that follow from the rest."""
    draft = Definition(
        name=name,
        title=title,
        description=description,
        input_schema=input_schema,
        output_schema=output_schema,
        annotations=annotations,
        toolkits=toolkits,
        tokens=tokens,
        text="",
        digest=b"",
    )
    text = schema.canonical(draft.document())
    return dataclasses.replace(draft, text=text, digest=hashlib.sha256(text.encode()).digest())


def _of_tool(stored: catalog.Catalog, tool: catalog.Tool) -> Definition:
    return define(
        name=tool.key,
        title=tool.title,
        description=tool.description,
        input_schema=schema.mapping(tool.input_schema, schema.EMPTY),
        output_schema=schema.mapping(tool.output_schema, None),
        annotations=schema.mapping(tool.annotations, {}),
        toolkits=tuple(toolkit.key for toolkit in stored.toolkits_of.get(tool.key, ())),
        tokens=tool.tokens,
    )
