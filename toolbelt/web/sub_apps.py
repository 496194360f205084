"""The sub-apps: their list, the page of a sub-app, and the editor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django import forms
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.core import belts, catalog, errors
from toolbelt.core.rules import reasons, resolution
from toolbelt.web.kit import (
    entry_editor,
    entry_forms,
    explained,
    fields,
    http,
    pieces,
    responses,
    titles,
    words,
)

# The most reasons that are shown for an agent.
_MAX_REASONS = 8


class SubApp(entry_forms.EntryForm):
    """The form of a sub-app. Its tools are rows, which buttons move, remove and add."""

    entry_kind = "sub_app"
    plain_fields = ("title", "description")
    list_fields = ("agents",)
    fields_by_key = {"tool_names": "add_tools"}
    row_keys = frozenset({"tool_names"})

    key = forms.CharField(required=False, help_text="Its name in Toolbelt: letters, digits, _, . and -.")
    title = forms.CharField(required=False)
    description = fields.Text(rows=2)
    agents = fields.Checkboxes(help_text="No agents yet.")
    tool = fields.Column()
    add_tools = fields.ToolNames()

    @classmethod
    def initial_of(cls, value: catalog.SubApp) -> dict[str, Any]:
        """Return the fields of the form for a sub-app."""
        return {**super().initial_of(value), "tool": list(value.tool_names)}

    def clean(self) -> None:
        """Set the rows from the fields and the row action; added tools come last."""
        added = self.tools_to_add("tools", self.cleaned_data["add_tools"])
        tools = tuple(dict.fromkeys((*self.cleaned_data["tool"], *added)))
        if self.row_action is not None and self.row_action.rows == "tools":
            tools = self.row_action.apply(tools)
        self.tools: tuple[str, ...] = tools

    def entry(self) -> dict[str, Any]:
        """Return every key of the form with its value; None means the default."""
        return {**super().entry(), "tool_names": list(self.tools) or None}

    def set_choices(self, stored: catalog.Catalog) -> None:
        """Set the agents to choose from, the rows of tools, and the tools to add."""
        agents = {key: key for key in self.values["agents"]} | titles.agent_options()
        self.choose("agents", agents.items())
        self.rows = [
            {
                "key": key,
                "about": words.about_tool(stored, key),
                "problem": self.problems.get(f"tool_names[{index}]", ""),
            }
            for index, key in enumerate(self.tools)
        ]


class Editor(entry_editor.Editor):
    """The editor of sub-apps."""

    kind, form, template = "sub_app", SubApp, "sub_apps/_form.html"
    about = "A sub-app's tools are on for the agents that it embeds, unless they are turned off or blocked."


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list."""
    return responses.show(request, _Page(request), "sub_apps/list.html")


class _Page(pieces.Page):
    """The list of sub-apps."""

    def __init__(self, request: http.Request) -> None:
        index = access_index.load()
        sub_apps = index.catalog.sub_apps
        names = ["", *sub_apps, ""]
        self.sub_apps = tuple(
            _Line(index, sub_app, up, down)
            for sub_app, up, down in zip(sub_apps.values(), names, names[2:], strict=False)
        )


@require_safe
def page(request: http.Request, sub_app: str) -> HttpResponse:
    """Show one sub-app."""
    return responses.show(request, _SubAppPage(request, sub_app), "sub_apps/sub_app.html")


class _SubAppPage(pieces.Page):
    """One sub-app."""

    def __init__(self, request: http.Request, sub_app: str) -> None:
        index = access_index.load()
        stored = index.catalog.sub_apps.get(sub_app)
        if stored is None:
            raise errors.NotFound("sub-app", sub_app, index.catalog.sub_apps)
        closed = access_index.closed(index.catalog)
        tools = [index.catalog.tools[tool] for tool in _tools(index, stored)]
        explanations = explained.Explanations(closed.get(tool.key) for tool in tools)
        self.sub_app = stored
        self.title = stored.title or sub_app
        self.tools = tuple((tool, (each := closed.get(tool.key)), explanations.of(each)) for tool in tools)
        self.tokens = words.approx(sum(tool.tokens for tool in tools))
        self.agents = tuple(_agents(index, stored))
        self.seen = json.dumps(belts.entry("sub_app", stored), ensure_ascii=False)


class _Line(pieces.View):
    """A sub-app in the list."""

    def __init__(self, index: access_index.AccessIndex, sub_app: catalog.SubApp, up: str, down: str) -> None:
        tools = _tools(index, sub_app)
        accesses = [access for access in index.agents if access.agent.key in sub_app.agents]
        self.sub_app = sub_app
        self.title = sub_app.title or sub_app.key
        self.tools = len(tools)
        self.pairs = len(accesses) * len(tools)
        self.off = sum(tool not in access.active for access in accesses for tool in tools)
        self.up = up
        self.down = down


def _tools(index: access_index.AccessIndex, sub_app: catalog.SubApp) -> list[str]:
    return [tool for tool in sub_app.tool_names if tool in index.catalog.tools]


class _Agent(pieces.View):
    """An agent that a sub-app embeds, and which of its tools are off there."""

    def __init__(self, key: str, decisions: Sequence[resolution.Decision]) -> None:
        off = [
            (decision.tool, reasons.explain(decision)) for decision in decisions if decision.state != "active"
        ]
        active = len(decisions) - len(off)
        self.key = key
        self.state = "active" if not off else "discoverable" if active else "denied"
        self.word = f"{active} of {len(decisions)} on"
        self.off = tuple(off[:_MAX_REASONS])
        self.more_off = max(0, len(off) - _MAX_REASONS)


def _agents(index: access_index.AccessIndex, sub_app: catalog.SubApp) -> Iterator[_Agent]:
    tools = _tools(index, sub_app)
    accesses = {access.agent.key: access for access in index.agents}
    for key in sub_app.agents:
        if key in accesses:
            yield _Agent(key, [accesses[key].decision(tool) for tool in tools])
