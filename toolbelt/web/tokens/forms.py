"""The filter of the list of tokens, and the form that issues one."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit


class Token(kit.Change):
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


class Tokens(forms.Form):
    """Which tokens are looked for, and whom the next one is for."""

    q = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=64)
    offset = fields.Offset()
    gone_offset = fields.Offset()
