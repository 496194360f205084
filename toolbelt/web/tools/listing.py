"""The list of tools."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import queries, usage
from toolbelt.core import catalog, risks, search
from toolbelt.web.calls import views as calls
from toolbelt.web.kit import fields, filters, http, paging, periods, pieces, responses, saved_views, words

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
# A plugin is named in the address; this stands for none.
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
    """Show the list, narrowed and sorted as the form says, or only its table to htmx."""
    given, index, today = filters.read(Tools(request.GET)), access_index.load(), timezone.localdate()
    may_flip = rights.flip_check(request.user)
    # Those for which the reader may set all that is shown.
    agents = [name for name in queries.agent_keys() if may_flip(name)]
    stored = index.catalog
    shelf = access_index.CatalogView(catalog=stored, closed=access_index.closed(stored))
    since = first_day(request)
    shown = matching(shelf, given, since)
    sort = paging.sort(shown, _SORTS, given["sort"]) or paging.sort(shown, _SORTS, "tool")
    if given["q"].strip() and sort != given["sort"]:
        sort = ""
        # As an agent's search_tools orders them.
        hits = search.search(stored, [tool.key for tool in shown], given["q"], len(shown))
        ranks = {hit.tool: rank for rank, hit in enumerate(hits)}
        shown.sort(key=lambda tool: ranks.get(tool.key, len(shown)))
    part = paging.part(shown, given["offset"])
    tokens = sum(tool.tokens for tool in shown)
    called = usage.of_tools([tool.key for tool in part.items], since=periods.midnight(since)) if since else {}
    period = words.counted((today - since).days + 1, "day") if since else ""
    page = pieces.View(
        tools=tuple(
            pieces.View(
                tool=tool,
                toolkits=stored.toolkits_of.get(tool.key, ()),
                closed=shelf.closed.get(tool.key),
                agents=sum(tool.key in access.granted for access in index.agents),
                called=called.get(tool.key),
            )
            for tool in part.items
        ),
        since=period,
        called=pieces.choices({"no": f"Not called in {period}"}, given["called"], "Called or not")
        if since
        else (),
        columns=paging.columns(_COLUMNS, given, sort, request.path, ("tokens",)),
        query=given["q"],
        plugins=_plugins(stored, given["plugin"]),
        states=pieces.choices(_STATES, given["state"], "Any state"),
        risks=pieces.choices(_RISK_LABELS, given["risk"], "Any risk"),
        sort=given["sort"],
        in_all=len(stored.tools),
        matches=(words.count_kinds(tool.kind for tool in shown) or words.tools(0))
        + (f", {words.approx(tokens)} tokens in total" if shown else ""),
        pages=part.pages(given, request.path),
        # The menu that sets tools for agents: those that are selected, or all that the filter shows.
        bulk=pieces.View(
            fields=paging.hidden_fields(given, ("sort", "offset")),
            count=f"All {words.number(len(shown))} matching tools" if len(shown) > 1 else "The matching tool",
            words=pieces.SWITCH_ACTIONS,
            agents=tuple(agents),
        )
        if agents
        else None,
        views=VIEWS.present(request, given),
    )
    return responses.show(request, page, "tools/list.html", "tools/_table.html")


def first_day(request: http.Request) -> dt.date | None:
    """Return the first day whose calls count in the list; None if the reader may see no calls."""
    may_see_calls = rights.may_read(request.user, "call_record")
    return calls.usual_first_day(timezone.localdate()) if may_see_calls else None


def matching(
    shelf: access_index.CatalogView, filters: Mapping[str, Any], since: dt.date | None
) -> list[catalog.Tool]:
    """Return the tools that the filter shows; ``since`` is the first day whose calls count, None if the reader may see
    no calls.
    """
    shown = [tool for tool in shelf.catalog.tools.values() if _fits(shelf, tool, filters)]
    if filters["called"] and since:
        uncalled = usage.uncalled(shelf.catalog, since=periods.midnight(since))
        return [tool for tool in shown if tool.key in uncalled]
    return shown


def _fits(shelf: access_index.CatalogView, tool: catalog.Tool, filters: Mapping[str, Any]) -> bool:
    if not words.contains(filters["q"], tool.key, tool.title, tool.description):
        return False
    if filters["plugin"] and tool.plugin != ("" if filters["plugin"] == NO_PLUGIN else filters["plugin"]):
        return False
    if filters["risk"] in _RISKS and risks.stated(tool) != _RISKS[filters["risk"]]:
        return False
    closed = shelf.closed.get(tool.key)
    match filters["state"]:
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
