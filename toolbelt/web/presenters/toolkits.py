"""What do the list of toolkits, the page of one, and the switches of a toolkit's agents show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import access, answers, changes, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitLine:
    """One toolkit of the list. `percent` is the share of the agents that have one of its tools, for the bar.

    `users` counts them ("5 of 12"), `switched` says for how many its switch is set ("on for 3, off for 1").
    """

    key: str
    title: str
    description: str
    marks: tuple[access.Mark, ...]
    tools: str
    tokens: str
    users: str
    percent: int
    switched: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitsPage:
    """The list. `in_all` is how many there are, whatever the filter."""

    toolkits: tuple[ToolkitLine, ...]
    pages: changes.Pages
    columns: tuple[pieces.Column, ...]
    query: str
    shows: tuple[pieces.Choice, ...]
    sort: str
    narrowed: bool
    in_all: int
    matches: str
    notice: answers.Notice | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One tool of the toolkit. `state` is empty unless no agent can have it; `about` then says why."""

    key: str
    prefix: str
    name: str
    description: str
    risk: access.Risk
    tokens: str
    state: str
    about: str
    note: str
    options: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(pieces.Row):
    """One agent's switch of one toolkit, and what the agent has of it.

    `word` counts ("3 of 5 active"), `short` does so where there is little room ("3/5"), `reason` says why it is so.
    `id` begins the names of its parts, `what` names it for those who do not see where it stands; `wants` is what
    its switch asks for, `other` what the link beside it does. They are worked out once: a matrix has hundreds.
    """

    agent: str
    toolkit: str
    id: str
    what: str
    wants: str
    other: str
    switch: access.Switch
    state: access.State
    word: str
    short: str
    reason: str
    protected: bool = False
    may_change: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a trigger looks for: `label` ("any of", "and one of", "none of") and its patterns."""

    label: str
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One trigger. `fires`: it matches the message; `decides`: it is the first that does."""

    number: int
    name: str
    conditions: tuple[Condition, ...]
    focus: tuple[str, ...]
    whole: bool
    required: bool
    fires: bool = False
    decides: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a message that was tried comes to, in a sentence; `tools` it focuses on, `because` of what."""

    told: str
    tools: tuple[str, ...] = ()
    tool_choice: str = ""
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a model is told of the toolkit, as the one of an agent or with all of its tools: `policy` as it stands in
    the prompt, `off` unless one of its tools is active.

    `written` is the text as it is stored, if that differs; `off_text` what it would say without active tools.
    """

    policy: str
    off: bool
    active: str
    written: str
    off_text: str
    triggers: tuple[Trigger, ...]
    in_python: bool
    outcome: Outcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitPage:
    """The page. `owner` is the plugin whose code it is, empty if operators own it; `crowded` says why the editor
    does not take it, to those who may edit it; `admin_url` leads to where they change it, for those who may. `whose`
    chooses whose eyes `told` is for. `seen` is its entry, for those who may remove it; `up` and
    `down` are the neighbours that it would change places with, for those who may order them.
    """

    key: str
    title: str
    description: str
    owner: str
    crowded: str
    marks: tuple[access.Mark, ...]
    tools: str
    tokens: str
    users: str
    switched: str
    members: tuple[Member, ...]
    cells: tuple[Cell, ...]
    find: pieces.FindAgents | None
    pages: changes.Pages
    message: str
    whose: tuple[pieces.Choice, ...]
    told: Told
    examples: str
    stop: pieces.Stop
    seen: str
    place: str
    up: str
    down: str
    admin_url: str
    notice: answers.Notice | None
    may_change: bool
    may_stop: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsAnswer:
    """What a flip gives back to a page with switches of toolkits: what changed of the agent in those that it shows."""

    cells: tuple[Cell, ...]
    toolkits: tuple[ToolkitLine, ...]
    notice: answers.Notice
    may_change: bool
    here: str
