"""The log of calls."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.calls import forms, view_model
from toolbelt.web.kit import filters, http, responses


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the log with its totals; to htmx all but the filter.

    A page that shows the calls up to one of them (``newer``) only receives how many there are since.
    """
    if not rights.may_read(request.user, "call_record"):
        raise PermissionDenied
    narrowed = filters.read(forms.Calls(request.GET))
    if "newer" in request.GET:
        news = view_model.news(narrowed, path=request.path, newest=narrowed["newer"] or 0)
        return render(request, "calls/_news.html", {"news": news})
    page = view_model.page(narrowed, path=request.path, may_flip=rights.flip_check(request.user))
    return responses.show(request, page, "calls/list.html", "calls/_calls.html")
