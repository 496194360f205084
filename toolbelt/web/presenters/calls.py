"""What does the log of calls show, and what do they add up to?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import changes, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call. `state` is the shape beside its outcome; `error` is what was told or what broke, in a line."""

    when: pieces.Moment
    agent: str
    agent_url: str
    tool: str
    tool_url: str
    state: str
    outcome: str
    error: str
    duration: str
    sizes: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFigures:
    """The calls of one tool. `share` compares them with the most called, `slowness` with the slowest; for bars.

    `mark` says what a name is that no tool of the catalog has.
    """

    tool: str
    mark: str
    tool_url: str
    calls: str
    calls_url: str
    share: int
    errors: str
    error_share: str
    median: str
    slow: str
    slowness: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One day of the chart, in the chart's own units: `x`, and from the bottom what went well, was refused, failed."""

    x: int
    words: str
    good_y: int
    good: int
    refused_y: int
    refused: int
    failed_y: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Calls by day. `words` tell it to who does not see it; `most` is what the highest bar stands for."""

    bars: tuple[Bar, ...]
    width: int
    words: str
    most: str
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One day of the lines, in their own units: where its points are, and a column to point at."""

    x: int
    left: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """How long calls took, by day: `median` and `slow` are lists of points for an SVG, `words` tell them. `most` is
    what the top stands for.
    """

    median: str
    slow: str
    dots: tuple[Dot, ...]
    width: int
    words: str
    most: str
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """An agent that has a tool and did not call it. `was` is its override of it: what turning it off compares with."""

    agent: str
    was: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedTool:
    """A tool that agents have and did not call; `tokens` is what it costs in a request of each of them.

    `holders` are those of them for whom the reader may turn it off, the first of them where there `is_more`.
    """

    tool: str
    prefix: str
    name: str
    agents: str
    is_of_many: bool
    tokens: str
    holders: tuple[Holder, ...]
    is_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """What nobody called: the dearest `tools` of it, what all of it costs, and where to see the rest."""

    tools: tuple[UnusedTool, ...]
    words: str
    more: str
    more_url: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """How many calls came in since the log was shown, in `words`, empty for none. `url` says it again, `show_url` shows
    them.
    """

    words: str
    url: str
    show_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsPage:
    """The page. `since` and `until` are days as a field of a form has them. `news` is None where none can come: on a
    page of older calls, or of days gone by.
    """

    agents: tuple[pieces.Choice, ...]
    tools: tuple[pieces.Choice, ...]
    outcomes: tuple[pieces.Choice, ...]
    since: str
    until: str
    narrowed: bool
    matches: str
    chart: Chart | None
    lines: Lines | None
    figures: tuple[ToolFigures, ...]
    every_url: str
    every_words: str
    unused: Unused | None
    calls: tuple[Call, ...]
    pages: changes.Pages
    news: News | None
    here: str
