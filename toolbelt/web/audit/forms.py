"""The filters of the audit log and of an agent's history."""

from __future__ import annotations

from django import forms

from toolbelt.web.kit import periods, saved_views


class AuditLog(periods.Period):
    """What narrows the audit log, and where in it to look."""

    person = forms.CharField(required=False, max_length=150)
    agent = forms.CharField(required=False, max_length=64)
    action = forms.CharField(required=False, max_length=64)
    key = forms.CharField(required=False, max_length=64)
    via = forms.CharField(required=False, max_length=7)
    batch = forms.UUIDField(required=False)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=1)


VIEWS = saved_views.FilteredList(
    page="audit_log", form=AuditLog, names=("person", "agent", "action", "via", "key")
)


class Download(AuditLog):
    """What of the audit log is wanted as a file, and in which form."""

    form = forms.ChoiceField(choices=[("csv", "csv"), ("json", "json")])
