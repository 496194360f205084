"""The log of calls."""

from __future__ import annotations

import dataclasses

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
_READING = responses.reading("call_record")


@require_safe
@_READING
def listing(request: http.Request) -> HttpResponse:
    """Show the log with its totals; to htmx all but the filter.

    A page that shows the calls up to one of them (``newer``) only receives how many there are since.
    """
    narrowed = filters.read(forms.Calls(request.GET))
    if "newer" in request.GET:
        news = view_model.news(narrowed, path=request.path, newest=narrowed["newer"] or 0)
        return render(request, "calls/_new_calls.html", {"news": news})
    page = view_model.page(narrowed, path=request.path, may_flip=rights.flip_check(request.user))
    page.views = forms.VIEWS.present(request, narrowed)
    return responses.show(request, page, "calls/list.html", "calls/_calls.html")


@require_safe
@_READING
def page(request: http.Request, call: int) -> HttpResponse:
    """Show one call as it was recorded."""
    record = usage.find(call)
    if record is None:
        raise Http404(f"There is no call {call}.")
    return responses.show(request, detail.page(record, access_index.load()), "calls/call.html")


@require_safe
@_READING
def download(request: http.Request) -> HttpResponseBase:
    """Return all calls that the filters leave as a file, made while it is sent."""
    batches = usage.walk(**view_model.call_query(filters.read(forms.Calls(request.GET))))
    rows = ([[getattr(call, name) for name in _COLUMNS] for call in calls] for calls in batches)
    return downloads.send(request, downloads.csv_lines(_COLUMNS, rows), "calls", "csv")
