"""Your own account: what you may do, your tokens and your changes."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.contrib.auth import models as auth
from django.contrib.auth import password_validation
from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control.people import rights, roles
from toolbelt.control.people import tokens as issued
from toolbelt.control.reports import queries
from toolbelt.web.kit import entries, pieces, words
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
# Who is logged in sees these, whatever else they may.
_SEEN_BY_ALL = frozenset({"agent", "toolkit", "tool", "auditentry"})


def page(
    user: auth.User,
    *,
    session_ends: dt.datetime | None,
    may_undo: Callable[[queries.Entry], bool],
    problems: Mapping[str, Iterable[str]] | None = None,
    **frame: Any,
) -> pieces.View:
    """Fill the page of ``user``; ``problems`` are those of a password that was not taken."""
    name = user.get_username()
    mine = queries.changes(actor=name, size=MAX_CHANGES)
    return pieces.View(
        name=name,
        full_name=user.get_full_name(),
        email=user.email,
        roles=tuple(user.groups.order_by("name").values_list("name", flat=True)),
        agents=() if user.has_perm(rights.FLIP) else tuple(roles.agents_of(user.pk)),
        is_everything=user.is_superuser,
        may_administer=user.is_staff,
        rights=() if user.is_superuser else tuple(_rights(user.get_all_permissions())),
        has_password=user.has_usable_password(),
        password_rules=tuple(password_validation.password_validators_help_texts()),
        problems={field: tuple(told) for field, told in (problems or {}).items()},
        session_ends=words.ahead(session_ends) if session_ends else None,
        tokens=tuple(tokens.line(token) for token in issued.all_tokens() if token.user == name),
        # The days do not stand above them here.
        entries=tuple(
            dataclasses.replace(entries.present(entry, may_undo(entry)), when=words.moment(entry.at))
            for entry in mine.entries
        ),
        more_entries=f"All {words.number(mine.total)}" if mine.total > len(mine.entries) else "",
        changes_url=f"{reverse('web:changes')}?{urlencode({'person': name})}",
        **frame,
    )


def _rights(permissions: Iterable[str]) -> Iterable[pieces.View]:
    """Put the permissions into words, by kind; what this page has no word for is left out."""
    held = {permission.removeprefix("toolbelt.") for permission in permissions}
    for kind, label in _KINDS.items():
        acts = [
            word
            for act, word in _ACTS.items()
            if f"{act}_{kind}" in held
            or (act == "view" and (kind in _SEEN_BY_ALL or f"tool_change{kind}" in held))
        ]
        yield pieces.View(kind=label, acts=", ".join(acts) or "nothing")
