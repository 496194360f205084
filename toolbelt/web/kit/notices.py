"""What an operator gets back from a change: a notice, or a question first."""

from __future__ import annotations

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
    """The server's question before a change: why it asks, what would differ, and the form that would do it.

    `fields` are the fields of the first try and the `confirm` that answers the question. With `three_ways`
    each difference has a `now`: an undo that finds the key changed since.
    """

    title: str
    reasons: tuple[str, ...]
    effect: pieces.Effect | None
    differences: tuple[pieces.Difference, ...]
    three_ways: bool
    action: str
    fields: tuple[pieces.Field, ...]
    confirm_word: str
    dangerous: bool
    back: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmPage:
    """The question as a page of its own, for a browser without JavaScript."""

    confirmation: Confirmation
