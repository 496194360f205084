"""The filter of the list of tokens, and the form that issues one."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import forms
from django.utils import timezone

from toolbelt.control.reports import queries
from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit

SCOPES = {"read": "Read", "write": "Read and write"}
_USUAL_DAYS = "90"


class Token(kit.Fields, kit.Change):
    """A new token: its owner, its name, and when it expires."""

    owner = forms.ChoiceField(choices=[("agent", "agent"), ("me", "me")])
    agent = forms.CharField(
        required=False,
        max_length=64,
        widget=forms.Select,
        help_text="The token acts only for this agent.",
    )
    scope = forms.ChoiceField(
        required=False,
        choices=list(SCOPES.items()),
        help_text="The token never exceeds your own permissions.",
    )
    name = forms.CharField(required=False)
    days = forms.TypedChoiceField(
        required=False,
        label="Expires",
        choices=[
            ("7", "In 7 days"),
            ("30", "In 30 days"),
            ("90", "In 90 days"),
            ("365", "In a year"),
            ("", "Never"),
        ],
        coerce=int,
        empty_value=None,
    )

    @classmethod
    def empty(cls, agent: str) -> Token:
        """Return the form as it is shown first."""
        return cls(initial={"owner": "agent", "agent": agent, "days": _USUAL_DAYS})

    def field_at(self, place: str) -> str | None:
        """Return the field of a place; the day of expiry is chosen as a number of days."""
        return super().field_at("days" if place == "expires" else place)

    def offer(self) -> None:
        """Set the agents to choose from; only a form that is shown needs them."""
        self.choose("agent", [("", "Choose an agent"), *((key, key) for key in queries.agent_keys())])

    def arguments(self, me: str) -> dict[str, Any]:
        """Return the keyword arguments of control.people.tokens.issue."""
        given = self.checked()
        mine, days = given["owner"] == "me", given["days"]
        return {
            "name": given["name"],
            "agent": None if mine else given["agent"],
            "user": me if mine else None,
            "scope": given["scope"] if mine else "",
            "expires": timezone.now() + dt.timedelta(days=days) if days else None,
        }


class Tokens(forms.Form):
    """Which tokens the list shows, and for which agent the next one is."""

    q = fields.Query()
    agent = forms.CharField(required=False, max_length=64)
    offset = fields.Offset()
    gone_offset = fields.Offset()
