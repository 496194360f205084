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
    """Show the log with what it adds up to, for those who may see it; to htmx all but the filter.

    A page that shows the calls up to one of them (``newer``) is told only how many there are behind it.
    """
    if not rights.may_read(request.user, "call_record"):
        raise PermissionDenied
    said = filters.read(forms.Calls(request.GET))
    if "newer" in request.GET:
        news = view_model.news(said, path=request.path, newest=said["newer"] or 0)
        return render(request, "calls/_news.html", {"news": news})
    in_place = request.htmx
    page = view_model.page(
        said,
        path=request.path,
        here=request.get_full_path(),
        may_flip=rights.flip_check(request.user),
    )
    notice = None if in_place else responses.pop_notice(request)[0]
    shown = {"page": page, "in_place": in_place, "notice": notice}
    return render(request, "calls/_calls.html" if in_place else "calls/list.html", shown)
