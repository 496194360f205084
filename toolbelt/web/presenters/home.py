"""What does the first page show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import agents, answers, changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """Something that needs an eye. `state` is the shape beside it ("unavailable", "denied", …); `act` is what the
    link at `url` says.
    """

    state: str
    title: str
    about: str
    url: str
    act: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number under the sparkline, and what it counts. `is_key`: it says which of the lines that is."""

    number: str
    about: str
    is_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Calls by day as a line, in the line's own units: `line` and `area` are lists of points for an SVG, `words` tell
    the line to who does not see it.
    """

    line: str
    area: str
    wrong: str
    width: int
    height: int
    words: str
    first: str
    last: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePage:
    """The page. `configured` is False while no agent exists; `usage` is None where nothing was called, and
    for who may not see calls. `last` tells the newest change, for where there is none today.
    """

    configured: bool
    summary: str
    concerns: tuple[Concern, ...]
    more_concerns: str
    entries: tuple[changes.Entry, ...]
    more_entries: str
    last: str
    usage: Usage | None
    may_see_calls: bool
    agents: tuple[agents.AgentLine, ...]
    more_agents: str
    notice: answers.Notice | None
    here: str
