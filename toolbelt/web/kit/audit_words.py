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

# How long a page offers users to undo their own last change.
QUICK_UNDO_TIME = dt.timedelta(hours=1)
_KINDS = {"sub_app": "sub-app"}
# Toolbelt as the author of a change: when a time ends, or when the state of a plugin changes.
_OWN_NAMES = frozenset({"system", "toolbelt"})
# If a list gained or lost more names than this, only the first ones are shown.
MAX_NAMES = 3
_ARGUMENT = "input_schema.properties."
VERBS = {
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
_HASHES, _HASH_LENGTH = frozenset({"approved", "details_approved"}), len("2:sha256:") + 12
# Changes that cannot be undone, or whose undo would remove an entry that is only retired.
_IRREVERSIBLE = frozenset(
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
# Changes of an agent that result in no version to compare with.
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

    A change is by Toolbelt only if its source is "system": a person may have the same name.
    """
    if name in _OWN_NAMES and via == "system":
        return "Toolbelt"
    kind, _, agent = name.partition(":")
    return f"Agent {agent}" if kind == "agent" and agent else name


def action_phrase(entry: queries.Entry) -> str:
    """Return the verb phrase: ``turned off``."""
    verb = _verb_phrase(entry)
    return f"undid a change; this {verb}" if entry.undoes else verb


def subject(entry: queries.Entry) -> str:
    """Return the object of the change: the toolkit or tool of a flip, otherwise the entry itself."""
    return entry.key or entry.subject_key


def sentence(entry: queries.Entry, *, with_title: bool = False) -> str:
    """Return the entry as a clause: ``olive turned off devops``, or ``olive turned off DevOps `devops```."""
    object_name = titles.label(_kind(entry), subject(entry)) if with_title else subject(entry)
    return f"{actor(entry.actor)} {_verb_phrase(entry)} {object_name}"


def last_change(entry: queries.Entry | None, may_undo: bool, stored: catalog.Catalog) -> pieces.View | None:
    """Return the newest change of an agent as a line. Its creation can only be undone from the history."""
    if entry is None:
        return None
    is_creation = entry.before is None and not entry.key
    history = reverse("web:history", args=[entry.subject_key])
    title = titles.title_of(stored, _kind(entry), entry.key) or entry.key
    action = f"{_verb_phrase(entry)} {title}" if entry.key else _agent_action(entry)
    return pieces.View(
        who=actor(entry.actor, entry.via),
        actor=entry.actor,
        action=f"{action} (an undo)" if entry.undoes else action,
        when=entry.at,
        entry=entry.id if may_undo and is_undoable(entry) and not is_creation else None,
        history_url=f"{history}#change-{entry.id}",
    )


def may_undo_quickly(user: auth.AbstractUser | auth.AnonymousUser, entry: queries.Entry | None) -> bool:
    """Return whether an agent's page offers to undo its last change."""
    return entry is not None and is_quickly_undone(user, entry) and rights.may_undo(user, entry)


def is_quickly_undone(user: auth.AbstractUser | auth.AnonymousUser, entry: queries.Entry) -> bool:
    """Return whether a page offers to undo the change in place: a user's own change in the last hour. Other changes are
    undone from the history and the audit log, which show them in full.
    """
    return entry.actor == user.get_username() and timezone.now() - entry.at < QUICK_UNDO_TIME


def is_undoable(entry: queries.Entry) -> bool:
    """Return whether the change can be undone: once, and not if that would remove an entry that is only retired."""
    return entry.undone is None and entry.action not in _IRREVERSIBLE


def present(
    entry: queries.Entry, may_undo: bool, *, is_open: bool = False, stored: catalog.Catalog | None = None
) -> pieces.View:
    """Return one log entry for a page; the contents of restricted kinds only if ``is_open``. With the ``stored``
    catalog, the changed entry has its title and a link to its page. ``version_of`` is the agent whose version after
    the change can be shown; it is empty for a change without an ``id``, which is not recorded yet.
    """
    undone = entry.undone
    is_version = entry.id and entry.subject_kind == "agent" and entry.action not in _NO_VERSIONS
    return pieces.View(
        id=entry.id,
        who=actor(entry.actor, entry.via),
        via=source(entry.via),
        when=entry.at,
        action=action_phrase(entry),
        kind=_kind(entry),
        subject=subject(entry),
        **_title_and_url(entry, stored),
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
    """Return the kind of the changed entry; for a flip, the kind of its key."""
    if not entry.key:
        return entry.subject_kind
    return {"switch": "toolkit", "override": "tool"}.get(entry.action.partition(".")[0], "")


def _title_and_url(entry: queries.Entry, stored: catalog.Catalog | None) -> Mapping[str, str]:
    """Return the title of the changed entry if it differs from the key, and the URL of its page."""
    key, kind = subject(entry), _kind(entry)
    if stored is None:
        return {"title": "", "url": ""}
    entries = {"toolkit": stored.toolkits, "plugin": stored.plugins, "tool": stored.tools}.get(kind, {})
    url = reverse(f"web:{kind}", args=[key]) if key in entries else ""
    return {"title": titles.title_of(stored, kind, key), "url": url}


def _agent(entry: queries.Entry, *, is_open: bool) -> str:
    """Return the agent to name beside the changed entry: the agent of a flip or of a token."""
    if entry.subject_kind == "token" and is_open:
        token = entry.after or entry.before
        return str(token.get("agent", "")) if isinstance(token, Mapping) else ""
    return entry.subject_key if entry.subject_kind == "agent" and entry.key else ""


def source(via: str) -> str:
    """Return the name of the interface of a change."""
    return _VIA.get(via, via)


def _verb_phrase(entry: queries.Entry) -> str:
    family, _, operation = entry.action.partition(".")
    if operation == "end":
        return f"ended the {family} of"
    if family in _FLIPS:
        return _FLIPS[family][grants.is_on(entry.after)]
    if entry.action in _ACTIONS:
        return _ACTIONS[entry.action]
    kind = _KINDS.get(family, family)
    if operation == "change" and (verb := _single_field_verb(entry, kind)):
        return verb
    if operation == "order":
        return f"reordered {kind}s, starting with"
    return f"{VERBS.get(operation, operation)} {kind}"


def _single_field_verb(entry: queries.Entry, kind: str) -> str:
    """Return the verb for a change of a single field that has its own verb; empty for any other change."""
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


def _agent_action(entry: queries.Entry) -> str:
    """Return the action on an agent, for a line beside its name."""
    match entry.action, entry.after:
        case "agent.equip", {"loadout": str(loadout)}:
            return f"changed its loadout to {loadout}"
        case "agent.equip", _:
            return "removed its loadout"
        case "agent.operators", _:
            return "changed its operators"
    operation = entry.action.partition(".")[2]
    if operation == "change" and (verb := _single_field_verb(entry, "")):
        return f"{verb.strip()} it"
    return f"{VERBS.get(operation, operation)} it"


def _differences(entry: queries.Entry) -> tuple[pieces.Difference, ...]:
    if entry.key:
        family = entry.action.partition(".")[0]
        to_text = words.state if family in ("switch", "override") else words.value
        return (pieces.Difference(label=family, before=to_text(entry.before), after=to_text(entry.after)),)
    before, after = (side if isinstance(side, dict) else {} for side in (entry.before, entry.after))
    if entry.before is None or entry.after is None:
        # A whole entry was created or removed: its name is enough, and its fields would fill pages.
        return ()
    before, after = dict(_abbreviate(before)), dict(_abbreviate(after))
    listed = {
        field: summary
        for field in {**before, **after}
        if (summary := _list_changes(field, before.get(field), after.get(field)))
    }
    rest = [{name: value for name, value in side.items() if name not in listed} for side in (before, after)]
    lines = (*itertools.chain.from_iterable(listed.values()), *differences.lines(rest[0], rest[1]))
    return tuple(replace(line, label=_field_label(line.label)) for line in lines)


def _list_changes(field: str, before: Any, after: Any) -> tuple[pieces.Difference, ...]:
    """Return the names that a list gained and lost, one line each; empty if they are few, or not names."""
    old, new = ([] if side is None else side for side in (before, after))
    if not all(isinstance(side, list) and all(isinstance(name, str) for name in side) for side in (old, new)):
        return ()
    added, removed = [name for name in new if name not in old], [name for name in old if name not in new]
    if len(added) + len(removed) <= MAX_NAMES:
        return ()
    return tuple(
        pieces.Difference(
            label=field,
            before="",
            after=texts.visible(f"{words.number(len(names))} {verb}: {words.listing(names)}"),
        )
        for verb, names in (("added", added), ("removed", removed))
        if names
    )


def _field_label(path: str) -> str:
    """Return the label of a field: ``not running``, ``argument cents.maximum``."""
    if path.startswith(_ARGUMENT):
        return f"argument {path.removeprefix(_ARGUMENT)}"
    # Names inside the field keep their underscores.
    field = re.split(r"[.:\[]", path, maxsplit=1)[0]
    return field.replace("_", " ") + path.removeprefix(field)


def _abbreviate(side: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields without the copy of an approved version, and with shortened hashes."""
    return {
        field: value[:_HASH_LENGTH] + "…" if field in _HASHES and value else value
        for field, value in side.items()
        if field != "approved_version"
    }
