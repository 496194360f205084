"""Which permissions does an act of an operator ask for? One answer for screens, admin and API.

They are Django's own four a model. What the screens show to everyone who is logged in may be read by every operator;
the rest is the admin's, and asks for the permission that the admin asks for. Whether somebody has a permission is
for the shell to ask: it knows who is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from toolbelt.core import belts

Act = Literal["view", "add", "change", "delete"]

# What the audit calls otherwise than the row that it is.
_ROWS = {"session": "agent_session", "token": "api_token"}
# The access page shows them all, and the log of changes has a page of its own.
_ON_SCREENS = frozenset({"agent", "tool", "toolkit", "audit_entry"})


class Told(Protocol):
    """What of an audit entry, or of its row, says how it is taken back."""

    @property
    def action(self) -> str: ...

    @property
    def subject_kind(self) -> str: ...


class Holder(Protocol):
    """Somebody who has permissions or lacks them: a user of Django."""

    def has_perm(self, perm: str) -> bool: ...


def to(act: Act, kind: str) -> str:
    """Name the permission for doing this to an entry of this kind: ``toolbelt.change_subapp``."""
    return f"toolbelt.{act}_{_ROWS.get(kind, kind).replace('_', '')}"


# An agent's switches and overrides are the agent's.
FLIP = to("change", "agent")


def may_read(holder: Holder, kind: str) -> bool:
    """Say whether they may look at entries of this kind; whoever may change them may."""
    if kind in _ON_SCREENS:
        return True
    return holder.has_perm(to("view", kind)) or holder.has_perm(to("change", kind))


def to_undo(entry: Told) -> list[str]:
    """Name the permissions that the change which takes this one back asks for."""
    family, _, act = entry.action.partition(".")
    if family in ("switch", "override"):
        return [FLIP]
    if act == "create":
        return [to("delete", entry.subject_kind)]
    return [to("add" if act == "remove" else "change", entry.subject_kind)]


def to_import(belt: Mapping[str, Any]) -> list[str]:
    """Name the permissions that importing this belt asks for: those to add and to change what its sections hold."""
    kinds = [name for name, kind in belts.KINDS.items() if belt.get(kind.section)]
    return [to(act, kind) for kind in kinds for act in ("add", "change")]
