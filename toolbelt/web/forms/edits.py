"""What may a form send that changes something? The base of all, and those that write an entry or a part of one."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.core import agents, sessions
from toolbelt.web.forms import fields


class Change(forms.Form):
    """What every change may bring: the answer to a question if there was one, and a reason that is kept with it."""

    confirm = forms.BooleanField(required=False)
    reason = forms.CharField(required=False, max_length=500)

    def problems(self) -> str:
        """Say what is wrong, in a line."""
        return "; ".join(f"{name}: {found[0]}" for name, found in self.errors.items())


class Settings(Change):
    """One agent's settings as somebody typed them, and what the page showed (``was``, as an entry of a belt)."""

    KEYS = ("title", "role", "description", "model", "kind", "loadout", "budget", "mcp_loading", "protected")

    title = forms.CharField(required=False)
    role = forms.CharField(required=False)
    description = forms.CharField(required=False)
    model = forms.CharField(required=False)
    kind = forms.CharField(required=False)
    loadout = forms.CharField(required=False)
    max_tools = forms.IntegerField(required=False)
    max_tokens = forms.IntegerField(required=False)
    on_exceed = forms.ChoiceField(required=False, choices=[(word, word) for word in agents.ON_EXCEED])
    mcp_loading = forms.ChoiceField(required=False, choices=[(word, word) for word in agents.MCP_LOADINGS])
    protected = forms.BooleanField(required=False)
    was = fields.Document(required=False)

    def clean_was(self) -> dict[str, Any]:
        """Take nothing but what the page shows."""
        was = self.cleaned_data["was"]
        return {key: was.get(key) if isinstance(was, dict) else None for key in self.KEYS}

    def wanted(self) -> dict[str, Any]:
        """Give the changes, and what was seen of what they change, as control.entries.change takes them."""
        given = self.cleaned_data
        limits = {name: given[name] for name in ("max_tools", "max_tokens") if given[name] is not None}
        if given["on_exceed"] not in ("", "warn"):
            limits["on_exceed"] = given["on_exceed"]
        typed = {**given, "budget": limits, "description": given["description"].replace("\r\n", "\n")}
        if typed["mcp_loading"] == agents.MCP_LOADINGS[0]:
            # As an entry says it: what is usual is left out.
            typed["mcp_loading"] = ""
        entry = {key: typed[key] or None for key in self.KEYS}
        was = given["was"]
        return {
            "changes": {key: value for key, value in entry.items() if value != was[key]},
            "was": {key: was[key] for key, value in entry.items() if value != was[key]},
            "confirm": given["confirm"],
            "reason": given["reason"],
        }


class Operators(Change):
    """Which users shall operate an agent, and which of them the page showed (``was``)."""

    user = fields.Names(required=False)
    was = fields.Names(required=False)


class Archiving(Change):
    """Whether an agent shall be archived."""

    archived = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])


class Copy(forms.Form):
    """The key of an agent that is to be like another one."""

    key = forms.CharField(max_length=200)


class Eviction(Change):
    """Which session is to begin anew."""

    session = forms.CharField(max_length=sessions.LONGEST_ID, strip=False)


class Copying(Change):
    """What is to be copied from one side to the other: the ticked rows, or all; and what of it was shown."""

    a = forms.CharField(max_length=200)
    b = forms.CharField(max_length=200)
    row = fields.Rows(required=False)
    what = forms.CharField(required=False, max_length=10)
    seen = forms.CharField(required=False, max_length=64)


class Import(Change):
    """What was shown of the belt that is to come in: the digest of it, and the revision that it was checked beside."""

    revision = forms.IntegerField(min_value=0, max_value=2**63 - 1)
    shown = forms.CharField(max_length=64)


class Token(forms.Form):
    """Whose token is wanted, what it is for, and when it ends."""

    owner = forms.ChoiceField(choices=[("agent", "agent"), ("me", "me")])
    agent = forms.CharField(required=False, max_length=64)
    scope = forms.ChoiceField(required=False, choices=[("read", "read"), ("write", "write")])
    name = forms.CharField(required=False)
    days = forms.TypedChoiceField(
        required=False,
        choices=[(days, days) for days in ("7", "30", "90", "365")],
        coerce=int,
        empty_value=None,
    )


def wrong(form: forms.Form) -> dict[str, str]:
    """Say what is wrong with a form, by the names of its fields."""
    return {name: " ".join(map(str, found)) for name, found in form.errors.items()}
