"""Saving a view of a list, and deleting it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_POST

from toolbelt.control.people import saved_views
from toolbelt.web.agents import forms as agents
from toolbelt.web.audit import forms as audit
from toolbelt.web.calls import forms as calls
from toolbelt.web.kit import http, notices, responses
from toolbelt.web.kit import saved_views as kit
from toolbelt.web.plugins import forms as plugins
from toolbelt.web.saved_views import forms
from toolbelt.web.toolkits import forms as toolkits
from toolbelt.web.tools import forms as tools

LISTS: Mapping[str, kit.FilteredList] = {
    page.VIEWS.page: page.VIEWS for page in (agents, toolkits, tools, plugins, calls, audit)
}


@require_POST
def save(request: http.Request, page: str) -> HttpResponse:
    """Save the filters of a list under a name, for the reader alone."""
    query = _declare(request, page, undone="Not saved")
    name = forms.View(request.POST).checked()["name"]
    saved_views.save(cast("int", request.user.pk), page, name, query)
    return responses.respond(request, notices.Notice(text=f"View {name} saved."))


@require_POST
def delete(request: http.Request, page: str) -> HttpResponse:
    """Delete a view of the reader; the list stays filtered."""
    _declare(request, page, undone="Not deleted")
    name = forms.View(request.POST).checked()["name"]
    saved_views.remove(cast("int", request.user.pk), page, name)
    return responses.respond(request, notices.Notice(text=f"View {name} deleted."))


def _declare(request: http.Request, page: str, *, undone: str) -> str:
    """Lead back to the list as it is filtered; return its filters. Raise Http404 for a list without views."""
    if page not in LISTS:
        raise Http404(f"There is no list {page!r} whose views could be saved.")
    query = LISTS[page].read(request.POST.get("query", ""))
    responses.declare(request, LISTS[page].address(query), undone=undone)
    return query
