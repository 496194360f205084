"""The admin page of gate rules."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from toolbelt import models
from toolbelt.admin import entry_admin, entry_forms, inputs
from toolbelt.core import agents, catalog

_LINES = ("approvers", "agents", "sub_apps", "tools", "toolkits", "plugins", "labels", "without")


class GateRuleForm(entry_forms.EntryForm):
    class Meta:
        field_classes = {
            **dict.fromkeys(_LINES, inputs.Lines),
            **dict.fromkeys(("kinds", "risks"), inputs.Words),
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, words in (("kinds", agents.KINDS), ("risks", catalog.DENIED_RISKS)):
            if isinstance(field := self.fields.get(name), inputs.Words):
                field.choices = [(word, word) for word in words]


@admin.register(models.GateRule)
class GateRuleAdmin(entry_admin.EntryAdmin):
    kind = "gate_rule"
    form = GateRuleForm
    heights = {"when": 8, "unless": 8, "more_than": 3, "reason": 3}
    fieldsets = [
        (None, {"fields": ["key", "effect", "observed", "ends"]}),
        ("For whom", {"fields": ["agents", "kinds", "sub_apps"]}),
        ("For which tools", {"fields": ["tools", "toolkits", "plugins", "risks"]}),
        ("When", {"fields": ["when", "unless", "labels", "without", "more_than"]}),
        ("If it asks", {"fields": ["approvals", "approvers", "expires"]}),
        ("What the model reads", {"fields": ["reason", "announce"]}),
    ]
    list_display = ["key", "effect", "reason", "observed", "ends"]
    list_filter = ["effect", "observed"]
    search_fields = ["key", "reason"]
    actions = ["delete_selected"]
