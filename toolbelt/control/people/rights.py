"""The permissions that operators' actions require, for the dashboard, the admin and the API alike.

These are Django's four permissions for each model. Everything that the dashboard shows to every user who is logged in
may be read by every operator; everything else requires the same permission as in the admin. Checking whether a user has
a permission is up to the interface, which knows the user. One thing can be allowed for single agents: their own
operators may flip their switches and change their sessions (see `roles`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, Protocol

from toolbelt.core import belts
from toolbelt.store import operators

Act = Literal["view", "add", "change", "delete"]

# Kinds whose name in the audit log differs from their model's.
_ROWS = {"connection": "client_connection", "session": "agent_session", "token": "api_token"}
# The pages of agents, tools, toolkits, loadouts, sub-apps and rules show them, and so does the audit log.
_ON_DASHBOARD = frozenset(
    {"agent", "tool", "toolkit", "loadout", "sub_app", "gate_rule", "audit_entry", "settings"}
)


class UndoableEntry(Protocol):
    """The part of an audit entry that determines how it is undone."""

    @property
    def action(self) -> str: ...

    @property
    def subject_kind(self) -> str: ...

    @property
    def subject_key(self) -> str: ...

    @property
    def before(self) -> Any: ...

    @property
    def after(self) -> Any: ...


User = operators.User


def permission(act: Act, kind: str) -> str:
    """Return the permission for this action on an entry of this kind: ``toolbelt.change_subapp``."""
    return f"toolbelt.{act}_{_ROWS.get(kind, kind).replace('_', '')}"


# An agent's switches and overrides belong to the agent.
FLIP = permission("change", "agent")


# To name the operators of an agent, which also concerns users.
SET_OPERATORS = (FLIP, "auth.change_user")

# To let MCP clients use every agent for oneself.
USE = permission("add", "connection")


def may_use(user: User, agent: str) -> bool:
    """Return whether the user may let MCP clients act as this agent: as every agent, or as one of its operators."""
    return user.has_perm(USE) or agent in operators.of_user(user.pk)


def may_use_any(user: User) -> bool:
    """Return whether the user may let MCP clients act as at least one agent."""
    return user.has_perm(USE) or bool(operators.of_user(user.pk))


def may_flip(user: User, agent: str) -> bool:
    """Return whether the user may flip this agent's switches: those of every agent, or as one of its operators."""
    return user.has_perm(FLIP) or agent in operators.of_user(user.pk)


def flip_check(user: User) -> Callable[[str], bool]:
    """Return a function that tells whether the user may flip an agent's switches, for pages with many agents. Uses at
    most one query.
    """
    if user.has_perm(FLIP):
        return lambda agent: True
    return operators.of_user(user.pk).__contains__


def may_change_sessions(user: User, act: Literal["change", "delete"], agent: str) -> bool:
    """Return whether the user may equip (change) or evict (delete) this agent's sessions."""
    return user.has_perm(permission(act, "session")) or agent in operators.of_user(user.pk)


DECIDE = operators.DECIDE


def may_decide(user: User, agent: str) -> bool:
    """Return whether the user may see and decide about this agent's calls that wait for approval: those of every
    agent, or as one of its operators.
    """
    return user.has_perm(DECIDE) or agent in operators.of_user(user.pk)


def decidable_agents(user: User) -> frozenset[str] | None:
    """Return the agents about whose calls the user may decide; None: all. Uses at most one query."""
    return operators.decidable(user)


def may_undo(user: User, entry: UndoableEntry) -> bool:
    """Return whether the user may undo this change."""
    return undo_check(user)(entry)


def undo_check(user: User) -> Callable[[UndoableEntry], bool]:
    """Return a function that tells whether the user may undo a change, for pages with many changes. Uses at most one
    query.
    """
    operated = functools.cache(lambda: operators.of_user(user.pk))

    def may(entry: UndoableEntry) -> bool:
        if all(map(user.has_perm, permissions_to_undo(entry))):
            return True
        family = entry.action.partition(".")[0]
        of_operators = family in ("switch", "override") or entry.action == "session.equip"
        return of_operators and entry.subject_key in operated()

    return may


def may_read(user: User, kind: str) -> bool:
    """Return whether the user may view entries of this kind; permission to change them is enough."""
    if kind in _ON_DASHBOARD:
        return True
    return user.has_perm(permission("view", kind)) or user.has_perm(permission("change", kind))


def is_open(kind: str) -> bool:
    """Return whether every user who is logged in may view entries of this kind."""
    return kind in _ON_DASHBOARD


def permissions_to_undo(entry: UndoableEntry) -> list[str]:
    """Return the permissions that undoing this change requires."""
    family, _, act = entry.action.partition(".")
    if family in ("switch", "override"):
        return [FLIP]
    if entry.action == "agent.operators":
        return [*SET_OPERATORS]
    if act == "create":
        return [permission("delete", entry.subject_kind)]
    needed = permission("add" if act == "remove" else "change", entry.subject_kind)
    fields = {name for side in (entry.before, entry.after) if isinstance(side, Mapping) for name in side}
    return [needed, *permissions_to_set(entry.subject_kind, fields)]


def permissions_to_set(kind: str, fields: Collection[str]) -> list[str]:
    """Return the permissions that setting these fields requires, besides that of changing their entry."""
    # It approves versions of tools.
    return [permission("change", "tool")] if kind == "plugin" and "preapproved" in fields else []


def may_propose(user: User) -> bool:
    """Return whether the user may have a smaller belt proposed: they see calls, and may import it."""
    needed = permissions_to_propose()
    return may_read(user, "call_record") and all(map(user.has_perm, needed))


def permissions_to_propose() -> list[str]:
    """Return the permissions that importing a proposal of a smaller belt requires."""
    return permissions_to_import({"loadouts": [{}], "agents": [{}]})


def permissions_to_import(belt: Mapping[str, Any]) -> list[str]:
    """Return the permissions that importing this belt requires: to add and to change what its sections hold."""
    kinds = [name for name, kind in belts.KINDS.items() if belt.get(kind.section)]
    plugins = belt.get(belts.KINDS["plugin"].section) or ()
    fields = {name for plugin in plugins if isinstance(plugin, Mapping) for name in plugin}
    return [
        *(permission(act, kind) for kind in kinds for act in ("add", "change")),
        *permissions_to_set("plugin", fields),
    ]
