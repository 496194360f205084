"""The list of tools."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import queries, usage
from toolbelt.core import catalog, risks
from toolbelt.core.rules import resolution
from toolbelt.web.call_log import views as calls
from toolbelt.web.kit import (
    explained,
    fields,
    filters,
    http,
    paging,
    periods,
    pieces,
    responses,
    saved_views,
    tool_search,
    words,
)

_COLUMNS = {"tool": "Tool", "plugin": "Plugin", "tokens": "Tokens"}
_SORTS: Mapping[str, Callable[[catalog.Tool], Any]] = {
    "tool": lambda tool: tool.key.casefold(),
    "plugin": lambda tool: (tool.plugin.casefold(), tool.key.casefold()),
    "tokens": lambda tool: tool.tokens,
}
_STATES = {
    "available": "Available",
    "unavailable": "Unavailable",
    "blocked": "Blocked",
    "default": "On by default",
}
_RISKS: Mapping[str, risks.Stated] = {
    "read-only": "read-only",
    "writes": "writes",
    "destructive": "destructive",
    "unstated": "not stated",
}
_RISK_LABELS = {value: risk.capitalize() for value, risk in _RISKS.items()} | {"unstated": "Risk not stated"}
# The value of the plugin filter that means no plugin.
NO_PLUGIN = "-"


class Tools(forms.Form):
    """The filters, order and offset of the list of tools."""

    q = fields.Query()
    plugin = forms.CharField(required=False, max_length=64)
    state = forms.CharField(required=False, max_length=20)
    risk = forms.CharField(required=False, max_length=20)
    called = forms.ChoiceField(required=False, choices=[("no", "no")])
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


VIEWS = saved_views.FilteredList(
    page="tools", form=Tools, names=("q", "plugin", "risk", "state", "called", "sort")
)


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the list, filtered and sorted; htmx gets only its table."""
    return responses.show(request, _Page(request), "tools/list.html", "tools/_table.html")


class _Page(pieces.Page):
    """The list of tools, filtered and sorted."""

    def __init__(self, request: http.Request) -> None:
        criteria, index, today = filters.read(Tools(request.GET)), access_index.load(), timezone.localdate()
        may_flip = rights.flip_check(request.user)
        # The agents for which the reader may set the matching tools.
        agents = [name for name in queries.agent_keys() if may_flip(name)]
        stored = index.catalog
        view = access_index.CatalogView(catalog=stored, closed=access_index.closed(stored))
        since = first_day(request)
        tools = matching(view, criteria, since)
        sort = paging.sort(tools, _SORTS, criteria["sort"])
        if not sort and not criteria["q"].strip():
            # With a text, the best matches come first.
            sort = paging.sort(tools, _SORTS, "tool")
        part = paging.part(tools, criteria["offset"])
        tokens = sum(tool.tokens for tool in tools)
        explanations = explained.Explanations(view.closed.get(tool.key) for tool in part.items)
        called = (
            usage.of_tools([tool.key for tool in part.items], since=periods.midnight(since)) if since else {}
        )
        period = words.counted((today - since).days + 1, "day") if since else ""
        self.tools = tuple(
            Line(
                index,
                tool,
                closed := view.closed.get(tool.key),
                explanations.of(closed),
                called.get(tool.key),
            )
            for tool in part.items
        )
        self.since = period
        self.called = (
            pieces.choices({"no": f"Not called in {period}"}, criteria["called"], "Called or not")
            if since
            else ()
        )
        self.columns = paging.columns(_COLUMNS, criteria, sort, request.path, ("tokens",))
        self.query = criteria["q"]
        self.plugins = _plugins(stored, criteria["plugin"])
        self.states = pieces.choices(_STATES, criteria["state"], "Any state")
        self.risks = pieces.choices(_RISK_LABELS, criteria["risk"], "Any risk")
        self.sort = criteria["sort"]
        self.total = len(stored.tools)
        self.matches = (
            (words.count_kinds(tool.kind for tool in tools) or words.tools(0))
            + (f", {words.approx(tokens)} tokens in total" if tools else "")
            + (", best matches first" if len(tools) > 1 and not sort else "")
        )
        self.pages = part.pages(criteria, request.path)
        self.bulk = _Bulk(tools, criteria, agents) if agents else None
        self.views = VIEWS.present(request, criteria)


class Line(pieces.View):
    """A tool in the list; ``agents`` is how many have it, and ``closed`` why no agent can."""

    def __init__(
        self,
        index: access_index.AccessIndex,
        tool: catalog.Tool,
        closed: resolution.Decision | None,
        reason: str,
        called: usage.OfTool | None,
    ) -> None:
        self.tool, self.closed, self.reason, self.called = tool, closed, reason, called
        self.toolkits = index.catalog.toolkits_of.get(tool.key, ())
        self.agents = sum(tool.key in access.granted for access in index.agents)


class _Bulk(pieces.View):
    """The menu that sets the selected or all matching tools for agents."""

    words = pieces.SWITCH_ACTIONS

    def __init__(
        self, tools: Sequence[catalog.Tool], criteria: Mapping[str, Any], agents: Sequence[str]
    ) -> None:
        self.fields = paging.hidden_fields(criteria, ("sort", "offset"))
        self.count = (
            f"All {words.number(len(tools))} matching tools" if len(tools) > 1 else "The matching tool"
        )
        self.agents = agents


def first_day(request: http.Request) -> dt.date | None:
    """Return the first day whose calls count in the list; None if the reader may see no calls."""
    may_see_calls = rights.may_read(request.user, "call_record")
    return calls.usual_first_day(timezone.localdate()) if may_see_calls else None


def matching(
    view: access_index.CatalogView, criteria: Mapping[str, Any], since: dt.date | None
) -> list[catalog.Tool]:
    """Return the matching tools, those that match a text best first; ``since`` is the first day whose calls count, None
    if the reader may see no calls.
    """
    stored = view.catalog
    found = tool_search.find(stored, criteria["q"], among=stored.tools)
    matches = [stored.tools[key] for key in found if _matches(view, stored.tools[key], criteria)]
    if criteria["called"] and since:
        uncalled = usage.uncalled(view.catalog, since=periods.midnight(since))
        return [tool for tool in matches if tool.key in uncalled]
    return matches


def _matches(view: access_index.CatalogView, tool: catalog.Tool, criteria: Mapping[str, Any]) -> bool:
    if criteria["plugin"] and tool.plugin != ("" if criteria["plugin"] == NO_PLUGIN else criteria["plugin"]):
        return False
    if criteria["risk"] in _RISKS and risks.stated(tool) != _RISKS[criteria["risk"]]:
        return False
    closed = view.closed.get(tool.key)
    match criteria["state"]:
        case "available":
            return closed is None
        case "unavailable":
            return closed is not None and closed.state == "unavailable"
        case "blocked":
            return closed is not None and closed.state == "denied"
        case "default":
            return tool.default_on
    return True


def _plugins(stored: catalog.Catalog, chosen: str) -> tuple[pieces.Choice, ...]:
    names = {name: plugin.title or name for name, plugin in stored.plugins.items()}
    if any(not tool.plugin for tool in stored.tools.values()):
        names[NO_PLUGIN] = "No plugin"
    return pieces.choices(
        dict(sorted(names.items(), key=lambda item: item[1].casefold())), chosen, "Any plugin"
    )
