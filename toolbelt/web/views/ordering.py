"""Which of two neighbours stands first? A button changes the places of both, if they still stand as the page showed."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from toolbelt.control import ordering, rights
from toolbelt.core import errors
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering

# What has an order that these pages show, and where the list of it is.
_LISTS = {"loadout": "web:loadouts", "toolkit": "web:toolkits", "sub_app": "web:sub_apps"}


@require_POST
def swap(request: HttpRequest, kind: str) -> HttpResponse:
    """Let ``first`` stand where ``second`` stood, right behind it before."""
    # Also for kinds that there are not: who may not change them learns no more.
    if not request.user.has_perm(rights.to("change", kind if kind in _LISTS else "loadout")):
        raise PermissionDenied
    if kind not in _LISTS:
        raise Http404
    home = reverse(_LISTS[kind])
    first, second = request.POST.get("first", ""), request.POST.get("second", "")
    try:
        done = ordering.put(answering.actor(request), kind, [first, second], was=[second, first])
    except (errors.NotFound, errors.Refused, errors.Stale) as error:
        return answering.led_back(request, home, answers.Notice(text=str(error), tone="refused"), None)
    notice = answers.Notice(text=f"{first} stands before {second}.", undo=done.entry)
    return answering.led_back(request, home, notice, None)
