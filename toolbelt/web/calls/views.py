"""The log of calls."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import usage
from toolbelt.web.calls import detail, forms, view_model
from toolbelt.web.kit import downloads, filters, http, responses

_COLUMNS = tuple(field.name for field in dataclasses.fields(usage.Call))
_View = Callable[..., HttpResponseBase]


def _reading(view: _View) -> _View:
    """Return a view for users who may read the log of calls; others get 403."""

    @functools.wraps(view)
    def guarded(request: http.Request, *args: Any, **address: Any) -> HttpResponseBase:
        if not rights.may_read(request.user, "call_record"):
            raise PermissionDenied
        return view(request, *args, **address)

    return guarded


@require_safe
@_reading
def listing(request: http.Request) -> HttpResponse:
    """Show the log with its totals; to htmx all but the filter.

    A page that shows the calls up to one of them (``newer``) only receives how many there are since.
    """
    narrowed = filters.read(forms.Calls(request.GET))
    if "newer" in request.GET:
        news = view_model.news(narrowed, path=request.path, newest=narrowed["newer"] or 0)
        return render(request, "calls/_news.html", {"news": news})
    page = view_model.page(narrowed, path=request.path, may_flip=rights.flip_check(request.user))
    return responses.show(request, page, "calls/list.html", "calls/_calls.html")


@require_safe
@_reading
def page(request: http.Request, call: int) -> HttpResponse:
    """Show one call as it was recorded."""
    record = usage.find(call)
    if record is None:
        raise Http404(f"There is no call {call}.")
    return responses.show(request, detail.page(record, access_index.load()), "calls/call.html")


@require_safe
@_reading
def download(request: http.Request) -> HttpResponseBase:
    """Return all calls that the filters leave as a file, made while it is sent."""
    batches = usage.walk(**view_model.asked(filters.read(forms.Calls(request.GET))))
    rows = ([[getattr(call, name) for name in _COLUMNS] for call in calls] for calls in batches)
    return downloads.send(request, downloads.csv_lines(_COLUMNS, rows), "calls", "csv")
