"""Swapping two neighbors of a list, if both are still in the order that the page showed."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from toolbelt.control.catalog import ordering
from toolbelt.control.people import rights
from toolbelt.web.kit import http, notices, responses

# The kinds of entries with an order, and the page of each.
_LISTS = {"loadout": "web:loadouts", "toolkit": "web:toolkits", "sub_app": "web:sub_apps"}


@require_POST
def swap(request: http.Request, kind: str) -> HttpResponse:
    """Swap ``first`` with ``second``, which is directly before it."""
    # For unknown kinds too, so that users without the permission get the same response.
    if not request.user.has_perm(rights.permission("change", kind if kind in _LISTS else "loadout")):
        raise PermissionDenied
    if kind not in _LISTS:
        raise Http404
    responses.declare(request, reverse(_LISTS[kind]))
    first, second = request.POST.get("first", ""), request.POST.get("second", "")
    change = ordering.set_order(responses.write(request), kind, [first, second], was=[second, first])
    text = f"{first} moved before {second}."
    return responses.respond(request, notices.Notice(text=text, undo=change.entry))
