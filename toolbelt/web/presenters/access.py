"""What does the Access page of one agent show?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolbelt.web.presenters import agents, answers, changes, model, pieces

# The three stored states, in the words of the fields `on` and `was` of every form.
Stored = Literal["true", "false", "unset"]
State = Literal["active", "discoverable", "denied", "dormant", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What a tool may do. Not `stated`: it says nothing about itself, so the worst counts."""

    word: Literal["read-only", "writes", "destructive"]
    stated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow(pieces.Row):
    """One tool of one section. A tool in two toolkits has two rows with equal content.

    `prefix` and `name` are the key in two parts ("github__", "issue_read"): the eye skips the first.
    `inherits` is what no override would give ("on", "off", "loadable"). `until` says when its override ends, if it
    does ("until 16:05 · 1 h 52 min left").
    """

    key: str
    prefix: str
    name: str
    description: str
    risk: Risk
    tokens: str
    stored: Stored
    inherits: str
    state: State
    reason: str
    until: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(pieces.Row):
    """The switch of one toolkit: what is stored, in words, since when ("by olive, 3 min ago"), and until when; `by` is
    who changed it last.
    """

    stored: Stored
    words: str
    since: str = ""
    until: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A word beside a section's title. `tone` is "quiet", "accent", "warning" or "danger"."""

    word: str
    tone: str = "quiet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(pieces.Row):
    """One toolkit, or what one plugin has outside all toolkits (then without a switch).

    `id` is the section's id in the page ("toolkit-issues", "plugin-time"). `size` and `hint` stand behind
    the counts ("~1.2k tokens", "5 loadable"). `overrides` are the overrides that Reset would clear, as the
    values of its hidden fields `was` ("github__issue_read=true"). `matching` tools pass the page's filter, out
    of `total`. `tools` is None until someone opens the section, where the page has too many; `open_url` then is
    the page with this section open.
    """

    id: str
    key: str
    title: str
    description: str
    marks: tuple[Mark, ...]
    trouble: str
    switch: Switch | None
    active: int
    total: int
    matching: int
    size: str
    hint: str
    overrides: tuple[str, ...]
    open: bool
    tools: tuple[ToolRow, ...] | None
    open_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What is typed and chosen above the sections; `matches` says the outcome in words."""

    query: str
    shows: tuple[pieces.Choice, ...]
    narrowed: bool
    matches: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What the menu beside each switch and override offers: states to give for a while, with their words; spans, with
    theirs; what can be set alike of all that is shown, with the words of its states; the time
    zone in which moments are typed; and whether the reader may stop something for everyone.
    """

    words: tuple[tuple[str, str], ...]
    spans: tuple[tuple[str, str], ...]
    bulk: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]
    zone: str
    may_stop: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPage(pieces.Row):
    """The page. `here` is its own path with the query: every form brings it as `next`, to come back to."""

    agent: agents.AgentHeader
    acts: Acts
    filter: Filter
    toolkits: tuple[Section, ...]
    loose: tuple[Section, ...]
    pages: changes.Pages
    model: model.ModelView
    notice: answers.Notice | None
    may_change: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessAnswer:
    """What a change gives back to a page that stays: only the parts that the page said it shows.

    `sections` bring their heads, `rows` their states. `announcement` is spoken by the live region. All of it shows
    what was written up to `revision`.
    """

    agent: agents.AgentHeader
    sections: tuple[Section, ...]
    rows: tuple[ToolRow, ...]
    overridden: int
    model: model.ModelView
    notice: answers.Notice
    announcement: str
    may_change: bool
    here: str
    revision: int
