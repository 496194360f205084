"""The views that the benchmark compares: a surface, and a bare response of the same bytes."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from toolbelt.runtime import surfaces

_stored = b""


@login_not_required
def surface(request: HttpRequest) -> HttpResponse:
    """Return the surface of the benchmark's agent."""
    return JsonResponse(
        surfaces.ask("ada", session="s", request_id="r", message=request.GET.get("message")).document()
    )


@csrf_exempt
@login_not_required
def keep(request: HttpRequest) -> HttpResponse:
    """Set the bytes that the bare view returns."""
    global _stored
    _stored = request.body
    return HttpResponse(status=204)


@login_not_required
def bare(request: HttpRequest) -> HttpResponse:
    """Return the stored bytes, to measure Django itself."""
    return HttpResponse(_stored, content_type="application/json")


urlpatterns = [
    path("surface", surface),
    path("keep", keep),
    path("bare", bare),
    path("", include("toolbelt.urls")),
]
