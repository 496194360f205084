"""The toolkits: their list, one of them, and blocking it for everyone."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.web.access import blocking
from toolbelt.web.kit import filters, http, pieces, responses
from toolbelt.web.toolkits import detail, forms, view_model

CHANGE = rights.permission("change", "toolkit")


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list, or only its table to htmx."""
    narrowed = filters.read(forms.Toolkits(request.GET))
    page = view_model.page(access_index.load(), narrowed, request.path)
    page.views = forms.VIEWS.present(request, narrowed)
    return responses.show(request, page, "toolkits/list.html", "toolkits/_table.html")


@require_safe
def page(request: http.Request, toolkit: str) -> HttpResponse:
    """Show one toolkit; to htmx only what the model receives of it."""
    return responses.show(request, _page(request, toolkit), "toolkits/toolkit.html", "toolkits/_preview.html")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def block(request: http.Request, toolkit: str) -> HttpResponse:
    """Block a toolkit for everyone, or unblock it."""
    home = reverse("web:toolkit", args=[toolkit])
    part = "toolkits/_blocked.html"
    return blocking.respond(request, "toolkit", toolkit, home, part, lambda: _page(request, toolkit))


def _page(request: http.Request, toolkit: str) -> pieces.View:
    user = request.user
    return detail.page(
        access_index.load(),
        toolkit,
        filters.read(forms.Trial(request.GET)),
        path=reverse("web:toolkit", args=[toolkit]),
        may_flip=rights.flip_check(user),
        may_edit=user.has_perm(CHANGE),
    )
