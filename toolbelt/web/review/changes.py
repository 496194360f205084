"""A tool that awaits review: its texts, differences and findings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control.servers import approvals
from toolbelt.core import schema
from toolbelt.web.kit import pieces, texts, words

MAX_FLAG_LENGTH = 200
_LABELS = {
    "title": "Title",
    "description": "Description",
    "input_schema": "Arguments",
    "output_schema": "Result",
    "annotations": "Hints",
    "details": "Result schema, icons and _meta",
}
_KINDS: Mapping[approvals.Kind, tuple[str, str, str]] = {
    "new": ("new", "accent", "Unavailable until you approve it."),
    "changed": ("changed", "warning", "Unavailable until you approve the new version."),
    "renamed": ("renamed", "warning", "The same tool as {previous}, under a new name."),
    "details": ("details changed", "accent", "Available, but without these details until you approve them."),
    "hints": ("hints changed", "warning", "Available. Its server states another risk than you approved."),
    "differs": ("differs between processes", "warning", "Available, with the approved description."),
    "gone": ("removed", "quiet", "No longer offered. Its settings and history are kept."),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field that differs: ``notes`` are its changes in words, if there are words for them."""

    label: str
    notes: tuple[str, ...]
    text: texts.Text


class Change(pieces.View):
    """One tool to review."""

    def __init__(self, tool_change: approvals.Change, *, ticked: bool = False, moved: bool = False) -> None:
        word, tone, about = _KINDS[tool_change.kind]
        tool = tool_change.tool
        self.value = f"{tool_change.key}={tool_change.version_hash}"
        self.key = tool_change.key
        self.word = word
        self.tone = tone
        self.about = about.format(previous=tool_change.previous)
        self.tool = tool
        self.tokens = tool_change.tokens_after if tool_change.kind != "gone" else tool_change.tokens_before
        self.delta = words.signed(tool_change.tokens_after - tool_change.tokens_before)
        self.users = _users(tool_change)
        self.can_keep = tool_change.can_keep
        self.flags = tuple(texts.pieces(words.cut(flag, MAX_FLAG_LENGTH)) for flag in tool_change.flags)
        self.repairs = tuple(
            texts.pieces(words.cut(repair, MAX_FLAG_LENGTH)) for repair in tool_change.repairs
        )
        self.providers = tuple(texts.pieces(objection) for objection in tool_change.providers)
        self.description = (
            texts.text(tool.description) if tool.description and not tool_change.differences else None
        )
        self.schema = (
            texts.text(_document(tool.input_schema))
            if tool_change.kind == "new" and tool.kind == "tool"
            else None
        )
        self.details = (
            texts.text(_document(tool.details)) if tool_change.kind == "new" and tool.details else None
        )
        self.arguments = texts.visible(", ".join(_arguments(schema.mapping(tool.input_schema, {}))))
        self.differences = tuple(
            Difference(
                label="Details"
                if difference.field == "details" and tool.kind != "tool"
                else _LABELS[difference.field],
                notes=tuple(map(texts.visible, _in_words(difference))),
                text=texts.difference(difference.lines),
            )
            for difference in tool_change.differences
        )
        self.ticked = ticked
        self.moved = moved


def _users(tool_change: approvals.Change) -> str:
    if not tool_change.users:
        return ""
    named = words.listing([user.removeprefix("the ") for user in tool_change.users])
    return f"used by {named}{' under its old name' if tool_change.kind == 'renamed' else ''}"


def _in_words(difference: approvals.Difference) -> Iterator[str]:
    """Yield the changes of arguments or hints in words, if there are words for them."""
    before, after = schema.mapping(difference.old, {}), schema.mapping(difference.new, {})
    if difference.field == "annotations":
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                yield f"{name}: {_hint(before.get(name))} → {_hint(after.get(name))}"
    if difference.field != "input_schema":
        return
    old_names, new_names = _arguments(before), _arguments(after)
    was_required, is_required = _required(before), _required(after)
    for name in new_names:
        if name not in old_names:
            yield f"new {'required' if name in is_required else 'optional'} argument {name}"
        elif name in is_required and name not in was_required:
            yield f"{name} is now required"
        elif name in was_required and name not in is_required:
            yield f"{name} is now optional"
    yield from (f"argument {name} removed" for name in old_names if name not in new_names)


def _arguments(document: Mapping[str, Any]) -> list[str]:
    properties = document.get("properties")
    return [str(name) for name in properties] if isinstance(properties, Mapping) else []


def _required(document: Mapping[str, Any]) -> list[str]:
    required = document.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []


def _hint(value: Any) -> str:
    return "not stated" if value is None else words.cut(json.dumps(value, ensure_ascii=False), 80)


def _document(text: str) -> str:
    return json.dumps(schema.mapping(text, {}), indent=2, sort_keys=True, ensure_ascii=False)
