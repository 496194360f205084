"""Details of upstream entries: a tool's full output schema, icons and ``_meta``, and for a prompt, resource or template
everything without a field of its own.

``details`` is stored as one JSON text with MCP's names. It reaches models and clients' screens, so an operator approves
it (:func:`toolbelt.core.tool_versions.has_approved_details`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.core import schema

OUTPUT_SCHEMA, ICONS, META = "outputSchema", "icons", "_meta"
ARGUMENTS, NAME, MIME_TYPE, ANNOTATIONS = "arguments", "name", "mimeType", "annotations"
FIELDS: Mapping[str, tuple[str, ...]] = {
    "tool": (OUTPUT_SCHEMA, ICONS, META),
    "prompt": (ARGUMENTS, ICONS, META),
    "resource": (NAME, MIME_TYPE, ANNOTATIONS, ICONS, META),
    "template": (NAME, MIME_TYPE, ANNOTATIONS, ICONS, META),
    "elicitation": (),
}
# The fields of a prompt's argument, and the roles in a resource's annotations.
ARGUMENT_FIELDS: Mapping[str, type] = {"name": str, "title": str, "description": str, "required": bool}
ROLES = ("user", "assistant")
# The fields of an icon.
ICON_FIELDS = ("src", "mimeType", "sizes", "theme")
# Prefixes of ``_meta`` keys that belong to the protocol or to Toolbelt. Servers cannot set them.
RESERVED_META = ("io.modelcontextprotocol/", "toolbelt/")

# MCP Apps: the extension with which servers offer screens, and their media type.
APPS_EXTENSION = "io.modelcontextprotocol/ui"
SCREEN_TYPE = "text/html;profile=mcp-app"


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """The details of one tool; missing parts are empty."""

    output_schema: Mapping[str, Any] | None = None
    icons: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


def read(text: str) -> Details:
    """Return the details from their JSON text, without invalid parts (a row may be written elsewhere)."""
    listed = schema.mapping(text, {})
    output_schema, icons, meta = (listed.get(name) for name in (OUTPUT_SCHEMA, ICONS, META))
    return Details(
        output_schema=output_schema if isinstance(output_schema, Mapping) else None,
        icons=tuple(icon for icon in icons if is_icon(icon)) if isinstance(icons, list) else (),
        meta=own_meta(meta),
    )


def is_for_apps_only(text: str) -> bool:
    """Return whether the details, as JSON text, keep a tool from models: only a host's apps call it (MCP Apps)."""
    if '"visibility"' not in text:
        return False
    meta = schema.mapping(text, {}).get(META)
    screen = meta.get("ui") if isinstance(meta, Mapping) else None
    visibility = screen.get("visibility") if isinstance(screen, Mapping) else None
    return isinstance(visibility, list) and "app" in visibility and "model" not in visibility


def own_meta(meta: Any) -> dict[str, Any]:
    """Return ``_meta`` without reserved keys; empty if it is not a mapping."""
    if not isinstance(meta, Mapping):
        return {}
    return {key: value for key, value in meta.items() if not key.startswith(RESERVED_META)}


def is_icon(icon: Any) -> bool:
    """Return whether a client may load this icon: an image at an https address, or a data URL."""
    source = icon.get("src") if isinstance(icon, Mapping) else None
    return isinstance(source, str) and source.startswith(("https://", "data:image/"))


def is_argument(document: Any) -> bool:
    """Return whether this is a valid MCP argument of a prompt."""
    return (
        isinstance(document, Mapping)
        and bool(document.get("name"))
        and all(isinstance(value, ARGUMENT_FIELDS.get(name, ())) for name, value in document.items())
    )


def is_annotations(document: Any) -> bool:
    """Return whether these are valid MCP annotations of a resource: its audience and its priority."""
    if not isinstance(document, Mapping) or not document.keys() <= {"audience", "priority"}:
        return False
    audience, priority = document.get("audience", []), document.get("priority", 0)
    return (
        isinstance(audience, list)
        and all(role in ROLES for role in audience)
        and isinstance(priority, int | float)
        and 0 <= priority <= 1
    )


def problem(kind: str, details: Mapping[str, Any]) -> str | None:
    """Return why these cannot be the details of an entry of this kind, or None."""
    unknown = [name for name in details if name not in FIELDS[kind]]
    if unknown:
        allowed = ", ".join(FIELDS[kind]) or "nothing: this kind has none"
        return f"{unknown[0]!r} is not one of {allowed}"
    for name in (NAME, MIME_TYPE):
        if not isinstance(details.get(name, ""), str):
            return f"{name}: a text"
    arguments = details.get(ARGUMENTS, [])
    if not isinstance(arguments, list) or not all(map(is_argument, arguments)):
        return f"{ARGUMENTS}: a list of mappings with {', '.join(ARGUMENT_FIELDS)}"
    if not is_annotations(details.get(ANNOTATIONS, {})):
        return f"{ANNOTATIONS}: a mapping with audience and priority"
    output_schema = details.get(OUTPUT_SCHEMA)
    if output_schema is not None and (wrong := schema.problem(output_schema)):
        return f"{OUTPUT_SCHEMA}: {wrong}"
    icons = details.get(ICONS, [])
    if not isinstance(icons, list) or not all(map(is_icon, icons)):
        return f"{ICONS}: a list of mappings, each with a src that begins with https:// or data:image/"
    meta = details.get(META, {})
    if not isinstance(meta, Mapping) or own_meta(meta) != meta:
        return f"{META}: a mapping without keys that begin with {' or '.join(RESERVED_META)}"
    return None
