"""What does the page of one agent's settings show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolbelt.web.presenters import agents, answers, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The form, as it is stored or as somebody typed it. `seen` is what the page was made from, for comparing.

    `problems` are by the field's name; those of no field are under the empty name.
    """

    title: str
    role: str
    description: str
    model: str
    kinds: tuple[pieces.Choice, ...]
    loadouts: tuple[pieces.Choice, ...]
    max_tools: str
    max_tokens: str
    on_exceed: tuple[pieces.Choice, ...]
    mcp_loading: tuple[pieces.Choice, ...]
    protected: bool
    seen: str
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Had:
    """One list of what the agent is given by name, each with a mark ("with options", "in every session")."""

    title: str
    names: tuple[tuple[str, str], ...]
    otherwise: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One ready-made piece of code. `id` is its place in the page, for the button that copies it.

    `note` says where it goes, `warnings` what would not arrive there.
    """

    id: str
    label: str
    text: str
    note: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The form that duplicates the agent: the key that was typed, and what was wrong with it."""

    key: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changing:
    """Who may flip the agent's switches: how many users by a role ("3 users"), and who are its `own` operators.

    `users` can be ticked to be that, by whom `may_name` them.
    """

    everywhere: str
    own: tuple[str, ...]
    users: tuple[pieces.Choice, ...]
    may_name: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsPage:
    """The page. `issue` is the command that makes a token; `admin_url` is empty for who may not go there.

    `may_change` its settings now, which an archived agent's are not, `may_archive` it and bring it back, `may_flip` its
    switches. `snippets` ask over HTTP, `clients` configure MCP clients, `frameworks` are programs whose framework asks.
    """

    agent: agents.AgentHeader
    fields: Fields
    had: tuple[Had, ...]
    address: str
    issue: Snippet
    snippets: tuple[Snippet, ...]
    clients: tuple[Snippet, ...]
    frameworks: tuple[Snippet, ...]
    copy: Copy
    admin_url: str
    changing: Changing
    notice: answers.Notice | None
    may_change: bool
    may_archive: bool
    may_flip: bool
    may_add: bool
    may_issue: bool
    here: str
