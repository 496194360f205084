"""The filter of the matrix."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields


class Matrix(forms.Form):
    """Which toolkits and which agents the matrix is narrowed to, and where in both to begin."""

    q = fields.Query()
    agents = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=64)
    offset = fields.Offset()
    agents_offset = fields.Offset()
