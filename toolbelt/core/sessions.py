"""What has this conversation loaded, and from which request on? (semantics: Sessions)

The rules, before the code:

1. A change (a load or an unload) keeps the request that it was made in. It counts for every other request,
   and not for that one. Made without a request, it counts at the next question.
2. So for one name the last change decides, except in that change's own request: there the state before it does.
   Two bits and a request id are therefore all that has to be kept of a name; ``before`` is the state that the
   last change made *in another request* had left.
3. What counts is what was asked for, cut to what is allowed now, united with today's initial toolkits, in the
   order of the allowed list. A choice that is not allowed for a while comes back when it is allowed again.
4. Without a session nothing is loaded: the initial toolkits count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from toolbelt.core import keys

Kind = Literal["toolkit", "plugin", "tool"]

LONGEST_ID = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The last change to one name. ``at`` is when (ISO 8601), for people to read; no rule looks at it."""

    kind: Kind
    name: str
    on: bool
    request_id: str | None = None
    before: bool = False
    at: str = ""

    def counts_as(self, request_id: str | None) -> bool:
        """Say whether the name is loaded for a question of this request."""
        pinned = self.request_id is not None and self.request_id == request_id
        return self.before if pinned else self.on


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of one agent. ``loadout`` stands in for the agent's; ``by_agent``: its own token chose it."""

    key: str
    loadout: str = ""
    by_agent: bool = False
    changes: tuple[Change, ...] = ()


def id_problem(text: str) -> str | None:
    """Say what is wrong with the id of a session or a request, if something is."""
    if 0 < len(text) <= LONGEST_ID and text.isprintable():
        return None
    return f"an id is 1 to {LONGEST_ID} characters, none of them a control character."


def changed(
    session: Session, kind: Kind, name: str, on: bool, request_id: str | None, at: str = ""
) -> Session:
    """Give the session after a load (``on``) or unload of ``name`` made in this request."""
    others: list[Change] = []
    before = False
    for change in session.changes:
        if (change.kind, change.name) == (kind, name):
            before = change.counts_as(request_id) if change.request_id == request_id else change.on
        else:
            others.append(change)
    new = Change(kind=kind, name=name, on=on, request_id=request_id, before=before, at=at)
    # A name that is off for every request needs no keeping.
    kept = [*others, new] if new.on or (new.before and request_id is not None) else others
    return dataclasses.replace(session, changes=tuple(kept))


def standing_in(session: Session | None, among: Collection[str]) -> str:
    """Name the loadout that stands in for the agent's; empty: none does.

    What the agent's own token chose stands in only while it is ``among`` those that the agent may choose.
    """
    if session is None:
        return ""
    taken_back = session.by_agent and keys.fold(session.loadout) not in map(keys.fold, among)
    return "" if taken_back else session.loadout


def asked_for(session: Session | None, kind: Kind) -> frozenset[str]:
    """Name what was asked for by the last change, in whichever request: what the next request will have."""
    if session is None:
        return frozenset()
    return frozenset(change.name for change in session.changes if change.kind == kind and change.on)


def counting(session: Session | None, kind: Kind, request_id: str | None) -> frozenset[str]:
    """Name what counts as loaded for a question of this request."""
    if session is None:
        return frozenset()
    return frozenset(c.name for c in session.changes if c.kind == kind and c.counts_as(request_id))


def in_allowed_order(
    asked: Iterable[str], allowed: tuple[str, ...], initial: tuple[str, ...]
) -> tuple[str, ...]:
    """Cut to what is allowed now, unite with the initial toolkits, in the order of the allowed list."""
    had = {*asked, *initial}
    return tuple(key for key in allowed if key in had)
