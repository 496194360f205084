"""The first page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control import rights
from toolbelt.web.pages import home
from toolbelt.web.views import answering


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show how things stand."""
    shown = home.page(
        here=request.path,
        notice=answering.kept(request)[0],
        may_see_calls=rights.may_read(request.user, "call_record"),
        may_undo=rights.undoable(request.user),
    )
    return render(request, "home/home.html", {"page": shown})
