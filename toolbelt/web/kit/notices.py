"""Responses to changes: notices and confirmations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from toolbelt.web.kit import pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The result of a change, in one sentence. It stays until it is dismissed or replaced.

    `tone` is "done" or "refused"; `detail` summarizes the effect ("−23 tools, −4,118 tokens"); `undo` is the audit
    entry that the button undoes, `undo_word` is the label of the button ("Undo", "Redo"), and with `whole` it undoes
    the whole batch of that entry.
    """

    text: str
    tone: str = "done"
    detail: str = ""
    undo: int | None = None
    undo_word: str = "Undo"
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The confirmation of a change: reasons, differences, and the form that repeats the request.

    `reasons` are warnings, `facts` are for information. `fields` are the hidden fields of the form. With
    `is_three_way`, each difference also has a current value (`now`): the key was changed again before the undo.
    """

    title: str
    reasons: tuple[str, ...]
    action: str
    fields: Collection[tuple[str, str]]
    confirm_word: str
    back: str
    dangerous: bool = True
    facts: tuple[str, ...] = ()
    effect: pieces.Effect | None = None
    differences: tuple[pieces.Difference, ...] = ()
    is_three_way: bool = False
