"""The current revision. Over ASGI, `toolbelt.front.event_stream` continues the answer as a stream."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.kit import http, live


@require_GET
def stream(request: http.Request) -> HttpResponse:
    """Return the revision of one agent and the catalog, or of everything."""
    agent = request.GET.get("agent", "")
    if "\0" in agent:
        # PostgreSQL cannot even be asked for that.
        raise errors.NotFound("agent", agent)
    revision = queries.revision(agent)
    answer = HttpResponse(live.event("once", revision), content_type=f"{live.MEDIA_TYPE}; charset=utf-8")
    # No proxy may buffer the events.
    answer.headers["X-Accel-Buffering"] = "no"
    answer.headers[live.USER] = str(request.user.pk)
    return answer
