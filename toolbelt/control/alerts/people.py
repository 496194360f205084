"""Alerts for people: each gets those that concern what they may decide, by mail, as they chose on their account."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from toolbelt.control.people import rights
from toolbelt.core import alerts
from toolbelt.store import operators, preferences

# Who may do something about an event: with one of these permissions, of all agents. Operators of single agents also get
# what concerns those.
_BY_PERMISSION: Mapping[str, str] = {
    "approval-pending": rights.DECIDE,
    "tools-to-review": rights.permission("change", "tool"),
    "findings": rights.permission("change", "tool"),
    "server-failed": rights.permission("change", "plugin"),
    "budget-passed": rights.FLIP,
    "configuration-drift": rights.permission("change", "loadout"),
}


def each(destination: alerts.Destination) -> list[alerts.Destination]:
    """Return the destinations that a destination stands for: one for each person who chose to get mail."""
    if destination.way != "people":
        return [destination]
    return [
        dataclasses.replace(
            destination,
            name=name_of(destination, user.get_username()),
            to=user.email,
            daily=choice == "daily",
            about=_about(user),
        )
        for user, choice in preferences.people_with("alerts")
        if alerts.is_mail_address(user.email)
    ]


def name_of(destination: alerts.Destination, user: str) -> str:
    """Return the name of what is sent to a person."""
    return f"{destination.name}: {user}"


def _about(user: operators.User) -> Mapping[str, frozenset[str] | None]:
    """Return the events that a person is notified of, with the agents that they have to concern; None: any."""
    own = operators.of_user(user.pk)
    of_single: Mapping[str, frozenset[str] | None] = dict.fromkeys(alerts.OF_AGENTS, own) if own else {}
    of_all = {event: None for event, permission in _BY_PERMISSION.items() if user.has_perm(permission)}
    return {**of_single, **of_all}
