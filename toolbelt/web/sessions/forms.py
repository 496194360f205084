"""The filter of the sessions of an agent, and the form that evicts one."""

from __future__ import annotations

from django import forms

from toolbelt.core import sessions
from toolbelt.web.kit import fields, periods
from toolbelt.web.kit import forms as kit


class Sessions(periods.Period):
    """When the sessions last changed, and where in their list to begin."""

    offset = fields.Offset()


class Eviction(kit.Change):
    """Which session to evict."""

    session = forms.CharField(max_length=sessions.MAX_ID_LENGTH, strip=False)
