"""What do the list of sub-apps, the page of one, and its editor show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolbelt.web.presenters import access, answers, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAppLine:
    """One sub-app of the list. `held` says for how many of its pairs of agent and tool the binding holds."""

    key: str
    title: str
    description: str
    agents: tuple[str, ...]
    tools: str
    held: str
    up: str
    down: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAppsPage:
    """The list."""

    sub_apps: tuple[SubAppLine, ...]
    total: str
    notice: answers.Notice | None
    may_add: bool
    may_order: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One tool that it binds. `state` is empty unless no agent can have it; `about` then says why."""

    key: str
    prefix: str
    name: str
    description: str
    risk: access.Risk
    tokens: str
    state: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """One agent that it embeds: what the agent has of the tools that are bound to it, and why not more.

    `without` names those that are not active, each with the reason.
    """

    key: str
    url: str
    state: access.State
    word: str
    without: tuple[tuple[str, str], ...]
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAppPage:
    """The page of one."""

    key: str
    title: str
    description: str
    tools: tuple[Bound, ...]
    tokens: str
    agents: tuple[Embedded, ...]
    seen: str
    notice: answers.Notice | None
    may_change: bool
    may_remove: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tool in the editor; `problem` says what is wrong with it."""

    place: int
    key: str
    about: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The editor, as it is stored or as somebody typed it."""

    key: str
    new: bool
    action: str
    back: str
    title: str
    description: str
    tools: tuple[Row, ...]
    agents: tuple[pieces.Choice, ...]
    known: tuple[str, ...]
    reason: str
    seen: str
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """The page of the editor."""

    form: Form
    here: str
    notice: answers.Notice | None = None
