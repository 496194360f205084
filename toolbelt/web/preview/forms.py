"""What is asked of the preview."""

from __future__ import annotations

from django import forms

from toolbelt.core import agents, sessions
from toolbelt.web.kit import fields


class Question(forms.Form):
    """What is asked of one agent's preview, and which part of the answer is wanted."""

    VIEWS = ("tools", "policy", "json", "why")

    message = forms.CharField(required=False, max_length=4000)
    session = forms.CharField(required=False, max_length=sessions.MAX_ID_LENGTH)
    request = forms.CharField(required=False, max_length=sessions.MAX_ID_LENGTH)
    subagent = forms.ChoiceField(required=False, choices=[(kind, kind) for kind in agents.KINDS])
    view = forms.ChoiceField(required=False, choices=[(view, view) for view in VIEWS])
    format = forms.CharField(required=False, max_length=40)
    tool = forms.CharField(required=False, max_length=64)
    at = forms.CharField(required=False, max_length=40)
    offset = fields.Offset()
