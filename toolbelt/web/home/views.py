"""The first page."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.home import view_model
from toolbelt.web.kit import http, responses


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show how things stand."""
    user = request.user
    shown = view_model.page(
        may_see_calls=rights.may_read(user, "call_record"), may_undo=rights.undo_check(user)
    )
    shown.may_add = user.has_perm("toolbelt.add_agent")
    shown.permissions = user.get_all_permissions()
    return responses.show(request, shown, "home/home.html")
