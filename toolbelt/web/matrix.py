"""The matrix of agents and toolkits."""

from __future__ import annotations

from django import forms
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.web.kit import fields, filters, http, paging, pieces, responses, words
from toolbelt.web.toolkits import listing as toolkits

AGENTS_AT_ONCE = 12
# A window of the matrix: few enough cells to be made and looked at.
TOOLKITS_AT_ONCE = 42


class Matrix(forms.Form):
    """Which toolkits and which agents the matrix is narrowed to, and where in both to begin."""

    q = fields.Query()
    agents = forms.CharField(required=False, max_length=200)
    agent = forms.CharField(required=False, max_length=64)
    offset = fields.Offset()
    agents_offset = fields.Offset()


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the matrix, narrowed to toolkits and agents, or only its table to htmx."""
    index, given = access_index.load(), filters.read(Matrix(request.GET))
    keys = [access.agent.key for access in index.agents]
    own = frozenset(filter(rights.flip_check(request.user), keys))
    is_one = given["agent"] in keys
    if is_one:
        fitting = [access for access in index.agents if access.agent.key == given["agent"]]
    else:
        fitting = paging.matching_agents(index.agents, given["agents"])
    columns = paging.part(fitting, given["agents_offset"], AGENTS_AT_ONCE)
    every = index.catalog.toolkits.values()
    fitting_kits = [kit for kit in every if words.contains(given["q"], kit.key, kit.title)]
    lines = paging.part(fitting_kits, given["offset"], TOOLKITS_AT_ONCE)
    shown = pieces.View(
        rows=tuple(
            (
                toolkits.line(toolkits.use_of(index, kit)),
                [toolkits.cell(access, kit, may_change=access.agent.key in own) for access in columns.items],
            )
            for kit in lines.items
        ),
        agents=[access.agent for access in columns.items],
        one=is_one,
        clear="Reset to default" if is_one else "Reset",
        filters=given,
        find_agents=len(keys) > AGENTS_AT_ONCE or bool(given["agents"]),
        toolkits_pages=lines.pages(given, request.path),
        agents_pages=columns.pages(given, request.path, name="agents_offset"),
        choices=pieces.choices(keys, given["agent"], "All agents"),
        narrowed=bool(given["q"] or is_one or given["agents"]),
        matches=f"{words.counted(lines.total, 'toolkit')}, {words.counted(columns.total, 'agent')}",
        may_change=bool(own),
        may_change_some=0 < len(own) < len(keys),
    )
    return responses.show(request, shown, "matrix/matrix.html", "matrix/_table.html")
