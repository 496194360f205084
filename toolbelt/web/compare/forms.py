"""Which agents are compared, and which rows are copied."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit


class Copying(kit.Change):
    """What is to be copied from one side to the other: the ticked rows, or all; and what of it was shown."""

    a = forms.CharField(max_length=200)
    b = forms.CharField(max_length=200)
    row = fields.Names(required=False)
    what = forms.CharField(required=False, max_length=10)
    seen = forms.CharField(required=False, max_length=64)


class Comparison(forms.Form):
    """Which two sides are compared; the moment of a side, where it is wanted as it was."""

    a = forms.CharField(required=False, max_length=200)
    b = forms.CharField(required=False, max_length=200)
    a_at = forms.DateTimeField(required=False)
    b_at = forms.DateTimeField(required=False)
    show = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()
