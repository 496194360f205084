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
    "sign-in-needed": rights.permission("change", "plugin"),
    "budget-passed": rights.FLIP,
    "draft-reverted": rights.FLIP,
    "configuration-drift": rights.permission("change", "loadout"),
    "draft-observed": rights.FLIP,
    "draft-not-applied": rights.FLIP,
}


def each(destination: alerts.Destination) -> list[alerts.Destination]:
    """Return the destinations that a destination stands for: one for each person who chose to get mail. In a fixed
    number of queries.
    """
    if destination.way != "people":
        return [destination]
    people = [person for person in preferences.chosen("alerts") if alerts.is_mail_address(person.email)]
    if not people:
        return []
    able = {
        permission: {*operators.having(permission).values_list("pk", flat=True)}
        for permission in {*_BY_PERMISSION.values()}
    }
    of_single = operators.of_users()
    return [
        dataclasses.replace(
            destination,
            name=name_of(destination, person.name),
            to=person.email,
            daily=person.value == "daily",
            about={
                **(
                    dict.fromkeys(alerts.OF_AGENTS, of_single[person.user])
                    if person.user in of_single
                    else {}
                ),
                **{
                    event: None
                    for event, permission in _BY_PERMISSION.items()
                    if person.user in able[permission]
                },
            },
        )
        for person in people
    ]


def name_of(destination: alerts.Destination, user: str) -> str:
    """Return the name of what is sent to a person."""
    return f"{destination.name}: {user}"
