"""Which conversations are going on, and what have they loaded? To be read; deleting one evicts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from toolbelt import models
from toolbelt.admin import entry_actions
from toolbelt.control import writing
from toolbelt.control.agents import sessions

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[models.AgentSession]
else:
    _Admin = admin.ModelAdmin


@admin.register(models.AgentSession)
class AgentSessionAdmin(_Admin):
    """Sessions are written by agents. One that was evicted starts anew, with the initial toolkits alone."""

    fields = ["agent", "key", "loadout", "state", "created", "changed"]
    list_display = ["key", "agent", "loadout", "changed", "created"]
    list_select_related = ["agent"]
    list_filter = [("agent", admin.RelatedOnlyFieldListFilter)]
    search_fields = ["key", "agent__key"]
    date_hierarchy = "changed"
    ordering = ["-changed"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse to everyone: a session begins with its first load."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to everyone: what a session has is its agent's to say."""
        return False

    def delete_model(self, request: HttpRequest, obj: models.AgentSession) -> None:
        """Evict it."""
        sessions.evict(entry_actions.write(request), obj.agent.key, obj.key)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Evict them all."""
        with writing.begin():
            for row in queryset.select_related("agent"):
                self.delete_model(request, row)
