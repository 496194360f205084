"""The tools: their list, one of them, and blocking it for everyone."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.web.access import blocking
from toolbelt.web.kit import filters, http, pieces, responses
from toolbelt.web.tools import detail, forms, view_model

CHANGE = rights.permission("change", "tool")


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list, or only its table to htmx."""
    may_flip = rights.flip_check(request.user)
    narrowed = filters.read(forms.Tools(request.GET))
    page = view_model.page(
        access_index.load(),
        narrowed,
        request.path,
        agents=[name for name in queries.agent_keys() if may_flip(name)],
        may_see_calls=rights.may_read(request.user, "call_record"),
    )
    page.views = forms.VIEWS.present(request, narrowed)
    return responses.show(request, page, "tools/list.html", "tools/_table.html")


@require_safe
def page(request: http.Request, tool: str) -> HttpResponse:
    """Show one tool."""
    return responses.show(request, _page(request, tool), "tools/tool.html")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def block(request: http.Request, tool: str) -> HttpResponse:
    """Block a tool for everyone, or unblock it."""
    home = reverse("web:tool", args=[tool])
    return blocking.respond(request, "tool", tool, home, "tools/_blocked.html", lambda: _page(request, tool))


def _page(request: http.Request, tool: str) -> pieces.View:
    return detail.page(
        access_index.load(),
        tool,
        filters.read(forms.OneTool(request.GET)),
        path=reverse("web:tool", args=[tool]),
        may_see_calls=rights.may_read(request.user, "call_record"),
    )
