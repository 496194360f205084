"""The current revision. Over ASGI, `toolbelt.front.event_stream` continues the answer as a stream."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.kit import http, live
from toolbelt.web.live import forms


@require_GET
def stream(request: http.Request) -> HttpResponse:
    """Return the revision of one agent and the catalog, or of everything."""
    form = forms.Followed(request.GET)
    if not form.is_valid():
        raise errors.NotFound("agent", request.GET.get("agent", ""))
    revision = queries.revision(form.cleaned_data["agent"])
    answer = HttpResponse(live.event("once", revision), content_type=f"{live.MEDIA_TYPE}; charset=utf-8")
    # No proxy may buffer the events.
    answer.headers["X-Accel-Buffering"] = "no"
    answer.headers[live.USER] = str(request.user.pk)
    return answer
