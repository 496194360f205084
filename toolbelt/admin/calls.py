"""The admin pages of the call log: read-only. The command ``prune_calls`` deletes old records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from toolbelt import models

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[models.CallRecord]
else:
    _Admin = admin.ModelAdmin


@admin.register(models.CallRecord)
class CallRecordAdmin(_Admin):
    """The call log. Records are never changed, and only deleted by age."""

    list_display = ["at", "agent", "tool", "outcome", "duration_ms", "arguments_bytes", "result_bytes"]
    list_filter = ["outcome", ("agent", admin.AllValuesFieldListFilter)]
    search_fields = ["agent", "tool", "plugin", "session", "request_id"]
    date_hierarchy = "at"
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: records are only added by calls."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: records do not change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: records are only deleted by age."""
        return False
