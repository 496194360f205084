"""The filters of the list of tools and of the page of one."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields, filters, saved_views


class Tools(forms.Form):
    """What narrows and sorts the list of tools, and where in it to begin."""

    q = fields.Query()
    plugin = forms.CharField(required=False, max_length=64)
    state = forms.CharField(required=False, max_length=20)
    risk = forms.CharField(required=False, max_length=20)
    called = forms.ChoiceField(required=False, choices=[("no", "no")])
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


VIEWS = saved_views.FilteredList(
    page="tools", form=Tools, names=("q", "plugin", "risk", "state", "called", "sort")
)


class OneTool(filters.FindAgents):
    """Which agents the page of a tool shows: of those that have it, and of those that do not."""

    others_offset = fields.Offset()
