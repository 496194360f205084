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
    view = pieces.View(
        rows=tuple(
            (
                toolkits.line(toolkits.use_of(index, kit)),
                [toolkits.cell(each, kit, may_change=each.agent.key in flippable) for each in columns.items],
            )
            for kit in rows.items
        ),
        agents=[access.agent for access in columns.items],
        is_single=is_single,
        reset_label="Reset to default" if is_single else "Reset",
        filters=criteria,
        find_agents=len(keys) > AGENTS_AT_ONCE or bool(criteria["agents"]),
        toolkits_pages=rows.pages(criteria, request.path),
        agents_pages=columns.pages(criteria, request.path, name="agents_offset"),
        choices=pieces.choices(
            titles.options(access.agent for access in index.agents), criteria["agent"], "All agents"
        ),
        is_filtered=bool(criteria["q"] or is_single or criteria["agents"]),
        matches=f"{words.counted(rows.total, 'toolkit')}, {words.counted(columns.total, 'agent')}",
        may_change=bool(flippable),
        may_change_some=0 < len(flippable) < len(keys),
    )
    return responses.show(request, view, "matrix/matrix.html", "matrix/_table.html")
