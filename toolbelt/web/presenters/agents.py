"""What does the list of agents show, and what stands above the pages of one of them?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import answers, bulk, changes, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLine:
    """One agent. `profile` says where its tools come from ("loadout developer", "kind plan → developer").

    `percent` is the share of active tools, for the bar; `trouble` names what needs an eye ("over budget").
    """

    key: str
    role: str
    profile: str
    protected: bool
    active: str
    total: str
    percent: int
    tokens: str
    last_change: pieces.LastChange | None
    archived: bool = False
    trouble: str = ""
    budget: pieces.Meter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHeader:
    """Name and size of the agent. `profile` says where its tools come from ("loadout developer")."""

    key: str
    role: str
    profile: str
    protected: bool
    active: str
    total: str
    tokens: str
    last_change: pieces.LastChange | None
    archived: bool = False
    budget: pieces.Meter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One heading of the table. `url` sorts by it; `order` is "ascending", "descending" or "" (neither)."""

    name: str
    label: str
    url: str
    order: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsPage:
    """The list, of agents or of the `archived` ones. `configured` is False while no agent exists: the page then tells
    how to load the demo.
    """

    agents: tuple[AgentLine, ...]
    columns: tuple[Column, ...]
    query: str
    kinds: tuple[pieces.Choice, ...]
    loadouts: tuple[pieces.Choice, ...]
    sorts: tuple[pieces.Choice, ...]
    narrowed: bool
    archived: bool
    configured: bool
    matches: str
    pages: changes.Pages
    here: str
    bulk: bulk.Bar | None = None
    notice: answers.Notice | None = None
