"""The filter of the log of calls."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields, periods, saved_views

# The tabs of the page; the first is the one without a name in the address.
TABS = {"": "Usage", "log": "Log", "unused": "Unused"}


class Calls(periods.Period):
    """What narrows the log of calls, and where in it to look."""

    view = forms.ChoiceField(required=False, choices=list(TABS.items()))
    agent = forms.CharField(required=False, max_length=64)
    session = forms.CharField(required=False, max_length=200, strip=False)
    tool = forms.CharField(required=False, max_length=200)
    outcome = forms.CharField(required=False, max_length=20)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=0)
    every = forms.BooleanField(required=False)
    offset = fields.Offset()


VIEWS = saved_views.FilteredList(
    page="calls", form=Calls, names=("agent", "session", "tool", "outcome"), tab="view"
)
