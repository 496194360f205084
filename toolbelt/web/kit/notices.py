"""Responses to changes: notices and confirmations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from toolbelt.web.kit import pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What happened, in one sentence. It stays until it is dismissed or replaced.

    `tone` is "done" or "refused"; `detail` is the effect in short ("−23 tools, −4,118 tokens"); `undo` names the
    audit entry that the button undoes, `undo_word` is what the button says ("Undo", "Redo"), and with `whole` it
    undoes all that was done in that act.
    """

    text: str
    tone: str = "done"
    detail: str = ""
    undo: int | None = None
    undo_word: str = "Undo"
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The question before a change: the reasons, what would differ, and the form that repeats the request.

    `reasons` are what to be careful about, `facts` what is good to know. `fields` are its hidden fields. With
    `three_ways` each difference has a `now`: an undo that finds the key changed since.
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
    three_ways: bool = False
