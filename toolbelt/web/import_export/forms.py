"""The forms of import and export."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit


class Import(kit.Change):
    """What the check showed of the belt: its digest, and the revision that it was compared with."""

    revision = forms.IntegerField(min_value=0, max_value=2**63 - 1)
    shown = forms.CharField(max_length=64)


class Export(forms.Form):
    """Which sections to export, and in which format."""

    section = fields.Names(required=False)
    form = forms.ChoiceField(required=False, choices=[("yaml", "yaml"), ("json", "json")])
