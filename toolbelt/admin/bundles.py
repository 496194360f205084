"""The admin pages of toolkits, loadouts and sub-apps."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from toolbelt import models
from toolbelt.admin import counts, entry_actions, entry_admin, entry_forms, inlines, inputs, rows
from toolbelt.core import catalog


class MemberInline(inlines.RowsInline):
    model = models.Member
    formset = rows.Uses
    keys = ("members",)
    fields = ["position", "tool", "options"]


@admin.register(models.Toolkit)
class ToolkitAdmin(entry_admin.EntryAdmin):
    kind = "toolkit"
    heights = {
        "description": 4,
        "policy": 16,
        "policy_when_off": 4,
        "tool_notes": 10,
        "triggers": 20,
        "examples": 8,
    }
    fieldsets = [
        (None, {"fields": ["key", "title", "description", "blocked", "block_ends", "position"]}),
        ("Policy", {"fields": ["policy", "policy_when_off", "tool_notes"]}),
        ("Focus", {"fields": ["triggers"]}),
        ("Labels", {"fields": ["brings"]}),
        ("For operators", {"fields": ["examples"]}),
    ]
    readonly_fields = ["position"]
    inlines = [MemberInline]
    list_display = [
        "key",
        "title",
        counts.Count("tools", models.Member, "toolkit"),
        counts.Count("allowed", models.AgentToolkit, "toolkit", title="allowed for"),
        counts.Count("on", models.ToolkitSwitch, "toolkit", title="on for", on=True),
        counts.Count("off", models.ToolkitSwitch, "toolkit", title="off for", on=False),
        "blocked",
        "position",
    ]
    list_filter = ["blocked"]
    search_fields = ["key", "title", "description", "members__tool__key"]
    actions = ["delete_selected", "block", "unblock", *entry_actions.MOVES]


class LoadoutForm(entry_forms.EntryForm):
    class Meta:
        field_classes = {
            **dict.fromkeys(("plugins", "categories", "discoverable", "disabled"), inputs.Lines),
            "denied_risks": inputs.Words,
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if isinstance(risks := self.fields.get("denied_risks"), inputs.Words):
            risks.choices = [(risk, risk) for risk in catalog.DENIED_RISKS]


@admin.register(models.Loadout)
class LoadoutAdmin(entry_admin.EntryAdmin):
    kind = "loadout"
    form = LoadoutForm
    fieldsets = [
        (None, {"fields": ["name", "description", "parent", "position"]}),
        ("Included", {"fields": ["plugins", "categories"]}),
        ("On request", {"fields": ["discoverable"]}),
        ("Off", {"fields": ["disabled", "denied_risks"]}),
    ]
    readonly_fields = ["position"]
    list_display = ["name", "parent", "description", "brings", "denies"]
    search_fields = ["name", "description", "parent"]
    actions = ["delete_selected", *entry_actions.MOVES]

    @admin.display(description="includes")
    def brings(self, row: models.Loadout) -> str:
        """Return the included plugins and categories."""
        return ", ".join([*row.plugins, *row.categories])

    @admin.display(description="disables")
    def denies(self, row: models.Loadout) -> str:
        """Return the disabled names, and the denied risks."""
        return ", ".join([*row.disabled, *row.denied_risks])


class BoundToolInline(inlines.RowsInline):
    model = models.SubAppTool
    keys = ("tool_names",)
    fields = ["position", "tool"]


class EmbeddedAgentInline(inlines.RowsInline):
    model = models.SubAppAgent
    keys, target = ("agents",), "agent"
    fields = ["position", "agent"]


@admin.register(models.SubApp)
class SubAppAdmin(entry_admin.EntryAdmin):
    kind = "sub_app"
    fieldsets = [(None, {"fields": ["key", "title", "description", "position"]})]
    readonly_fields = ["position"]
    inlines = [BoundToolInline, EmbeddedAgentInline]
    list_display = [
        "key",
        "title",
        counts.Count("tools", models.SubAppTool, "sub_app"),
        counts.Count("agents", models.SubAppAgent, "sub_app"),
    ]
    search_fields = ["key", "title", "description"]
    actions = ["delete_selected", *entry_actions.MOVES]
