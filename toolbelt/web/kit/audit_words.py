"""An audit entry in words: who did what to what."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import models as auth
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control.access import access_index
from toolbelt.control.catalog import blocking
from toolbelt.control.people import rights
from toolbelt.control.reports import audit_serializer, queries
from toolbelt.core import catalog, facts, grants, tool_versions
from toolbelt.web.kit import differences, pieces, texts, titles, words

# How long a page offers users to undo their own last change.
QUICK_UNDO_TIME = dt.timedelta(hours=1)
_KINDS = {"sub_app": "sub-app", "gate_rule": "rule"}
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
    "approve": "approved",
    "reject": "rejected",
    "purge": "purged",
    "save": "saved",
    "discard": "discarded",
    "observe": "began to observe",
    "schedule": "scheduled",
    "extend": "extended the observation of",
    "stop": "stopped the trial of",
    "rollout": "rolled out",
    "revert": "took back",
    "retire": "retired",
    "restore": "restored",
    "appear": "new at its source",
    "update": "changed by its source",
    "disappear": "gone from its source",
    "return": "back at its source",
    "fail": "failed",
    "recover": "works again",
    "running": "running or not running",
}
FLIPS: Mapping[str, Mapping[bool | None, str]] = {
    "switch": {True: "turned on", False: "turned off", None: "reset the switch of"},
    "override": {True: "turned on the tool", False: "turned off the tool", None: "reset the override of"},
}
ACTIONS = {
    "agent.equip": "changed the loadout of",
    "agent.operators": "changed the operators of",
    "connection.allow": "connected the client",
    "connection.revoke": "disconnected the client",
    "session.clear": "cleared a label of session",
    "session.equip": "changed the loadout of session",
    "sign_in.begin": "signed in at",
    "sign_in.end": "signed out at",
    "user.roles": "changed the roles of",
    "user.rights": "took other rights than roles from",
    "user.password": "set the password of",
    "user.password_remove": "removed the password of",
    "user.link": "joined a login with the provider to",
    "user.factor_add": "added a second factor of",
    "user.factor_rename": "renamed a second factor of",
    "user.factor_remove": "removed a second factor of",
    "user.factor_reset": "reset the second factor of",
    "user.factor_lock": "stopped accepting codes, after many wrong ones, for",
    "user.logout": "logged out",
    "user.invite": "made an invitation for",
    "user.password_link": "made a password link for",
    "user.unlink": "withdrew the password link of",
    "user.recovery_codes": "renewed the recovery codes of",
    "settings.change": "was started with other values of",
    "alert.test": "sent a test to",
    "approval.approve": "approved a call of",
    "approval.reject": "rejected a call of",
    "approval.edit": "edited a call of",
}
# Fields with the hash of a version, which says nothing to a reader.
_HASHES = frozenset({"approved", "details_approved"})
# What a decision or an observation writes beside the texts of a tool: the sentence says it.
_OF_REVIEW = _HASHES | {"seen", "retired"}
# The fields of an entry that its source states, in words.
_STATED = {
    "title": "title",
    "description": "description",
    "input_schema": "arguments",
    "output_schema": "result",
    "annotations": "hints",
    "details": "details",
    "upstream_name": "name",
    "instructions": "instructions",
    "repairs": "repairs",
}
ACTOR_KINDS: Mapping[str, str] = {
    "person": "People",
    "token": "Tokens",
    "agent": "Agents",
    "server": "Servers",
    "program": "Programs",
    "clock": "Toolbelt",
}
# Changes that cannot be undone, or whose undo would remove an entry that is only retired.
_IRREVERSIBLE = frozenset(
    {
        "plugin.create",
        "tool.create",
        "connection.allow",
        "connection.revoke",
        "sign_in.begin",
        "sign_in.end",
        "token.issue",
        "token.revoke",
        "session.evict",
        "session.clear",
        "alert.test",
        "approval.approve",
        "approval.reject",
        "approval.edit",
        "user.roles",
        "user.rights",
        "user.create",
        "user.link",
        "user.factor_add",
        "user.factor_rename",
        "user.factor_remove",
        "user.factor_reset",
        "user.factor_lock",
        "user.logout",
        "user.invite",
        "user.password_link",
        "user.unlink",
        "user.recovery_codes",
        "user.password",
        "user.password_remove",
        "user.activate",
        "user.deactivate",
        "switch.end",
        "override.end",
        "block.end",
        "settings.change",
        "draft.save",
        "draft.discard",
        "draft.end",
        "draft.observe",
        "draft.schedule",
        "draft.extend",
        "draft.rollout",
        "draft.revert",
        "draft.stop",
    }
)
_DECISIONS = frozenset({"tool.approve", "tool.reject"})
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


def actor(name: str, kind: facts.ActorKind | None = None, stored: catalog.Catalog | None = None) -> str:
    """Return who made a change: a person by name, a server or program by the title of its plugin, or Toolbelt itself.
    Without ``kind``, only an agent is recognized, by its prefix.
    """
    match kind:
        case "clock":
            return "Toolbelt"
        case "server" | "program":
            known = stored if stored is not None else access_index.catalog_view().catalog
            return titles.title_of(known, "plugin", name) or texts.visible(name)
    prefix, _, agent = name.partition(":")
    return f"Agent {agent}" if prefix == "agent" and agent else name


def action_phrase(entry: queries.Entry) -> str:
    """Return the verb phrase: ``turned off``."""
    verb = _verb_phrase(entry)
    return f"undid a change; this {verb}" if entry.undoes else verb


def subject(entry: queries.Entry) -> str:
    """Return the object of the change: the toolkit or tool of a flip, otherwise the entry itself; a connection by the
    name of its client, and a draft by its title.
    """
    described = entry.after or entry.before
    if entry.subject_kind == "connection" and isinstance(described, Mapping):
        return texts.visible(str(described.get("client", "")))
    if entry.subject_kind == "draft" and isinstance(described, Mapping):
        return texts.visible(str(described.get("title", "")))
    return entry.key or entry.subject_key


def sentence(entry: queries.Entry, *, with_title: bool = False) -> str:
    """Return the entry as a clause: ``olive turned off devops``, or ``olive turned off DevOps `devops```."""
    who = actor(entry.actor, entry.actor_kind)
    if _is_about_itself(entry):
        return f"{who} {_verb_phrase(entry)}"
    object_name = titles.label(_kind(entry), subject(entry)) if with_title else subject(entry)
    return f"{who} {_verb_phrase(entry)} {object_name}"


class LastChange(pieces.View):
    """The newest change of an agent as a line; ``entry`` is the one that a button undoes. Its creation can only be
    undone from the history.
    """

    def __init__(self, entry: queries.Entry, may_undo: bool, stored: catalog.Catalog) -> None:
        is_creation = entry.before is None and not entry.key
        history = reverse("web:history", args=[entry.subject_key])
        title = titles.title_of(stored, _kind(entry), entry.key) or entry.key
        action = f"{_verb_phrase(entry)} {title}" if entry.key else _agent_action(entry)
        self.who, self.actor = actor(entry.actor, entry.actor_kind, stored), entry.actor
        self.action = f"{action} (an undo)" if entry.undoes else action
        self.when = entry.at
        self.entry = entry.id if may_undo and is_undoable(entry) and not is_creation else None
        self.history_url = f"{history}#change-{entry.id}"


def may_undo_quickly(user: auth.AbstractUser | auth.AnonymousUser, entry: queries.Entry | None) -> bool:
    """Return whether an agent's page offers to undo its last change."""
    return entry is not None and is_quickly_undone(user, entry) and rights.may_undo(user, entry)


def is_quickly_undone(user: auth.AbstractUser | auth.AnonymousUser, entry: queries.Entry) -> bool:
    """Return whether a page offers to undo the change in place: a user's own change in the last hour. Other changes are
    undone from the history and the audit log, which show them in full.
    """
    is_own = entry.actor == user.get_username() and entry.actor_kind in ("person", "token")
    return is_own and timezone.now() - entry.at < QUICK_UNDO_TIME


def is_undoable(entry: queries.Entry) -> bool:
    """Return whether the change can be undone: once, if it was decided, and not if that would remove an entry that is
    only retired.
    """
    return entry.undone is None and entry.action not in _IRREVERSIBLE and not entry.is_fact


class Line(pieces.View):
    """One log entry; the contents of restricted kinds only if ``is_open``. With the ``stored`` catalog, the changed
    entry has its title and a link to its page. ``version_of`` is the agent whose version after the change can be shown;
    it is empty for a change without an ``id``, which is not recorded yet.
    """

    def __init__(
        self,
        entry: queries.Entry,
        may_undo: bool,
        *,
        is_open: bool = False,
        stored: catalog.Catalog | None = None,
    ) -> None:
        undone = entry.undone
        is_version = entry.id and entry.subject_kind == "agent" and entry.action not in _NO_VERSIONS
        self.id = entry.id
        self.who = actor(entry.actor, entry.actor_kind, stored) + (
            " (token)" if entry.actor_kind == "token" else ""
        )
        self.by_itself = _is_about_itself(entry)
        self.asked_by = actor(entry.asked_by)
        self.asked = "declared" if entry.asked_by.startswith("agent:") else "asked"
        self.unlogged = audit_serializer.unlogged_words(entry.unlogged) if entry.unlogged else ""
        self.is_fact = entry.is_fact
        self.members = entry.members
        self.members_of = _members_of(entry, stored)
        self.review_url = _review_url(entry, stored)
        self.via = source(entry.via)
        self.when = entry.at
        self.action = action_phrase(entry)
        self.kind = _kind(entry)
        self.subject = subject(entry)
        self.title, self.url = _title_and_url(entry, stored)
        self.is_flip = entry.action.partition(".")[0] in ("switch", "override")
        self.agent = _agent(entry, is_open=is_open)
        self.differences = _differences(entry) if is_open or rights.is_open(entry.subject_kind) else ()
        # The actor and the verb of what was observed say it already.
        self.reason = "" if entry.is_fact and entry.reason in facts.REASONS else entry.reason
        self.undoable = may_undo and is_undoable(entry)
        self.undone = f"undone by {actor(undone.actor)}, {words.since(undone.at)}" if undone else ""
        self.batch = entry.batch if entry.of_several else None
        self.version_of = entry.subject_key if is_version else ""


def _is_about_itself(entry: queries.Entry) -> bool:
    """Return whether the actor is the plugin that the entry is about, so that it is named once."""
    is_source = entry.actor_kind in ("server", "program")
    return is_source and entry.subject_kind == "plugin" and entry.subject_key == entry.actor


def _members_of(entry: queries.Entry, stored: catalog.Catalog | None) -> str:
    """Return what an entry that stands for several is about: ``27 tools of Billing``."""
    if not entry.members:
        return ""
    known = stored.tools if stored is not None else {}
    plugins = dict.fromkeys(known[key].plugin for key in entry.members if key in known)
    names = [actor(name, "server", stored) for name in plugins if name and not entry.is_fact]
    count = len(entry.members)
    noun = "new tool" if entry.action == "tool.appear" else "tool"
    return words.counted(count, noun) + (f" of {words.listing(names)}" if names else "")


def _review_url(entry: queries.Entry, stored: catalog.Catalog | None) -> str:
    """Return the address of the review of what was observed, while it awaits one."""
    if stored is None or not entry.is_fact or entry.subject_kind != "tool":
        return ""
    observed = [stored.tools[key] for key in entry.members or (entry.subject_key,) if key in stored.tools]
    waiting = [tool for tool in observed if tool_versions.awaits_review(tool)]
    return f"{reverse('web:review')}?{urlencode({'plugin': waiting[0].plugin})}" if waiting else ""


def _kind(entry: queries.Entry) -> str:
    """Return the kind of the changed entry; for a flip, the kind of its key."""
    if not entry.key:
        return entry.subject_kind
    return {"switch": "toolkit", "override": "tool", "approval": "tool"}.get(
        entry.action.partition(".")[0], ""
    )


def _title_and_url(entry: queries.Entry, stored: catalog.Catalog | None) -> tuple[str, str]:
    """Return the title of the changed entry if it differs from the key, and the URL of its page."""
    key, kind = subject(entry), _kind(entry)
    if stored is None:
        return "", ""
    entries = {"toolkit": stored.toolkits, "plugin": stored.plugins, "tool": stored.tools}.get(kind, {})
    url = reverse(f"web:{kind}", args=[key]) if key in entries else ""
    return titles.title_of(stored, kind, key), url


def _agent(entry: queries.Entry, *, is_open: bool) -> str:
    """Return the agent to name beside the changed entry: the agent of a flip, a token, a connection or a call."""
    if entry.subject_kind in ("approval", "connection", "token") and is_open:
        described = entry.after or entry.before
        return str(described.get("agent", "")) if isinstance(described, Mapping) else ""
    return entry.subject_key if entry.subject_kind == "agent" and entry.key else ""


def source(via: str) -> str:
    """Return the name of the interface of a change."""
    return _VIA.get(via, via)


def _verb_phrase(entry: queries.Entry) -> str:
    family, _, operation = entry.action.partition(".")
    if entry.action == "draft.end":
        return "discarded the draft, whose time had come,"
    if operation == "end":
        return f"ended the {family} of"
    if family in FLIPS:
        return FLIPS[family][grants.is_on(entry.after)]
    if entry.action in ACTIONS:
        return ACTIONS[entry.action]
    kind = _KINDS.get(family, family)
    if entry.is_fact:
        return _observation(entry, kind)
    if operation in ("approve", "reject"):
        return _decision(entry, operation)
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
    if "blocked" in after and {*before, *after} <= blocking.FIELDS:
        return f"{'blocked' if after['blocked'] is True else 'unblocked'} {kind}"
    if {*before, *after} == {"block_ends"}:
        return f"changed the end of the block of {kind}"
    if kind == "tool" and facts.LISTED_FIELDS.isdisjoint(after):
        # As it was recorded before decisions had actions of their own.
        approved = str(after.get("approved") or after.get("details_approved") or "")
        if approved.startswith(tool_versions.REJECTED):
            return _decision(entry, "reject")
        if approved or ("seen" in after and after["seen"] is None):
            return _decision(entry, "approve")
    return ""


def _decision(entry: queries.Entry, operation: str) -> str:
    verb = VERBS[operation]
    return verb if entry.members else f"{verb} tool"


def _observation(entry: queries.Entry, kind: str) -> str:
    """Return the verb phrase of what was observed, whose actor is its source."""
    before, after = (side if isinstance(side, Mapping) else None for side in (entry.before, entry.after))
    action = entry.action
    if action not in facts.ACTIONS:
        action = facts.action_of(entry.subject_kind, before, after or {})
    several = bool(entry.members)
    offers = "declares" if entry.asked_by.startswith("agent:") else "lists"
    match action:
        case "tool.appear":
            return offers if several else f"{offers} the new tool"
        case "tool.disappear":
            return f"no longer {offers}" if several else f"no longer {offers} tool"
        case "tool.return":
            return f"{offers} again" if several else f"{offers} again tool"
        case "plugin.appear":
            return "was found in the installed code"
        case "plugin.fail":
            return "failed"
        case "plugin.recover":
            return "works again"
        case "plugin.running":
            now, then = ((side or {}).get("not_running") or () for side in (after, before))
            return f"found tools {'not running' if len(now) > len(then) else 'running again'} in plugin"
        case "toolkit.appear":
            return "has the new toolkit"
    stated = [word for field, word in _STATED.items() if field in (after or {})]
    fields = " and ".join(filter(None, (", ".join(stated[:-1]), *stated[-1:])))
    if _is_about_itself(entry):
        return f"changed its {fields}" if fields else "changed"
    return f"changed the {fields} of {kind}" if fields else f"changed {kind}"


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
    if entry.subject_kind == "approval" and isinstance(entry.after, Mapping):
        # The sentence says the rest.
        said = {name: entry.after[name] for name in ("edited", "note") if entry.after.get(name)}
        return differences.labeled({}, said)
    if entry.key:
        family = entry.action.partition(".")[0]
        to_text = words.state if family in ("switch", "override") else words.value
        return (pieces.Difference(label=family, before=to_text(entry.before), after=to_text(entry.after)),)
    before, after = (side if isinstance(side, dict) else {} for side in (entry.before, entry.after))
    if entry.members or entry.before is None or entry.after is None:
        # A whole entry was created or removed: its name is enough, and its fields would fill pages.
        return ()
    if entry.subject_kind == "tool":
        before, after = _without_hashes(entry, before, after)
    return differences.labeled(before, after)


def _without_hashes(
    entry: queries.Entry, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of a tool without the copy of an approved version, and with words for hashes; without any of
    them if the sentence says what was decided or observed.
    """
    is_said = entry.is_fact or bool(_single_field_verb(entry, "tool")) or entry.action in _DECISIONS
    left_out = {"approved_version", *(_OF_REVIEW if is_said else ())}
    sides = []
    for side, other in ((before, None), (after, before)):
        sides.append(
            {
                name: _version_words(value, (other or {}).get(name)) if name in _HASHES else value
                for name, value in side.items()
                if name not in left_out
            }
        )
    return sides[0], sides[1]


def _version_words(value: Any, before: Any) -> Any:
    """Return the words for the hash of a version, after another one (None: there was none)."""
    if not value:
        return value
    if str(value).startswith(tool_versions.REJECTED):
        return "a rejected version"
    return "another version" if before else "a version"
