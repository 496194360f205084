"""What is searched for, and the flip that a search leads to."""

from __future__ import annotations

from django import forms


class Search(forms.Form):
    """The text."""

    q = forms.CharField(required=False, max_length=200)


class Flip(forms.Form):
    """A switch or override of an agent, and the state that it would get."""

    agent = forms.CharField(max_length=64)
    key = forms.CharField(max_length=200)
    on = forms.ChoiceField(choices=[("on", "on"), ("off", "off")])
