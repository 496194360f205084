"""The admin pages of sessions: read-only, except that deleting a session evicts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from toolbelt import models
from toolbelt.admin import entry_actions
from toolbelt.control import writing
from toolbelt.control.agents import session_changes

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[models.AgentSession]
else:
    _Admin = admin.ModelAdmin


@admin.register(models.AgentSession)
class AgentSessionAdmin(_Admin):
    """Sessions, which agents write. An evicted session starts again with the initial toolkits only."""

    fields = ["agent", "key", "loadout", "state", "created", "changed"]
    list_display = ["key", "agent", "loadout", "changed", "created"]
    list_select_related = ["agent"]
    list_filter = [("agent", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["key", "agent__key"]
    date_hierarchy = "changed"
    ordering = ["-changed"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: a session begins with its first load."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: only agents change sessions."""
        return False

    def delete_model(self, request: HttpRequest, obj: models.AgentSession) -> None:
        """Evict a session."""
        session_changes.evict(entry_actions.write(request), obj.agent.key, obj.key)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Evict the selected sessions: all or none."""
        with writing.begin():
            for row in queryset.select_related("agent"):
                self.delete_model(request, row)
