"""What does the page show on which a whole configuration goes out, and comes in?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import answers, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry that an import would add or change, field by field. `url` leads to what it is now, if it has a page."""

    name: str
    is_new: bool
    lines: tuple[pieces.Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What becomes of one section of the belt; `more` counts the entries that are not shown."""

    title: str
    words: str
    entries: tuple[Entry, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What becomes of one agent: tools that come and go, in short and by name."""

    agent: str
    is_new: bool
    effect: pieces.Effect
    came: str
    went: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A belt that could come in: what it would do, to what and to whom. `revision` and `shown` bind the import to it.

    `dangerous`: something in it asks to be confirmed.
    """

    words: str
    is_nothing: bool
    sections: tuple[Section, ...]
    ordered: tuple[str, ...]
    consequences: tuple[Consequence, ...]
    dangerous: bool
    revision: int
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that stands against the belt, and where in it; `where` may be empty."""

    where: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeltPage:
    """The page. `text` is the belt as it was given; then there is either `checked`, or `problems`."""

    sections: tuple[pieces.Choice, ...]
    may_import: bool
    most: str
    text: str
    checked: Checked | None
    problems: tuple[Problem, ...]
    notice: answers.Notice | None
    here: str
