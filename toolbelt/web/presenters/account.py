"""What does the page of one's own account show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolbelt.web.presenters import answers, changes, pieces, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What one may do to things of a kind: ``Agents``, ``see, change``."""

    kind: str
    acts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPage:
    """The page. `agents`: those that one operates though one may not every agent.
    `is_everything`: no right is lacking, so none is listed. `problems` are those of the form for another
    password, by its fields; `has_password` is False for a login that another system looks after.
    """

    name: str
    full_name: str
    email: str
    roles: tuple[str, ...]
    agents: tuple[str, ...]
    is_everything: bool
    may_administer: bool
    rights: tuple[Right, ...]
    has_password: bool
    password_rules: tuple[str, ...]
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    session_ends: pieces.Moment | None
    tokens: tuple[tokens.TokenLine, ...]
    may_see_tokens: bool
    entries: tuple[changes.Entry, ...]
    more_entries: str
    changes_url: str
    may_revoke: bool
    notice: answers.Notice | None
    here: str
