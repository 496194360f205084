"""The first page."""

from __future__ import annotations

import functools

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.home import view_model
from toolbelt.web.kit import audit_words, http, responses


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show how things stand."""
    user = request.user
    may_undo = rights.undo_check(user)
    shown = view_model.page(
        may_see_calls=rights.may_read(user, "call_record"),
        may_see=functools.partial(rights.may_read, user),
        may_undo=lambda entry: audit_words.is_quickly_undone(user, entry) and may_undo(entry),
    )
    return responses.show(request, shown, "home/home.html")
