"""The filter of the log of calls."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields, periods, saved_views


class Calls(periods.Period):
    """What narrows the log of calls, and where in it to look."""

    agent = forms.CharField(required=False, max_length=64)
    session = forms.CharField(required=False, max_length=200, strip=False)
    tool = forms.CharField(required=False, max_length=200)
    outcome = forms.CharField(required=False, max_length=20)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=0)
    every = forms.BooleanField(required=False)
    unused = forms.ChoiceField(required=False, choices=[("all", "all")])
    unused_offset = fields.Offset()


VIEWS = saved_views.FilteredList(page="calls", form=Calls, names=("agent", "session", "tool", "outcome"))
