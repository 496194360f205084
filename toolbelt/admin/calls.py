"""Which calls were made, and how did each end? To be read; old ones go with the command prune_calls."""

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
    """Calls record themselves, and nothing here changes or deletes a record."""

    list_display = ["at", "agent", "tool", "outcome", "duration_ms", "arguments_bytes", "result_bytes"]
    list_filter = ["outcome", ("agent", admin.AllValuesFieldListFilter)]
    search_fields = ["agent", "tool", "plugin", "session", "request_id"]
    date_hierarchy = "at"
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse to everyone: calls record themselves."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to everyone."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to everyone: records are forgotten by their age alone."""
        return False
