"""The parts of a page that change when a switch of an agent changes, for htmx to swap in."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django_htmx.http import trigger_client_event

from toolbelt.control.access import access_index
from toolbelt.control.reports import queries
from toolbelt.core import effects
from toolbelt.web.access import parts
from toolbelt.web.kit import http, notices, responses
from toolbelt.web.toolkits import view_model as toolkits


def declare(request: http.Request, agent: str, home: str = "", **how: Any) -> None:
    """Declare that htmx gets what the change leaves of the agent's page; a browser goes there, or to ``home``."""

    def swap(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        return render_partial(request, agent, notice, change, status=status)

    responses.declare(request, home or reverse("web:agent_access", args=[agent]), parts=swap, **how)


def render_partial(
    request: http.Request,
    agent: str,
    notice: notices.Notice,
    change: effects.Effect | None,
    **answer: Any,
) -> HttpResponse:
    """Return the parts of the Access page that the change affects, as :func:`access.parts.render_partial` does.

    A page that shows the agent's switches as ``cells`` of a table names their toolkits, and gets those.
    """
    cells = request.POST.get("cells", "").split()
    if cells:
        return _render_cells(request, agent, cells, notice, **answer)
    return parts.render_partial(request, agent, notice, change, **answer)


def _render_cells(
    request: http.Request,
    agent: str,
    cells: list[str],
    notice: notices.Notice,
    *,
    status: int = 200,
    question: notices.Confirmation | None = None,
) -> HttpResponse:
    # Before what is shown: it is never older than it says.
    request.counts = counts = queries.count()
    page = toolkits.answer(access_index.load(), agent, cells, notice)
    shown = {"page": page, "confirmation": question}
    response = render(request, "toolkits/_answer.html", shown, status=status)
    # What else on the page follows the agent reloads itself.
    return parts.as_of(trigger_client_event(response, "flipped"), agent, counts.revision)
