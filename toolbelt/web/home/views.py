"""The first page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.home import view_model
from toolbelt.web.kit import http, responses


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show how things stand."""
    shown = view_model.page(
        here=request.path,
        notice=responses.pop_notice(request)[0],
        may_see_calls=rights.may_read(request.user, "call_record"),
        may_undo=rights.undo_check(request.user),
    )
    return render(request, "home/home.html", {"page": shown})
