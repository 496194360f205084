"""The admin pages of agents, with their switches, overrides, tools and toolkits."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from toolbelt import conf, models
from toolbelt.admin import (
    counts,
    entry_actions,
    entry_admin,
    entry_forms,
    inlines,
    inputs,
    rows,
)
from toolbelt.core import agents, catalog

_BUDGET = ("max_tools", "max_tokens", "on_exceed")


class AgentForm(entry_forms.EntryForm):
    class Meta:
        field_classes = {
            "session_loadouts": inputs.Lines,
            "subagent_kinds": inputs.Words,
            "denied_risks": inputs.Words,
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if isinstance(kinds := self.fields.get("subagent_kinds"), inputs.Words):
            kinds.choices = [(kind, kind) for kind in agents.KINDS]
        if isinstance(risks := self.fields.get("denied_risks"), inputs.Words):
            risks.choices = [(risk, risk) for risk in catalog.DENIED_RISKS]

    def entry(self) -> dict[str, Any]:
        """Return the entry, with the limits as its budget."""
        limits = {name: self.value(name) for name in _BUDGET if name in self.cleaned_data}
        budget = {name: limit for name, limit in limits.items() if limit is not None}
        return super().entry() | ({"budget": budget or None} if limits else {})

    def field_of(self, key: str, subpath: str) -> str:
        """Return the field for a key; a problem with the budget belongs to the field of the limit."""
        if key == "budget":
            limit = subpath.removeprefix(".")
            return limit if limit in _BUDGET else _BUDGET[0]
        return super().field_of(key, subpath)


class Allowed(rows.Rows):
    """The toolkits that the agent may load, and which of them every session has from its start."""

    def entry(self) -> dict[str, Any]:
        """Return the allowed and the initial toolkits."""
        return {
            "allowed_toolkits": [self.name(line) for line in self.lines()] or None,
            "initial_toolkits": [self.name(line) for line in self._initial()] or None,
        }

    def line_of(self, key: str, subpath: str) -> tuple[Any, str]:
        """Return the line at a position; positions of initial toolkits count initial toolkits only."""
        return (
            super().line_of(key, subpath)
            if key == self.keys[0]
            else rows.item(self._initial(), subpath, "initial")
        )

    def _initial(self) -> list[Any]:
        return [line for line in self.lines() if line.cleaned_data.get("initial")]


class SwitchInline(inlines.RowsInline):
    model = models.ToolkitSwitch
    formset = rows.Settings
    keys, target = rows.SETTINGS, "toolkit"
    fields = ["toolkit", "on", "ends"]


class OverrideInline(inlines.RowsInline):
    model = models.ToolOverride
    formset = rows.Settings
    keys = rows.SETTINGS
    fields = ["tool", "on", "ends"]


class AlwaysOnInline(inlines.RowsInline):
    model = models.AgentTool
    formset = rows.Uses
    keys = ("tools",)
    fields = ["position", "tool", "options"]


class AllowedInline(inlines.RowsInline):
    model = models.AgentToolkit
    formset = Allowed
    keys, target = ("allowed_toolkits", "initial_toolkits"), "toolkit"
    fields = ["position", "toolkit", "initial"]


@admin.register(models.Agent)
class AgentAdmin(entry_admin.EntryAdmin):
    kind = "agent"
    form = AgentForm
    heights = {"description": 4}
    fieldsets = [
        (
            None,
            {"fields": ["key", "title", "description", "role", "model", "protected", "archived", "position"]},
        ),
        ("Loadout", {"fields": ["kind", "loadout"]}),
        ("Risks that are off", {"fields": ["denied_risks"]}),
        ("Budget", {"fields": list(_BUDGET)}),
        ("Limits of its token", {"fields": ["session_loadouts", "subagent_kinds"]}),
        ("MCP clients", {"fields": ["mcp_loading"]}),
    ]
    readonly_fields = ["position"]
    inlines = [SwitchInline, OverrideInline, AlwaysOnInline, AllowedInline]
    list_display = [
        "key",
        "title",
        "kind",
        "in_force",
        counts.Count("switches", models.ToolkitSwitch, "agent"),
        counts.Count("overrides", models.ToolOverride, "agent"),
        counts.Soonest(
            "ends",
            [models.ToolkitSwitch, models.ToolOverride],
            "agent",
            "ends",
            title="next end (switch or override)",
        ),
        counts.Count("tools", models.AgentTool, "agent", title="always-on tools"),
        counts.Count("toolkits", models.AgentToolkit, "agent", title="allowed toolkits"),
        counts.Count("sessions", models.AgentSession, "agent"),
        "protected",
        "archived",
    ]
    list_filter = ["kind", ("loadout", admin.AllValuesFieldListFilter), "protected", "archived"]
    search_fields = ["key", "title", "description", "role", "model"]
    actions = ["delete_selected", *entry_actions.MOVES]

    @admin.display(description="effective loadout", ordering="loadout")
    def in_force(self, row: models.Agent) -> str:
        """Return the agent's own loadout, or the default of its kind."""
        return row.loadout or conf.KIND_LOADOUTS.get(row.kind, "")
