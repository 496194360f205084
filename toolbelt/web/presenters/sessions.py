"""What does the page of one agent's sessions show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import agents, answers, changes, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """One name that a session asked for. `note` says what stands against it ("not allowed any more")."""

    kind: str
    name: str
    when: pieces.Moment | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """One conversation. `loadout` stands in for the agent's, where it was equipped with one."""

    key: str
    loadout: str
    loaded: tuple[Loaded, ...]
    began: pieces.Moment
    changed: pieces.Moment
    preview_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPage:
    """The page. `initial` is what every session begins with, `loadable` what may come to it; both name toolkits."""

    agent: agents.AgentHeader
    sessions: tuple[SessionLine, ...]
    initial: tuple[str, ...]
    loadable: tuple[str, ...]
    may_discover: bool
    matches: str
    pages: changes.Pages
    notice: answers.Notice | None
    may_change: bool
    may_evict: bool
    here: str
