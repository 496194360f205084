"""What does the matrix of agents and toolkits show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import answers, changes, pieces, toolkits


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One toolkit, with a cell for each agent that is shown."""

    toolkit: toolkits.ToolkitLine
    cells: tuple[toolkits.Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent: `set` says how many of its switches are; `url` leads to the matrix of it alone."""

    key: str
    url: str
    set: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPage:
    """The page. `one`: it is narrowed to one agent, and laid out as a list. `may_change_some`: the reader may flip the
    switches of some agents, not of all. `find_agents`: there are more agents than columns. `clear` names the way back
    to the defaults, in as much room as there is.
    """

    rows: tuple[Row, ...]
    agents: tuple[Agent, ...]
    one: bool
    clear: str
    query: str
    agents_query: str
    find_agents: bool
    toolkits_pages: changes.Pages
    agents_pages: changes.Pages
    choices: tuple[pieces.Choice, ...]
    narrowed: bool
    matches: str
    notice: answers.Notice | None
    may_change: bool
    may_change_some: bool
    here: str
