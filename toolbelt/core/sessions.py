"""Sessions: what a conversation has loaded, and from which request (docs/semantics.md: Sessions).

1. A change (a load or an unload) stores the request in which it was made. It applies to every other request and not
   to that one. A change without a request applies from the next request.
2. For one name, the last change decides, except in that change's own request: there the state before it does. It is
   therefore enough to store two bits and a request id for each name; ``before`` is the state that the last change
   made *in another request* had left.
3. A session has what was loaded, limited to what is allowed now, together with the current initial toolkits, in the
   order of the allowed list. A loaded toolkit that is not allowed for a while returns when it is allowed again.
4. Without a session, only the initial toolkits are loaded.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.core import agents, keys, schema

Kind = Literal["toolkit", "plugin", "tool"]

MAX_ID_LENGTH = 200
MAX_LABEL_LENGTH = 64
# Found in the state of every session that is in a roll-out, and seldom in another.
_ROLLOUT = '"rollout"'
_LABEL = re.compile(r"[a-z0-9][a-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The last change to one name. ``at`` is its time (ISO 8601), for people to read; no rule uses it."""

    kind: Kind
    name: str
    on: bool
    request_id: str | None = None
    before: bool = False
    at: str = ""

    def counts_as(self, request_id: str | None) -> bool:
        """Return whether the name is loaded for this request."""
        pinned = self.request_id is not None and self.request_id == request_id
        return self.before if pinned else self.on


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a session has touched, for gate rules: a call of ``tool`` brought it first, at ``at`` (for people)."""

    name: str
    tool: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of one agent. ``loadout`` replaces the agent's; ``by_agent``: the agent's own token chose it.
    ``labels`` stay until an operator clears them, whatever the agent does.
    """

    key: str
    loadout: str = ""
    by_agent: bool = False
    changes: tuple[Change, ...] = ()
    labels: tuple[Label, ...] = ()


# A conversation that has loaded nothing yet.
NEW = Session(key="")


def id_problem(text: str) -> str | None:
    """Return the problem of the id of a session or a request, or None."""
    if 0 < len(text) <= MAX_ID_LENGTH and text.isprintable():
        return None
    return f"an id is 1 to {MAX_ID_LENGTH} characters, none of them a control character."


def label_problem(name: str) -> str | None:
    """Return why this is not the name of a label, or None."""
    if len(name) <= MAX_LABEL_LENGTH and _LABEL.fullmatch(name):
        return None
    return (
        f"{name[:MAX_LABEL_LENGTH]!r} is not a label: write up to {MAX_LABEL_LENGTH} small letters, digits, -, _ and .,"
        " such as private."
    )


def label_names(session: Session | None) -> frozenset[str]:
    """Return the names of the labels that a session has."""
    if session is None or not session.labels:
        return frozenset()
    return frozenset(label.name for label in session.labels)


def with_labels(session: Session, names: Iterable[str], tool: str, at: str = "") -> Session | None:
    """Return the session after a call of ``tool`` brought these labels; None if it has them all."""
    missing = sorted(set(names) - label_names(session))
    if not missing:
        return None
    new = tuple(Label(name=name, tool=tool, at=at) for name in missing)
    return dataclasses.replace(session, labels=(*session.labels, *new))


def with_change(
    session: Session, kind: Kind, name: str, on: bool, request_id: str | None, at: str = ""
) -> Session:
    """Return the session after a load (``on``) or unload of ``name`` in this request."""
    others: list[Change] = []
    before = False
    for change in session.changes:
        if (change.kind, change.name) == (kind, name):
            before = change.counts_as(request_id) if change.request_id == request_id else change.on
        else:
            others.append(change)
    new = Change(kind=kind, name=name, on=on, request_id=request_id, before=before, at=at)
    # A name that is off for every request need not be stored.
    changes = [*others, new] if new.on or (new.before and request_id is not None) else others
    return dataclasses.replace(session, changes=tuple(changes))


def chosen_loadout(session: Session | None, among: Collection[str]) -> str:
    """Return the loadout that replaces the agent's in this session; empty if none does.

    A loadout that the agent's own token chose applies only while it is ``among`` those that the agent may choose.
    """
    if session is None:
        return ""
    is_withdrawn = session.by_agent and keys.fold(session.loadout) not in map(keys.fold, among)
    return "" if is_withdrawn else session.loadout


def requested(session: Session | None, kind: Kind) -> frozenset[str]:
    """Return the names whose last change, in any request, is a load: what the next request will have."""
    if session is None:
        return frozenset()
    return frozenset(change.name for change in session.changes if change.kind == kind and change.on)


def loaded(session: Session | None, kind: Kind, request_id: str | None) -> frozenset[str]:
    """Return the names that are loaded for this request."""
    if session is None:
        return frozenset()
    return frozenset(c.name for c in session.changes if c.kind == kind and c.counts_as(request_id))


def load_order(session: Session | None, request_id: str | None) -> tuple[tuple[Kind, str], ...]:
    """Return the kind and the name of everything that is loaded for this request, the oldest load first."""
    if session is None:
        return ()
    return tuple([(c.kind, c.name) for c in session.changes if c.counts_as(request_id)])


def state(session: Session | None, request_id: str | None, arm: agents.Rollout | None = None) -> str:
    """Return what decides about tools in this request of a session, as JSON; empty if nothing was loaded or chosen.

    It has the loadout, whether the agent chose it, and the kind and the name of everything that is loaded, the oldest
    load first; the labels that gate rules read, if there are any; and the changes of the roll-out that the session is
    in (``arm``), so that its calls can be decided again when that is long over.
    """
    if session is None or not (session.loadout or session.changes or session.labels or arm):
        return ""
    labels = tuple(sorted(label_names(session)))
    trial, changes = (arm.trial, arm.changes) if arm is not None else (0, "")
    return _written(
        session.loadout, session.by_agent, load_order(session, request_id), labels, trial, changes
    )


def arm(state: str | None) -> agents.Rollout | None:
    """Return the roll-out that a session in this state (:func:`state`) was in; None if it was in none."""
    if not state or _ROLLOUT not in state:
        return None
    rollout = json.loads(state).get("rollout")
    return rollout and agents.Rollout(trial=rollout["trial"], changes=schema.canonical(rollout["changes"]))


def with_state(document: Mapping[str, Any]) -> Session:
    """Return a session in the state of this document, as :func:`state` wrote it, for any request."""
    return Session(
        key="",
        loadout=document["loadout"],
        by_agent=document["by_agent"],
        changes=tuple(Change(kind=kind, name=name, on=True) for kind, name in document["loaded"]),
        labels=tuple(Label(name=name) for name in document.get("labels", ())),
    )


@functools.lru_cache(maxsize=1024)
def _written(
    loadout: str,
    by_agent: bool,
    loaded: tuple[tuple[Kind, str], ...],
    labels: tuple[str, ...],
    trial: int,
    changes: str,
) -> str:
    if not (loadout or loaded or labels or changes):
        return ""
    state: dict[str, Any] = {"by_agent": by_agent, "loaded": loaded, "loadout": loadout}
    if labels:
        state["labels"] = labels
    if changes:
        state["rollout"] = {"trial": trial, "changes": json.loads(changes)}
    return schema.canonical(state)


def in_allowed_order(
    requested: Iterable[str], allowed: tuple[str, ...], initial: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the allowed toolkits that are requested or initial, in the order of the allowed list."""
    included = {*requested, *initial}
    return tuple(key for key in allowed if key in included)
