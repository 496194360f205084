"""The questions before a change that needs a confirmation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolbelt.core import errors
from toolbelt.web.kit import model_panel, notices, pieces, words


def confirmation(
    asked: errors.ConfirmationRequired, fields: Iterable[tuple[str, str]], **form: Any
) -> notices.Confirmation:
    """Return the question before a far-reaching change, with its differences; ``fields`` are those of the request."""
    differences: dict[str, Any] = asked.differences
    tools = tuple(tool_changes(differences["added"], differences["removed"]))
    return notices.Confirmation(
        reasons=tuple(short(reason) for reason in asked.reasons),
        effect=pieces.Effect(
            tools=differences["tools"],
            tokens=differences["tokens"],
            notes=(
                *model_panel.notes(differences["policy"]),
                *model_panel.consequences(differences.get("breaks", ()), differences.get("sessions")),
            )
            or (() if tools else ("No change for the model.",)),
        ),
        differences=tools,
        fields=(*fields, ("confirm", "yes")),
        dangerous=bool(differences["added"]),
        **form,
    )


def tool_changes(added: Iterable[str], removed: Iterable[str]) -> Iterable[pieces.Difference]:
    """Return a line for each tool that is added or removed."""
    for tools, before, after in ((added, "Not on", "On"), (removed, "On", "Not on")):
        for tool in tools:
            yield pieces.Difference(what=tool, is_tool=True, before=before, after=after)


def short(reason: str) -> str:
    """Return a reason with the first few of the names in it."""
    head, colon, names = reason.partition(": ")
    if not colon:
        return reason
    return f"{head}: {words.listing(names.rstrip('.').split(', '))}."
