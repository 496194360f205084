"""The form of a sub-app."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.control.reports import queries
from toolbelt.core import catalog
from toolbelt.web.kit import entry_forms, fields, pieces, words


class SubApp(entry_forms.EntryForm):
    """A sub-app. Its tools are rows, which buttons move, remove and add."""

    entry_kind = "sub_app"
    plain = ("title", "description")
    fields_of = {"tool_names": "add_tools"}
    rows_of = frozenset({"tool_names"})

    key = forms.CharField(required=False, help_text="Its name in Toolbelt: letters, digits, _, . and -.")
    title = forms.CharField(required=False)
    description = fields.Text(rows=2)
    agents = fields.Ticks(help_text="No agents yet.")
    tool = fields.Column()
    add_tools = fields.ToolNames()

    @classmethod
    def initial_of(cls, value: catalog.SubApp) -> dict[str, Any]:
        """Return the fields of the form for a sub-app."""
        return {**super().initial_of(value), "tool": list(value.tool_names), "agents": list(value.agents)}

    def clean(self) -> None:
        """Put the rows together: added tools come last."""
        added = self.tools_to_add("tools", self.cleaned_data["add_tools"])
        tools = tuple(dict.fromkeys((*self.cleaned_data["tool"], *added)))
        if self.row_action is not None and self.row_action.rows == "tools":
            tools = self.row_action.apply(tools)
        self.tools: tuple[str, ...] = tools

    def entry(self) -> dict[str, Any]:
        """Return every key that the form shows; None stands for the default."""
        agents = entry_forms.merge(self.given["agents"], self.initial.get("agents", ()))
        return {**super().entry(), "tool_names": list(self.tools) or None, "agents": agents or None}

    def offer(self, stored: catalog.Catalog) -> None:
        """Set the agents to choose from, the rows of tools, and the tools to add."""
        agents = dict.fromkeys((*queries.agent_keys(), *self.given["agents"]))
        self.choose("agents", ((key, key) for key in agents))
        self.rows = [
            pieces.View(
                place=place,
                key=key,
                about=words.about_tool(stored, key),
                problem=self.problems.get(f"tool_names[{place}]", ""),
            )
            for place, key in enumerate(self.tools)
        ]
