"""What does the page of API tokens show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolbelt.web.presenters import answers, changes, pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLine:
    """One token: `agent` or `operator` says whose it is. `state` is "valid", "ends in 3 d", "revoked" …

    `tone` is that of its mark. `over`: it opens nothing any more.
    """

    prefix: str
    name: str
    agent: str
    operator: str
    scope: str
    state: str
    tone: str
    over: bool
    created: pieces.Moment
    ends: pieces.Moment | None
    used: pieces.Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The form that issues one, as it is at first or as somebody sent it; `problems` by the field's name."""

    owner: str
    agents: tuple[pieces.Choice, ...]
    scopes: tuple[pieces.Choice, ...]
    ends: tuple[pieces.Choice, ...]
    name: str
    me: str
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A token that was issued just now: its `text` stands here, and nowhere else ever again."""

    text: str = field(repr=False)
    prefix: str
    whose: str
    ends: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensPage:
    """The page. `gone` are those that open nothing any more; `in_all` how many there are, whatever is looked for."""

    tokens: tuple[TokenLine, ...]
    tokens_pages: changes.Pages
    gone: tuple[TokenLine, ...]
    gone_total: int
    gone_pages: changes.Pages
    gone_open: bool
    wanted: Wanted | None
    issued: Issued | None
    query: str
    in_all: int
    matches: str
    notice: answers.Notice | None
    may_revoke: bool
    here: str
