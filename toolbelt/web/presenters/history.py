"""What does the history of one agent show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import agents, answers, changes, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """What was changed about one agent, newest first. `here` is where an undo comes back to."""

    agent: agents.AgentHeader
    days: tuple[changes.Day, ...]
    people: tuple[pieces.Choice, ...]
    actions: tuple[pieces.Choice, ...]
    keys: tuple[pieces.Choice, ...]
    since: str
    until: str
    narrowed: bool
    matches: str
    pages: changes.Pages
    notice: answers.Notice | None
    may_change: bool
    here: str
