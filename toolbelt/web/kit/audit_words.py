"""An audit entry in words: who did what to what."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth import models as auth
from django.urls import reverse
from django.utils import timezone

from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import catalog, grants, tool_versions
from toolbelt.web.kit import differences, pieces, texts, titles, words

# How long one's own last change can be undone beside it.
QUICK = dt.timedelta(hours=1)
_KINDS = {"sub_app": "sub-app"}
# What Toolbelt changes without a person: at the end of a time, or when it finds out something about its plugins.
_ITSELF = frozenset({"system", "toolbelt"})
# Of a list that gained or lost more names than this, a line names the first ones.
MAX_NAMES = 3
_ARGUMENT = "input_schema.properties."
ACTS = {
    "create": "created",
    "change": "changed",
    "remove": "removed",
    "order": "reordered",
    "issue": "issued",
    "revoke": "revoked",
    "evict": "evicted",
    "activate": "activated",
    "deactivate": "deactivated",
}
_FLIPS: Mapping[str, Mapping[bool | None, str]] = {
    "switch": {True: "turned on", False: "turned off", None: "reset the switch of"},
    "override": {True: "turned on the tool", False: "turned off the tool", None: "reset the override of"},
}
_ACTIONS = {
    "agent.equip": "changed the loadout of",
    "agent.operators": "changed the operators of",
    "user.roles": "changed the roles of",
}
# Fields with a hash, and how much of it identifies a version to a reader.
_HASHES, _HASH_LENGTH = frozenset({"approved", "details_approved"}), len("sha256:") + 12
# What cannot be taken back: by removing it again, or at all.
_STAYS = frozenset(
    {
        "plugin.create",
        "tool.create",
        "token.issue",
        "token.revoke",
        "session.evict",
        "user.roles",
        "user.create",
        "user.activate",
        "user.deactivate",
        "switch.end",
        "override.end",
    }
)
# What changes nothing that an agent could be compared with as it was.
_NO_VERSIONS = frozenset({"agent.order", "agent.remove", "agent.operators"})
_VIA = {
    "screen": "Dashboard",
    "admin": "Admin",
    "api": "API",
    "mcp": "MCP",
    "command": "CLI",
    "import": "Import",
    "system": "System",
}


def actor(name: str, via: str = "") -> str:
    """Return who made a change: a person or client by name, Toolbelt itself, or the program of an agent.

    Only what has the source "system" is by Toolbelt: a person may have the same name.
    """
    if name in _ITSELF and via == "system":
        return "Toolbelt"
    kind, _, agent = name.partition(":")
    return f"Agent {agent}" if kind == "agent" and agent else name


def did(entry: queries.Entry) -> str:
    """Return the verb phrase: ``turned off``."""
    act = _act(entry)
    return f"undid a change: {act}" if entry.undoes else act


def subject(entry: queries.Entry) -> str:
    """Return the object of the change: the toolkit or tool of a flip, else the entry itself."""
    return entry.key or entry.subject_key


def sentence(entry: queries.Entry, *, with_title: bool = False) -> str:
    """Return the entry in a clause: ``olive turned off devops``, or ``olive turned off DevOps `devops```."""
    what = titles.named(_kind(entry), subject(entry)) if with_title else subject(entry)
    return f"{actor(entry.actor)} {_act(entry)} {what}"


def last_change(entry: queries.Entry | None, may_undo: bool) -> pieces.View | None:
    """Return the newest change of an agent in a line. Its creation can only be undone from the history."""
    if entry is None:
        return None
    is_creation = entry.before is None and not entry.key
    history = reverse("web:history", args=[entry.subject_key])
    act = f"{_act(entry)} {entry.key}" if entry.key else _to_itself(entry)
    return pieces.View(
        who=actor(entry.actor, entry.via),
        actor=entry.actor,
        did=f"{act} (an undo)" if entry.undoes else act,
        when=entry.at,
        entry=entry.id if may_undo and is_undoable(entry) and not is_creation else None,
        history_url=f"{history}#change-{entry.id}",
    )


def may_undo_quickly(user: auth.AbstractUser | auth.AnonymousUser, entry: queries.Entry | None) -> bool:
    """Return whether an agent's page offers to undo its last change."""
    return entry is not None and is_quickly_undone(user, entry) and rights.may_undo(user, entry)


def is_quickly_undone(user: auth.AbstractUser | auth.AnonymousUser, entry: queries.Entry) -> bool:
    """Return whether a page offers to undo the change beside what it changed: one's own, of the last hour. Others are
    undone from the history and the audit log, where they are seen in full.
    """
    return entry.actor == user.get_username() and timezone.now() - entry.at < QUICK


def is_undoable(entry: queries.Entry) -> bool:
    """Return whether the entry can be taken back: not twice, and not what would remove a thing that is only retired."""
    return entry.undone is None and entry.action not in _STAYS


def present(
    entry: queries.Entry, may_undo: bool, *, is_open: bool = False, stored: catalog.Catalog | None = None
) -> pieces.View:
    """Return one entry of the log for a page; the contents of a restricted kind of thing only if ``is_open``. With the
    ``stored`` catalog, what was changed has its title and leads to its page. ``version_of`` is the agent that can be
    shown as it was after the change: not if it is still to be recorded, and has no ``id``.
    """
    undone = entry.undone
    is_version = entry.id and entry.subject_kind == "agent" and entry.action not in _NO_VERSIONS
    return pieces.View(
        id=entry.id,
        who=actor(entry.actor, entry.via),
        via=source(entry.via),
        when=entry.at,
        did=did(entry),
        subject=subject(entry),
        **_named(entry, stored),
        is_flip=entry.action.partition(".")[0] in ("switch", "override"),
        agent=_agent(entry, is_open=is_open),
        differences=_differences(entry) if is_open or rights.is_open(entry.subject_kind) else (),
        reason=entry.reason,
        undoable=may_undo and is_undoable(entry),
        undone=f"undone by {actor(undone.actor)}, {words.since(undone.at)}" if undone else "",
        batch=entry.batch if entry.of_several else None,
        version_of=entry.subject_key if is_version else "",
    )


def _kind(entry: queries.Entry) -> str:
    """Return the kind of what was changed: of a flip, that of its key."""
    if not entry.key:
        return entry.subject_kind
    return {"switch": "toolkit", "override": "tool"}.get(entry.action.partition(".")[0], "")


def _named(entry: queries.Entry, stored: catalog.Catalog | None) -> Mapping[str, str]:
    """Return the title of what was changed, if it differs from the key, and the address of its page."""
    key, kind = subject(entry), _kind(entry)
    if stored is None:
        return {"title": "", "url": ""}
    entries = {"toolkit": stored.toolkits, "plugin": stored.plugins, "tool": stored.tools}.get(kind, {})
    url = reverse(f"web:{kind}", args=[key]) if key in entries else ""
    return {"title": titles.title_of(stored, kind, key), "url": url}


def _agent(entry: queries.Entry, *, is_open: bool) -> str:
    """Return the agent to name beside what was changed: that of a flip or of a token."""
    if entry.subject_kind == "token" and is_open:
        about = entry.after or entry.before
        return str(about.get("agent", "")) if isinstance(about, Mapping) else ""
    return entry.subject_key if entry.subject_kind == "agent" and entry.key else ""


def source(via: str) -> str:
    """Return the name of the interface of a change."""
    return _VIA.get(via, via)


def _act(entry: queries.Entry) -> str:
    family, _, act = entry.action.partition(".")
    if act == "end":
        return f"ended the {family} of"
    if family in _FLIPS:
        return _FLIPS[family][grants.is_on(entry.after)]
    if entry.action in _ACTIONS:
        return _ACTIONS[entry.action]
    kind = _KINDS.get(family, family)
    if act == "change" and (special := _special(entry, kind)):
        return special
    if act == "order":
        return f"reordered {kind}s, starting with"
    return f"{ACTS.get(act, act)} {kind}"


def _special(entry: queries.Entry, kind: str) -> str:
    """Return the verb for a change of a single telling field; empty for any other change."""
    before, after = (side if isinstance(side, Mapping) else {} for side in (entry.before, entry.after))
    if entry.action == "agent.change" and set(after) == {"archived"}:
        return "archived" if after["archived"] is True else "restored"
    if {*before, *after} == {"blocked"}:
        return f"{'blocked' if after.get('blocked') is True else 'unblocked'} {kind}"
    if entry.action == "plugin.change" and set(after) == {"not_running"}:
        stopped = len(after["not_running"] or ()) > len(before.get("not_running") or ())
        return f"found tools {'not running' if stopped else 'running again'} in plugin"
    if str(after.get("approved", "")).startswith(tool_versions.REJECTED):
        return f"rejected the current version of {kind}"
    return ""


def _to_itself(entry: queries.Entry) -> str:
    """Return the action on an agent, for a line beside its name."""
    match entry.action, entry.after:
        case "agent.equip", {"loadout": str(loadout)}:
            return f"changed its loadout to {loadout}"
        case "agent.equip", _:
            return "removed its loadout"
        case "agent.operators", _:
            return "changed its operators"
    act = entry.action.partition(".")[2]
    if act == "change" and (special := _special(entry, "")):
        return f"{special.strip()} it"
    return f"{ACTS.get(act, act)} it"


def _differences(entry: queries.Entry) -> tuple[pieces.Difference, ...]:
    if entry.key:
        family = entry.action.partition(".")[0]
        printed = words.state if family in ("switch", "override") else words.value
        return (pieces.Difference(what=family, before=printed(entry.before), after=printed(entry.after)),)
    before, after = (side if isinstance(side, dict) else {} for side in (entry.before, entry.after))
    if entry.before is None or entry.after is None:
        # Made or removed whole: the name says it, and the rest would fill pages.
        return ()
    before, after = dict(_in_short(before)), dict(_in_short(after))
    long = {
        field: summary
        for field in {**before, **after}
        if (summary := _names(field, before.get(field), after.get(field)))
    }
    rest = [{field: value for field, value in side.items() if field not in long} for side in (before, after)]
    lines = (*itertools.chain.from_iterable(long.values()), *differences.lines(rest[0], rest[1]))
    return tuple(replace(line, what=_field(line.what)) for line in lines)


def _names(field: str, before: Any, after: Any) -> tuple[pieces.Difference, ...]:
    """Return the names that a list gained and lost, a line each; empty if they are few, or not names."""
    had, has = ([] if side is None else side for side in (before, after))
    if not all(isinstance(side, list) and all(isinstance(name, str) for name in side) for side in (had, has)):
        return ()
    came, went = ([name for name in one if name not in other] for one, other in ((has, had), (had, has)))
    if len(came) + len(went) <= MAX_NAMES:
        return ()
    return tuple(
        pieces.Difference(
            what=field,
            before="",
            after=texts.visible(f"{words.number(len(names))} {act}: {words.listing(names)}"),
        )
        for act, names in (("added", came), ("removed", went))
        if names
    )


def _field(path: str) -> str:
    """Return a field as it is read aloud: ``not running``, ``argument cents.maximum``."""
    if path.startswith(_ARGUMENT):
        return f"argument {path.removeprefix(_ARGUMENT)}"
    # Of what is in the field, names stay as they are.
    field = re.split(r"[.:\[]", path, maxsplit=1)[0]
    return field.replace("_", " ") + path.removeprefix(field)


def _in_short(side: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields without the copy of an approved version, and with the beginnings of hashes."""
    return {
        field: value[:_HASH_LENGTH] + "…" if field in _HASHES and value else value
        for field, value in side.items()
        if field != "approved_version"
    }
