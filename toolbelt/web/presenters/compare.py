"""What does the comparison of two agents show: in what they differ, and what comes of it?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import access, answers, changes, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side: its name and what it is ("as it is", "as it was after olive turned off devops"), and its size.

    ``moment`` says when that was. ``notes`` say what of a past version is not certain. ``url`` leads to it.
    """

    name: str
    about: str
    moment: pieces.Moment | None
    profile: str
    tools: str
    tokens: str
    notes: tuple[str, ...]
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One difference in what is set, and its values on both sides. ``lost`` says why it cannot be copied."""

    id: str
    what: str
    prefix: str
    a: str
    b: str
    lost: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Differences of one sort: settings, switches, overrides …"""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One tool, and its state with the reason on both sides."""

    key: str
    prefix: str
    name: str
    tokens: str
    a: access.State
    a_reason: str
    b: access.State
    b_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """One side of the form: agents and loadouts to choose from; and the moment, if a past one is wanted."""

    name: str
    label: str
    agents: tuple[pieces.Choice, ...]
    loadouts: tuple[pieces.Choice, ...]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What was found. ``to`` is the agent that can be copied to, empty where none can; ``why_not`` then says why.

    ``delta`` and ``tokens_delta`` say what ``b`` has more, or fewer. ``a_spelled`` and ``b_spelled`` are the sides as
    an address has them.
    """

    a: Side
    b: Side
    a_spelled: str
    b_spelled: str
    tools_delta: str
    tokens_delta: str
    groups: tuple[Group, ...]
    count: int
    copyable: int
    outcomes: tuple[Outcome, ...]
    outcomes_pages: changes.Pages
    shows: tuple[pieces.Choice, ...]
    to: str
    why_not: str
    swap_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage:
    """The page. ``trouble`` says which side there is not; ``found`` is None until both are chosen."""

    a: Chooser
    b: Chooser
    trouble: str
    found: Differences | None
    notice: answers.Notice | None
    here: str
