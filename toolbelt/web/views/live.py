"""Which revision is it by now? Said once; over ASGI, the answer goes on from there (`toolbelt.front.live`)."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from toolbelt.control import queries
from toolbelt.core import errors
from toolbelt.web import live
from toolbelt.web.forms import filters


@require_GET
def stream(request: HttpRequest) -> HttpResponse:
    """Say it of one agent and the catalog, or of everything."""
    form = filters.Followed(request.GET)
    if not form.is_valid():
        raise Http404("No agent is called so.")
    try:
        revision = queries.revision(form.cleaned_data["agent"])
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    answer = HttpResponse(live.event("once", revision), content_type=f"{live.MEDIA_TYPE}; charset=utf-8")
    # So that no proxy keeps what is said now until there is more of it.
    answer.headers["X-Accel-Buffering"] = "no"
    answer.headers[live.USER] = str(request.user.pk)
    return answer
