"""Which views does the bench compare with Toolbelt's own? A surface, and a bare answer of the same bytes."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from toolbelt.runtime import surfaces

_kept = b""


@login_not_required
def surface(request: HttpRequest) -> HttpResponse:
    """Answer with the surface of the bench's agent."""
    return JsonResponse(
        surfaces.ask("ada", session="s", request_id="r", message=request.GET.get("message")).document()
    )


@csrf_exempt
@login_not_required
def keep(request: HttpRequest) -> HttpResponse:
    """Keep the bytes that the bare view is to answer."""
    global _kept
    _kept = request.body
    return HttpResponse(status=204)


@login_not_required
def bare(request: HttpRequest) -> HttpResponse:
    """Answer with the kept bytes: what Django itself costs."""
    return HttpResponse(_kept, content_type="application/json")


urlpatterns = [
    path("surface", surface),
    path("keep", keep),
    path("bare", bare),
    path("", include("toolbelt.urls")),
]
