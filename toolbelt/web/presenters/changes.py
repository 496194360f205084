"""What does the audit log show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import answers, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One audit entry: `who` did `did` ("turned off") to `subject`, through the shell `via`.

    `agent` is empty for changes of the catalog. `undoable` is False for what cannot be undone, was undone,
    or is not the reader's to undo; `undone` then says the former ("undone by olive, 2 min ago"). `act_url` leads to
    all that was done in the same act, if that was more; `then_url` shows the agent as it was after this, `compare_url`
    beside today. `waits` says of what ended by itself that it is still to be recorded; such an entry has no `id` (0).
    """

    id: int
    who: str
    via: str
    when: pieces.Moment
    did: str
    subject: str
    agent: str
    differences: tuple[pieces.Difference, ...]
    reason: str
    undoable: bool
    undone: str = ""
    act_url: str = ""
    then_url: str = ""
    compare_url: str = ""
    waits: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One act of several entries, looked at alone. `entry` is what an undo of all of it would name, None where there
    is nothing left to undo, or it is not the reader's to undo.
    """

    words: str
    entry: int | None
    all_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """All that the filters leave, as a file."""

    label: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The entries of one day, newest first."""

    words: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Where in the log this page is; empty urls at its ends."""

    words: str
    newer_url: str = ""
    older_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPage:
    """The log, filtered. `here` is the page's own path with the query, to come back to after an undo."""

    days: tuple[Day, ...]
    people: tuple[pieces.Choice, ...]
    agents: tuple[pieces.Choice, ...]
    actions: tuple[pieces.Choice, ...]
    shells: tuple[pieces.Choice, ...]
    key: str
    keys: tuple[str, ...]
    since: str
    until: str
    act: Act | None
    downloads: tuple[Download, ...]
    narrowed: bool
    matches: str
    pages: Pages
    notice: answers.Notice | None
    here: str
