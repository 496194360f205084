"""What do the list of tools and the page of one show?"""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt.web.presenters import access, answers, bulk, changes, pieces, texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A toolkit in passing: its key, and its name for people."""

    key: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLine:
    """One tool of the list. `state` is "active" where the catalog has nothing against it; `about` says what it has."""

    key: str
    prefix: str
    name: str
    description: str
    risk: access.Risk
    tokens: str
    plugin: str
    toolkits: tuple[Named, ...]
    state: access.State
    word: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsPage:
    """The list, a page of it. `in_all` is how many tools there are, whatever the filter."""

    tools: tuple[ToolLine, ...]
    columns: tuple[pieces.Column, ...]
    query: str
    plugins: tuple[pieces.Choice, ...]
    states: tuple[pieces.Choice, ...]
    risks: tuple[pieces.Choice, ...]
    sort: str
    in_all: int
    matches: str
    pages: changes.Pages
    here: str
    bulk: bulk.Bar | None = None
    notice: answers.Notice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument: `path` is its name ("filter.since", "items[]"), `kind` its type in words, `limits` the rest."""

    path: str
    depth: int
    kind: str
    required: bool
    about: str
    limits: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one agent has of the tool, and why; `url` leads to where it is switched."""

    agent: str
    url: str
    state: access.State
    word: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How it was called: `words` in a sentence, `url` leads to its calls."""

    words: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPage:
    """The page. `trouble` says why nobody can have it, with its `state`. `holders` have it, `others` do not."""

    key: str
    prefix: str
    name: str
    title: str
    risk: access.Risk
    plugin: str
    category: str
    marks: tuple[access.Mark, ...]
    toolkits: tuple[Named, ...]
    tokens: str
    users: str
    state: access.State
    word: str
    trouble: str
    description: texts.Text | None
    arguments: tuple[Argument, ...]
    more_arguments: int
    hints: str
    schema: str
    output_schema: str
    policy: str
    holders: tuple[Holding, ...]
    holders_pages: changes.Pages
    others: tuple[Holding, ...]
    others_total: int
    others_pages: changes.Pages
    others_open: bool
    find: pieces.FindAgents | None
    usage: Usage | None
    stop: pieces.Stop
    admin_url: str
    notice: answers.Notice | None
    may_stop: bool
    here: str
