"""The admin pages of plugins, tools and categories.

Plugins and tools are never deleted, so that their switches and history stay: plugins are disabled, tools retired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django.contrib import admin, messages
from django.http import HttpRequest

from toolbelt import models
from toolbelt.admin import counts, entry_actions, entry_admin, filters
from toolbelt.control.servers import inbox
from toolbelt.core import catalog, risks, schema, tool_versions


@admin.register(models.Category)
class CategoryAdmin(entry_admin.EntryAdmin):
    kind = "category"
    fieldsets = [(None, {"fields": ["name"]})]
    search_fields = ["name"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False for an existing category, which has nothing but its name."""
        return obj is None and super().has_change_permission(request, obj)


@admin.register(models.Plugin)
class PluginAdmin(entry_admin.EntryAdmin):
    kind = "plugin"
    heights = {"upstream": 8}
    fieldsets = [
        (None, {"fields": ["name", "namespace", "title", "description", "category"]}),
        ("State", {"fields": ["active", "blocked", "block_ends", "trusted", "status", "error"]}),
        ("MCP server", {"fields": ["upstream", "keep_descriptions", "reject_tools", "reject_all_but"]}),
        ("Order", {"fields": ["position"]}),
    ]
    readonly_fields = ["error", "position"]
    list_display = [
        "name",
        "title",
        "namespace",
        "category",
        counts.Count("tools", models.Tool, "plugin"),
        "status",
        "active",
        "blocked",
        "trusted",
    ]
    list_filter = ["status", "active", "blocked", "trusted", ("category", admin.AllValuesFieldListFilter)]
    search_fields = ["name", "namespace", "title", "description"]
    actions = ["activate", "disable", "block", "unblock", *entry_actions.MOVES]

    @admin.action(permissions=["change"], description="Turn on selected plugins")
    def activate(self, request: HttpRequest, queryset: Any) -> None:
        """Turn on the selected plugins."""
        self.change_each(request, queryset, {"active": True})

    @admin.action(permissions=["change"], description="Turn off selected plugins")
    def disable(self, request: HttpRequest, queryset: Any) -> None:
        """Turn off the selected plugins for all agents."""
        self.change_each(request, queryset, {"active": False})


@admin.register(models.Tool)
class ToolAdmin(entry_admin.EntryAdmin):
    kind = "tool"
    heights = {"input_schema": 24, "output_schema": 12, "annotations": 8}
    fieldsets = [
        (None, {"fields": ["key", "kind", "plugin", "title", "description", "category", "tokens", "risk"]}),
        ("Schemas", {"fields": ["input_schema", "output_schema", "annotations"]}),
        ("Policy", {"fields": ["policy"]}),
        ("Records", {"fields": ["recorded_fields"]}),
        ("Labels", {"fields": ["brings"]}),
        (
            "State",
            {"fields": ["default_on", "blocked", "block_ends", "retired", "seen", "approved", "approval"]},
        ),
        (
            "MCP server",
            {
                "fields": [
                    *("upstream_name", "details", "details_approved", "approved_version", "repairs"),
                    *("varies", "keep_description"),
                ]
            },
        ),
    ]
    readonly_fields = [
        "tokens",
        "risk",
        "approved",
        "approval",
        "details",
        "details_approved",
        "approved_version",
        "varies",
    ]
    autocomplete_fields = ["plugin"]
    list_display = ["key", "plugin", "category", "risk", "tokens", "state", "approval", "default_on"]
    list_select_related = ["plugin"]
    list_filter = [
        "kind",
        ("plugin", admin.RelatedOnlyFieldListFilter),
        ("category", admin.AllValuesFieldListFilter),
        filters.ByRisk,
        filters.ByApproval,
        "seen",
        "retired",
        "blocked",
        "default_on",
    ]
    search_fields = ["key", "title", "description"]
    actions = ["mark_seen", "approve", "block", "unblock", "retire", "unretire"]

    @admin.display(description="risk")
    def risk(self, row: models.Tool) -> str:
        """Return the risk that the tool's annotations state."""
        return risks.stated(value(row))

    @admin.display(description="state")
    def state(self, row: models.Tool) -> str:
        """Return "available", or why no agent can use the tool."""
        obstacles = ((row.retired, "retired"), (not row.seen, "unseen"), (row.blocked, "blocked"))
        return next((word for is_so, word in obstacles if is_so), "available")

    @admin.display(description="approval", ordering="approved")
    def approval(self, row: models.Tool) -> str:
        """Return whether the tool matches its approved version."""
        if not row.approved:
            return "any version"
        if tool_versions.is_rejected(value(row)):
            return "rejected"
        return "changed since approval" if tool_versions.is_changed(value(row)) else "approved"

    @admin.action(permissions=["change"], description="Mark selected tools as reviewed")
    def mark_seen(self, request: HttpRequest, queryset: Any) -> None:
        """Mark the selected tools as reviewed, which makes new tools available."""
        self.change_each(request, queryset, {"seen": True}, action="tool.approve")

    @admin.action(permissions=["change"], description="Approve the current version of selected tools")
    def approve(self, request: HttpRequest, queryset: Any) -> None:
        """Approve the current version of the selected tools, and mark them as reviewed; refused if any has findings."""
        if doubts := inbox.warnings([row.key for row in queryset]):
            key, flag = doubts[0]
            more = f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else ""
            message = (
                f"Nothing was approved. {key}: {flag}{more}. Read the findings and approve it in Review."
            )
            self.message_user(request, message, messages.ERROR)
            return
        self.change_each(request, queryset, _approval, action="tool.approve")

    @admin.action(permissions=["change"], description="Retire selected tools of no plugin")
    def retire(self, request: HttpRequest, queryset: Any) -> None:
        """Retire the selected tools of no plugin: no agent can use them, but their switches are kept."""
        self.change_each(request, queryset, {"retired": True})

    @admin.action(permissions=["change"], description="Restore selected retired tools")
    def unretire(self, request: HttpRequest, queryset: Any) -> None:
        """Bring the selected tools back, with their switches."""
        self.change_each(request, queryset, {"retired": False})


def value(row: models.Tool) -> catalog.Tool:
    """Return the parts of a tool that determine its risk and its version."""
    return catalog.Tool(
        key=row.key,
        kind=cast(catalog.Kind, row.kind),
        title=row.title,
        description=row.description,
        input_schema=schema.canonical(row.input_schema),
        annotations=schema.canonical(row.annotations) if row.annotations else "",
        details=schema.canonical(row.details) if row.details else "",
        approved=row.approved,
        upstream_name=row.upstream_name,
    )


def _approval(row: models.Tool) -> Mapping[str, Any]:
    tool = value(row)
    return {
        "seen": True,
        "approved": tool_versions.version(tool),
        "details_approved": tool_versions.details_version(tool) or None,
        "approved_version": None,
    }
