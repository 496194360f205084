"""Which permissions does an act of an operator ask for? One answer for screens, admin and API.

They are Django's own four a model. What the screens show to everyone who is logged in may be read by every operator;
the rest is the admin's, and asks for the permission that the admin asks for. Whether somebody has a permission is
for the shell to ask: it knows who is there. One act can be allowed for single agents: their own operators may flip
their switches, and change their sessions (see `roles`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from toolbelt.core import belts
from toolbelt.store import operators

Act = Literal["view", "add", "change", "delete"]

# What the audit calls otherwise than the row that it is.
_ROWS = {"session": "agent_session", "token": "api_token"}
# The pages of agents, tools, toolkits, loadouts and sub-apps show them, and so does the log of changes.
_ON_SCREENS = frozenset({"agent", "tool", "toolkit", "loadout", "sub_app", "audit_entry"})


class Told(Protocol):
    """What of an audit entry, or of its row, says how it is taken back."""

    @property
    def action(self) -> str: ...

    @property
    def subject_kind(self) -> str: ...

    @property
    def subject_key(self) -> str: ...


class Holder(Protocol):
    """Somebody who has permissions or lacks them: a user of Django."""

    @property
    def pk(self) -> Any: ...

    def has_perm(self, perm: str) -> bool: ...


def to(act: Act, kind: str) -> str:
    """Name the permission for doing this to an entry of this kind: ``toolbelt.change_subapp``."""
    return f"toolbelt.{act}_{_ROWS.get(kind, kind).replace('_', '')}"


# An agent's switches and overrides are the agent's.
FLIP = to("change", "agent")


# Who may say who operates an agent: it is a matter of users as well.
NAME_OPERATORS = (FLIP, "auth.change_user")


def may_flip(holder: Holder, agent: str) -> bool:
    """Say whether they may flip this agent's switches: every agent's, or as one of its own operators."""
    return holder.has_perm(FLIP) or agent in operators.of_user(holder.pk)


def flippable(holder: Holder) -> Callable[[str], bool]:
    """Give what says of each agent whether they may flip its switches, for pages with many. One query at the most."""
    if holder.has_perm(FLIP):
        return lambda agent: True
    return operators.of_user(holder.pk).__contains__


def may_change_sessions(holder: Holder, act: Literal["change", "delete"], agent: str) -> bool:
    """Say whether they may equip (change) or evict (delete) this agent's sessions."""
    return holder.has_perm(to(act, "session")) or agent in operators.of_user(holder.pk)


def may_undo(holder: Holder, entry: Told) -> bool:
    """Say whether they may make the change that takes this one back."""
    return undoable(holder)(entry)


def undoable(holder: Holder) -> Callable[[Told], bool]:
    """Give what says of each change whether they may make the one that takes it back, for pages with many. One query
    at the most.
    """
    own = functools.cache(lambda: operators.of_user(holder.pk))

    def may(entry: Told) -> bool:
        if all(map(holder.has_perm, to_undo(entry))):
            return True
        family = entry.action.partition(".")[0]
        of_operators = family in ("switch", "override") or entry.action == "session.equip"
        return of_operators and entry.subject_key in own()

    return may


def may_read(holder: Holder, kind: str) -> bool:
    """Say whether they may look at entries of this kind; whoever may change them may."""
    if kind in _ON_SCREENS:
        return True
    return holder.has_perm(to("view", kind)) or holder.has_perm(to("change", kind))


def is_open(kind: str) -> bool:
    """Say whether everybody who has logged in may look at entries of this kind."""
    return kind in _ON_SCREENS


def to_undo(entry: Told) -> list[str]:
    """Name the permissions that the change which takes this one back asks for."""
    family, _, act = entry.action.partition(".")
    if family in ("switch", "override"):
        return [FLIP]
    if entry.action == "agent.operators":
        return [*NAME_OPERATORS]
    if act == "create":
        return [to("delete", entry.subject_kind)]
    return [to("add" if act == "remove" else "change", entry.subject_kind)]


def to_import(belt: Mapping[str, Any]) -> list[str]:
    """Name the permissions that importing this belt asks for: those to add and to change what its sections hold."""
    kinds = [name for name, kind in belts.KINDS.items() if belt.get(kind.section)]
    return [to(act, kind) for kind in kinds for act in ("add", "change")]
