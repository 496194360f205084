"""What is searched for, and the flip that a search leads to."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import fields


class Search(forms.Form):
    """The text."""

    q = fields.Query()


class Flip(forms.Form):
    """A switch or override of an agent, and the state that it would get."""

    agent = forms.CharField(max_length=64)
    key = forms.CharField(max_length=200)
    on = forms.ChoiceField(choices=[("on", "on"), ("off", "off")])
