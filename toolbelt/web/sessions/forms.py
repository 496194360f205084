"""The place in the list of sessions, and which session to evict."""

from __future__ import annotations

from django import forms

from toolbelt.core import sessions
from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit


class Eviction(kit.Change):
    """Which session to evict."""

    session = forms.CharField(max_length=sessions.MAX_ID_LENGTH, strip=False)


class Place(forms.Form):
    """Where in a list to begin."""

    offset = fields.Offset()
