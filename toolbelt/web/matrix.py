"""The matrix of agents and toolkits."""

from __future__ import annotations

from django import forms
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.web.kit import fields, filters, http, paging, pieces, responses, titles, words
from toolbelt.web.toolkits import listing as toolkits

AGENTS_AT_ONCE = 12
# One page of the matrix has few enough cells to render and read.
TOOLKITS_AT_ONCE = 42


class Matrix(forms.Form):
    """The filters of toolkits and agents, and the offsets in both."""

    q = fields.Query()
    agents = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=64)
    offset = fields.Offset()
    agents_offset = fields.Offset()


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the matrix of the matching toolkits and agents; htmx gets only its table."""
    return responses.show(request, _Page(request), "matrix/matrix.html", "matrix/_table.html")


class _Page(pieces.Page):
    """The matrix of the matching toolkits and agents."""

    def __init__(self, request: http.Request) -> None:
        index, criteria = access_index.load(), filters.read(Matrix(request.GET))
        keys = [access.agent.key for access in index.agents]
        flippable = frozenset(filter(rights.flip_check(request.user), keys))
        is_single = criteria["agent"] in keys
        if is_single:
            matches = [access for access in index.agents if access.agent.key == criteria["agent"]]
        else:
            matches = paging.matching_agents(index.agents, criteria["agents"])
        columns = paging.part(matches, criteria["agents_offset"], AGENTS_AT_ONCE)
        all_kits = index.catalog.toolkits.values()
        matching_kits = [kit for kit in all_kits if words.contains(criteria["q"], kit.key, kit.title)]
        rows = paging.part(matching_kits, criteria["offset"], TOOLKITS_AT_ONCE)
        self.rows = tuple(
            (
                toolkits.Line(toolkits.use_of(index, kit)),
                [toolkits.Cell(each, kit, may_change=each.agent.key in flippable) for each in columns.items],
            )
            for kit in rows.items
        )
        self.agents = [access.agent for access in columns.items]
        self.is_single = is_single
        self.reset_label = "Reset to default" if is_single else "Reset"
        self.filters = criteria
        self.find_agents = len(keys) > AGENTS_AT_ONCE or bool(criteria["agents"])
        self.toolkits_pages = rows.pages(criteria, request.path)
        self.agents_pages = columns.pages(criteria, request.path, name="agents_offset")
        self.choices = pieces.choices(
            titles.options(access.agent for access in index.agents), criteria["agent"], "All agents"
        )
        self.is_filtered = bool(criteria["q"] or is_single or criteria["agents"])
        self.matches = f"{words.counted(rows.total, 'toolkit')}, {words.counted(columns.total, 'agent')}"
        self.may_change = bool(flippable)
        self.may_change_some = 0 < len(flippable) < len(keys)
