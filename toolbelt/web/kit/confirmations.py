"""The questions before a change that needs a confirmation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolbelt.control.reports import queries
from toolbelt.core import errors, grants
from toolbelt.web.kit import model, notices, pieces, words


def confirmation(
    asked: errors.ConfirmationRequired,
    *,
    title: str,
    verb: str,
    action: str,
    fields: Iterable[tuple[str, str]],
    back: str,
) -> notices.Confirmation:
    """Ask before a far-reaching change, with its differences; ``fields`` are those of the first try."""
    differences: dict[str, Any] = asked.differences
    tools = tuple(tool_changes(differences["added"], differences["removed"]))
    return notices.Confirmation(
        title=title,
        reasons=tuple(_short(reason) for reason in asked.reasons),
        effect=pieces.Effect(
            tools=differences["tools"],
            tokens=differences["tokens"],
            notes=(
                *model.notes(differences["policy"]),
                *model.consequences(differences.get("breaks", ()), differences.get("sessions")),
            )
            or (() if tools else ("No change for the model.",)),
        ),
        differences=tools,
        action=action,
        fields=(*fields, ("confirm", "yes")),
        confirm_word=verb,
        dangerous=bool(differences["added"]),
        back=back,
    )


def changed_since(
    done: queries.Entry, stale: errors.Stale, *, title: str, verb: str, action: str, back: str
) -> notices.Confirmation:
    """Ask instead of undoing what was changed since: three ways, and a change based on what is so now."""
    return notices.Confirmation(
        title=title,
        reasons=("There is a newer change of the same setting, so undoing this one would revert both.",),
        differences=(
            pieces.Difference(
                what=done.key,
                before=words.state(done.before),
                after=words.state(done.after),
                now=words.state(stale.now),
            ),
        ),
        three_ways=True,
        action=action,
        fields=(
            ("on", words.stored(grants.is_on(done.before))),
            ("was", words.stored(grants.is_on(stale.now))),
            ("next", back),
        ),
        confirm_word=verb,
        dangerous=False,
        back=back,
    )


def tool_changes(added: Iterable[str], removed: Iterable[str]) -> Iterable[pieces.Difference]:
    """Return a line for each tool that is added or removed."""
    for tools, before, after in ((added, "Not on", "On"), (removed, "On", "Not on")):
        for tool in tools:
            yield pieces.Difference(what=tool, is_tool=True, before=before, after=after)


def _short(reason: str) -> str:
    head, colon, names = reason.partition(": ")
    if not colon:
        return reason
    return f"{head}: {words.listing(names.rstrip('.').split(', '))}."
