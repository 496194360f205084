"""Which agent an open page follows."""

from __future__ import annotations

from django import forms


class Followed(forms.Form):
    """What an open page follows: one agent with the catalog, or everything."""

    agent = forms.CharField(required=False, max_length=64)
