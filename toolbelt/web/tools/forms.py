"""The filters of the list of tools and of the page of one."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields, filters


class Tools(forms.Form):
    """What narrows and sorts the list of tools, and where in it to begin."""

    q = forms.CharField(required=False, max_length=200)
    plugin = forms.CharField(required=False, max_length=64)
    state = forms.CharField(required=False, max_length=20)
    risk = forms.CharField(required=False, max_length=20)
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


class OneTool(filters.Holders):
    """Which agents the page of a tool shows: of those that have it, and of those that do not."""

    others_offset = fields.Offset()
