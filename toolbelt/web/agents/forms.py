"""The filter of the list of agents."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields


class Agents(forms.Form):
    """What narrows and sorts the list of agents, and where in it to begin."""

    q = forms.CharField(required=False, max_length=200)
    kind = forms.CharField(required=False, max_length=20)
    loadout = forms.CharField(required=False, max_length=64)
    archived = forms.BooleanField(required=False)
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()
