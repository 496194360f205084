"""Your own account: what you may do, your tokens and your changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping

from django.contrib.auth import models as auth
from django.contrib.auth import password_validation
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control.people import preferences, rights, roles
from toolbelt.control.people import tokens as issued
from toolbelt.control.reports import queries
from toolbelt.web.kit import audit_words, pieces, words
from toolbelt.web.tokens import view_model as tokens

MAX_CHANGES = 8
# The kinds of things, in the order of the pages, by the name of their permissions.
_KINDS: Mapping[str, str] = {
    "agent": "Agents, their switches and overrides",
    "agentsession": "Sessions",
    "toolkit": "Toolkits",
    "tool": "Tools",
    "loadout": "Loadouts",
    "subapp": "Sub-apps",
    "plugin": "Plugins and servers",
    "category": "Categories",
    "callrecord": "Calls",
    "auditentry": "Changes",
    "apitoken": "API tokens",
}
_ACTS: Mapping[str, str] = {"view": "see", "add": "add", "change": "change", "delete": "remove"}
# Every user sees these.
_SEEN_BY_ALL = frozenset({"agent", "toolkit", "tool", "auditentry"})


def page(
    user: auth.User,
    *,
    zone: str,
    browser_zone: str,
    session_ends: dt.datetime | None,
    may_undo: Callable[[queries.Entry], bool],
    may_see_tokens: bool,
) -> pieces.View:
    """Return the page of ``user``."""
    name = user.get_username()
    mine = queries.changes(actor=name, size=MAX_CHANGES)
    return pieces.View(
        user=user,
        roles=tuple(user.groups.order_by("name").values_list("name", flat=True)),
        agents=() if user.has_perm(rights.FLIP) else tuple(roles.agents_of(user.pk)),
        rights=() if user.is_superuser else tuple(_rights(user.get_all_permissions())),
        zones=pieces.choices(
            {
                name: name.replace("_", " ")
                for name in sorted(preferences.choices("time_zone"))
                if "/" in name or name == "UTC"
            },
            zone,
            f"Browser: {(browser_zone or timezone.get_default_timezone_name()).replace('_', ' ')}",
        ),
        password_rules=tuple(password_validation.password_validators_help_texts()),
        session_ends=words.ahead(session_ends) if session_ends else None,
        tokens=tuple(tokens.line(token) for token in issued.all_tokens() if token.user == name),
        entries=tuple(_entry(entry, may_undo(entry)) for entry in mine.entries),
        more_entries=f"All {words.number(mine.total)}" if mine.total > len(mine.entries) else "",
        changes_url=f"{reverse('web:audit_log')}?{urlencode({'person': name})}",
        may_see_tokens=may_see_tokens,
    )


def _entry(entry: queries.Entry, may_undo: bool) -> pieces.View:
    """Return a change with its time in full, because no day stands above it."""
    shown = audit_words.present(entry, may_undo)
    shown.when = words.moment(entry.at)
    return shown


def _rights(permissions: Iterable[str]) -> Iterable[pieces.View]:
    """Return the permissions in words, by kind; those without a word here are left out."""
    held = {permission.removeprefix("toolbelt.") for permission in permissions}
    for kind, label in _KINDS.items():
        acts = [
            word
            for act, word in _ACTS.items()
            if f"{act}_{kind}" in held
            or (act == "view" and (kind in _SEEN_BY_ALL or f"tool_change{kind}" in held))
        ]
        yield pieces.View(kind=label, acts=", ".join(acts) or "nothing")
