"""The form that evicts a session."""

from __future__ import annotations

from django import forms

from toolbelt.core import sessions
from toolbelt.web.kit import forms as kit


class Eviction(kit.Change):
    """Which session to evict."""

    session = forms.CharField(max_length=sessions.MAX_ID_LENGTH, strip=False)
