"""The log of calls."""

from __future__ import annotations

import dataclasses
import json

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import usage
from toolbelt.web.calls import view_model
from toolbelt.web.kit import downloads, filters, http, pieces, responses, texts

_COLUMNS = tuple(field.name for field in dataclasses.fields(usage.Call))
_READING = responses.reading("call_record")


def _one(call: usage.Call, index: access_index.AccessIndex) -> pieces.View:
    """Return the _one."""
    agents = {access.agent.key for access in index.agents}
    shown = view_model.line(call, index.catalog.tools, agents, view_model.period_since(call.at))
    shown.error = texts.text(call.error) if call.error else None
    shown.plugin = texts.visible(call.plugin)
    shown.plugin_url = (
        reverse("web:plugin", args=[call.plugin]) if call.plugin in index.catalog.plugins else ""
    )
    shown.session = texts.visible(call.session)
    shown.request_id = texts.visible(call.request_id)
    shown.arguments = (
        None
        if call.arguments is None
        else texts.text(json.dumps(call.arguments, indent=2, ensure_ascii=False, sort_keys=True))
    )
    others = {"view": view_model.LOG, "agent": call.agent, "tool": call.tool}
    shown.others_url = f"{reverse('web:calls')}?{urlencode(others)}"
    return shown


@require_safe
@_READING
def listing(request: http.Request) -> HttpResponse:
    """Show the log with its totals; to htmx all but the filter.

    A page that shows the calls up to one of them (``newer``) only receives how many there are since.
    """
    narrowed = filters.read(view_model.Calls(request.GET))
    if "newer" in request.GET:
        news = view_model.news(narrowed, path=request.path, newest=narrowed["newer"] or 0)
        return render(request, "calls/_new_calls.html", {"news": news})
    page = view_model.page(narrowed, path=request.path, may_flip=rights.flip_check(request.user))
    page.views = view_model.VIEWS.present(request, narrowed)
    return responses.show(request, page, "calls/list.html", "calls/_calls.html")


@require_safe
@_READING
def page(request: http.Request, call: int) -> HttpResponse:
    """Show one call as it was recorded."""
    record = usage.find(call)
    if record is None:
        raise Http404(f"There is no call {call}.")
    return responses.show(request, _one(record, access_index.load()), "calls/call.html")


@require_safe
@_READING
def download(request: http.Request) -> HttpResponseBase:
    """Return all calls that the filters leave as a file, made while it is sent."""
    batches = usage.walk(**view_model.call_query(filters.read(view_model.Calls(request.GET))))
    rows = ([[getattr(call, name) for name in _COLUMNS] for call in calls] for calls in batches)
    return downloads.send(request, downloads.csv_lines(_COLUMNS, rows), "calls", "csv")
