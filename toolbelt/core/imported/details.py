"""Reading of what a server lists for a tool beside its definition: the complete output schema, icons and ``_meta``.

What cannot be imported is left out and reported; the tool is imported without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import details, schema, strict_json
from toolbelt.core.imported import cleaning

# In characters of canonical JSON: all details of a tool, and the address of an icon.
MAX_SIZE = 100_000
MAX_ICON_LENGTH = 20_000
MAX_ICONS = 8

_NAMES = {details.OUTPUT_SCHEMA: "output schema", details.ICONS: "icons", details.META: "_meta"}


def read(
    listed: Mapping[str, Any], output_schema: Mapping[str, Any] | None, bare: Mapping[str, Any] | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the details of a listed tool, and sentences about what was left out.

    ``output_schema`` is the complete schema, cleaned; ``bare`` is the part that needs no approval. If they are equal,
    there is nothing to approve.
    """
    accepted: dict[str, Any] = {}
    left_out: list[str] = []
    if output_schema is not None and output_schema != bare:
        accepted[details.OUTPUT_SCHEMA] = dict(output_schema)
    stated = listed.get(details.ICONS)
    icons = _icons(stated)
    if icons:
        accepted[details.ICONS] = icons
    if isinstance(stated, list) and len(icons) < len(stated):
        left_out.append(
            f"Only {len(icons)} of its {len(stated)} icons can be used: at most {MAX_ICONS}, from https: or data:image/"
            f" addresses of at most {MAX_ICON_LENGTH} characters."
        )
    if meta := details.own_meta(_cleaned(strict_json.copied_object(listed.get(details.META)))):
        accepted[details.META] = meta
    # What clients miss least is left out first.
    too_much = [
        _NAMES[name]
        for name in (details.ICONS, details.META, details.OUTPUT_SCHEMA)
        if len(schema.canonical(accepted)) > MAX_SIZE and accepted.pop(name, None) is not None
    ]
    if too_much:
        names = " and ".join(too_much)
        left_out.append(f"Its details have more than {MAX_SIZE} characters: {names} were left out.")
    return accepted, left_out


def _icons(stated: Any) -> list[dict[str, Any]]:
    icons = []
    for icon in stated if isinstance(stated, list) else ():
        read_icon = strict_json.copied_object(icon)
        if read_icon is None or not details.is_icon(read_icon) or len(read_icon["src"]) > MAX_ICON_LENGTH:
            continue
        icons.append(_cleaned({name: read_icon[name] for name in details.ICON_FIELDS if name in read_icon}))
    return icons[:MAX_ICONS]


def _cleaned(value: Any) -> Any:
    """Return the JSON value without invisible characters in its texts."""
    match value:
        case str():
            return "".join(character for character in value if not cleaning.is_hidden(character))
        case Mapping():
            return {_cleaned(key): _cleaned(item) for key, item in value.items()}
        case list():
            return [_cleaned(item) for item in value]
    return value
