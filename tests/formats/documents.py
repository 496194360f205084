"""Surface documents for tests: minimal ones, and the tools of the demo's real catalogs."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolbelt import formats
from toolbelt.core import keys, meta_tools

CATALOGS = Path(__file__).resolve().parent.parent.parent / "fixtures/demo/catalogs"

Document = dict[str, Any]


def tool(name: str, **fields: Any) -> Document:
    """Return a tool as a surface contains it."""
    schema = {"type": "object", "properties": {}}
    minimal = {"name": name, "description": f"Does {name}.", "input_schema": schema, "annotations": {}}
    return {**minimal, "toolkits": [], "tokens": 1, **fields}


def document(*tools: str | Document, policy: str = "", **fields: Any) -> Document:
    """Return a surface document with the fields that renderers read."""
    entries = [tool(entry) if isinstance(entry, str) else entry for entry in tools]
    fixed = {"tools": entries, "tool_choice": "auto" if entries else "none", "directive": None}
    return {**fixed, "policy": {"text": policy, "sections": []}, **fields}


def focus(*names: str, required: bool = False) -> Document:
    """Return a directive that focuses on these tools."""
    choice = "required" if required else "auto"
    return {"active_tools": list(names), "tool_choice": choice, "first_step_only": True}


def with_schema(**schema: Any) -> Document:
    """Return a surface whose only tool, ``it``, has this schema."""
    return document(tool("it", input_schema=schema))


@functools.cache
def real_tools() -> tuple[Document, ...]:
    """Return every tool of every real catalog, as a surface contains it."""
    return tuple(
        _real(file.stem, listed)
        for file in sorted(CATALOGS.glob("*.json"))
        for listed in json.loads(file.read_text(encoding="utf-8"))["tools"]
    )


def _real(namespace: str, listed: Mapping[str, Any]) -> Document:
    fields = {"title": listed.get("title"), "output_schema": listed.get("outputSchema")}
    return tool(
        keys.fit(listed["name"], namespace),
        description=listed.get("description", ""),
        input_schema=listed["inputSchema"],
        annotations=listed.get("annotations", {}),
        toolkits=[namespace],
        **{name: value for name, value in fields.items() if value},
    )


def requests(form: str) -> Iterator[dict[str, Any]]:
    """Yield the parameters of first and later steps, for surfaces that together contain every real tool."""
    own = [definition.document() for definition in meta_tools.DEFINITIONS.values()]
    tools = real_tools()
    for start in range(0, len(tools), 100):
        batch = tools[start : start + 100]
        names = [tool["name"] for tool in batch]
        for directive in (
            None,
            focus(*names[:3]),
            focus(*names[:3], required=True),
            focus(*names, required=True),
        ):
            yield from steps(form, document(*batch, *own, policy="Be kind.", directive=directive))
    must = focus(tools[0]["name"], required=True)
    yield from steps(form, document(*tools[:2], directive=must))
    yield from steps(form, document())


def steps(form: str, given: Document) -> Iterator[dict[str, Any]]:
    """Yield the parameters of the first step, and of the later ones."""
    parameters = formats.render(form, given)
    first = parameters.pop("first_step", {})
    yield {**parameters, **first}
    yield parameters
