"""The parts of the Access page that change when the agent changes, for htmx to swap in."""

from __future__ import annotations

from urllib.parse import quote

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from toolbelt.control.reports import queries
from toolbelt.core import effects, errors
from toolbelt.web.access import view_model
from toolbelt.web.kit import audit_words, http, notices, responses


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
    try:
        access = queries.access(agent, message)
    except errors.NotFound:
        # Gone since the page was opened, or by this very change.
        responses.keep_notice(request, notice)
        return responses.see_other(request, reverse("web:agents"))
    page = view_model.answer(
        access,
        tools=frozenset(request.POST.get("tools", "").split()),
        shown=frozenset(request.POST.get("sections", "").split()),
        message=message,
        notice=notice,
        change=change,
        may_undo=audit_words.may_undo_quickly(request.user, access.last),
    )
    response = render(request, "kit/_answer.html", {"page": page, "confirmation": question}, status=status)
    return as_of(response, agent, page.revision)


def as_of(response: HttpResponse, agent: str, revision: int) -> HttpResponse:
    """Mark how new these parts of the page are: responses may overtake each other (order.js)."""
    # If there is no such agent, the name is whatever the address contains.
    response.headers["X-Toolbelt-As-Of"] = f"{quote(agent)} {revision}"
    return response
