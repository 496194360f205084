"""Secrets in options: refused where they are written, and withheld from entries (docs/semantics.md: Options).

An option is configuration, which is exported, logged and shown. A secret in one is written as a reference to a
variable, ``${NAME}``. One that was stored before this rule keeps working: in an entry, :data:`secret_texts.WITHHELD`
stands for it, and an entry that is written with that keeps what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import schema, secret_texts
from toolbelt.core.belts import findings

# The fields of entries whose items may carry options.
FIELDS: Mapping[str, str] = {"toolkit": "members", "agent": "tools"}
_WAY_OUT = (
    "The option {option!r} looks like a secret, which options never hold: set it as a secret of the tool's plugin or as"
    " a variable, and write ${{NAME}} instead."
)
_WITHHELD = (
    "The value of the option {option!r} was withheld, and none is stored: write ${{NAME}}, or leave it out."
)


def withheld_use(use: Any) -> Any:
    """Return the use of a tool without the secrets in its options."""
    if not isinstance(use, Mapping) or not isinstance(use.get("options"), Mapping):
        return use
    options = use["options"]
    return {**use, "options": secret_texts.withheld("", options)} if has_secret(options) else use


def withheld(fields: Any) -> Any:
    """Return an entry, or some of its fields, without the secrets in options."""
    if not isinstance(fields, Mapping):
        return fields
    without = {
        name: [withheld_use(use) for use in fields[name]]
        for name in FIELDS.values()
        if isinstance(fields.get(name), list | tuple)
    }
    return {**fields, **without} if without else fields


def has_withheld(kind: str, entry: Any) -> bool:
    """Return whether an option of an entry stands for one that was withheld."""
    field = FIELDS.get(kind)
    uses = entry.get(field) if field is not None and isinstance(entry, Mapping) else None
    return any(_has_options(use) and _contains_withheld(use["options"]) for use in uses or ())


def restored(kind: str, entry: Any, stored: Any) -> Any:
    """Return an entry in which each withheld value of an option is the one that is stored at its place.

    A use keeps the options of the same tool, or, if that is new, those of a tool that the entry no longer has.
    """
    field = FIELDS.get(kind)
    if field is None or not isinstance(entry, Mapping) or not isinstance(entry.get(field), list | tuple):
        return entry
    by_tool = _options(field, stored)
    tools = {use["tool"] for use in entry[field] if _has_options(use)}
    left = {tool: options for tool, options in by_tool.items() if tool not in tools}
    uses = []
    for use in entry[field]:
        if _has_options(use) and _contains_withheld(use["options"]):
            options = by_tool.get(use["tool"]) or next(
                (old for old in left.values() if schema.same(secret_texts.withheld("", old), use["options"])),
                None,
            )
            use = {**use, "options": _restored(use["options"], options)}
        uses.append(use)
    return {**entry, field: uses}


def check(kind: str, entry: Any, stored: Any) -> Iterator[findings.Finding]:
    """Yield a finding for each option of an entry that is a secret, unless it is stored in this entry already, and for
    each that was withheld.
    """
    field = FIELDS.get(kind)
    if field is None:
        return
    known: list[tuple[findings.Path, Any]] | None = None
    for position, use in enumerate(getattr(entry, field) or ()):
        if use is None or not use.tool or use.options is None:
            continue
        for at, value in secret_texts.secrets_in(use.options):
            if known is None:
                known = [
                    found
                    for old in _options(field, stored).values()
                    for found in secret_texts.secrets_in(old)
                ]
            if (at, value) not in known:
                yield _finding(_WAY_OUT, field, position, at)
        for at in _withheld_places(use.options):
            yield _finding(_WITHHELD, field, position, at)


def _finding(message: str, field: str, position: int, at: findings.Path) -> findings.Finding:
    option = ".".join(map(str, at))
    return findings.Finding((field, position, "options", *at), message.format(option=option))


def has_secret(options: Any) -> bool:
    """Return whether options contain a secret."""
    return next(secret_texts.secrets_in(options), None) is not None


def _options(field: str, entry: Any) -> dict[str, Mapping[str, Any]]:
    uses = entry.get(field) if isinstance(entry, Mapping) else None
    return {use["tool"]: use["options"] for use in uses or () if _has_options(use)}


def _has_options(use: Any) -> bool:
    return (
        isinstance(use, Mapping)
        and isinstance(use.get("tool"), str)
        and isinstance(use.get("options"), Mapping)
    )


def _contains_withheld(value: Any) -> bool:
    return next(_withheld_places(value), None) is not None


def _withheld_places(value: Any, at: findings.Path = ()) -> Iterator[findings.Path]:
    if value == secret_texts.WITHHELD:
        yield at
    elif len(at) > secret_texts.MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _withheld_places(item, (*at, key))
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from _withheld_places(item, (*at, position))


def _restored(value: Any, stored: Any, depth: int = 0) -> Any:
    if value == secret_texts.WITHHELD:
        return value if stored is None else stored
    if depth > secret_texts.MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        old = stored if isinstance(stored, Mapping) else {}
        return {key: _restored(item, old.get(key), depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = stored if isinstance(stored, list | tuple) else ()
        return [
            _restored(item, items[position] if position < len(items) else None, depth + 1)
            for position, item in enumerate(value)
        ]
    return value
