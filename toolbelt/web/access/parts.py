"""The parts of the Access page that change when the agent changes, for htmx to swap in."""

from __future__ import annotations

from urllib.parse import quote

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import effects, errors
from toolbelt.web.access import view_model
from toolbelt.web.kit import http, notices, responses


def render_partial(
    request: http.Request,
    agent: str,
    notice: notices.Notice,
    change: effects.Effect | None,
    *,
    status: int = 200,
    question: notices.Confirmation | None = None,
) -> HttpResponse:
    """Return the parts of the Access page that the change affects, and a question if there is one."""
    message = request.POST.get("message", "")[:4000]
    home = reverse("web:agent_access", args=[agent])
    try:
        found = queries.access(agent, message)
    except errors.NotFound:
        # Gone since the page was opened, or by this very change.
        responses.keep(request, notice)
        return responses.see_other(request, reverse("web:agents"))
    page = view_model.answer(
        found,
        tools=frozenset(request.POST.get("tools", "").split()),
        shown=frozenset(request.POST.get("sections", "").split()),
        message=message,
        here=responses.back(request, home).partition("#")[0],
        notice=notice,
        change=change,
        may_undo=found.last is not None and rights.may_undo(request.user, found.last),
    )
    response = render(request, "kit/_answer.html", {"page": page, "confirmation": question}, status=status)
    return as_of(response, agent, page.revision)


def as_of(response: HttpResponse, agent: str, revision: int) -> HttpResponse:
    """Mark how new these parts of the page are: responses may overtake each other (order.js)."""
    # Where nobody is called so, the name is whatever stood in the address.
    response.headers["X-Toolbelt-As-Of"] = f"{quote(agent)} {revision}"
    return response
