"""The tools: their list, one of them, and blocking it for everyone."""

from __future__ import annotations

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.web.access import views as access
from toolbelt.web.kit import fields, filters, http, pieces, responses, saved_views
from toolbelt.web.tools import detail, view_model

CHANGE = rights.permission("change", "tool")


class Tools(forms.Form):
    """What narrows and sorts the list of tools, and where in it to begin."""

    q = fields.Query()
    plugin = forms.CharField(required=False, max_length=64)
    state = forms.CharField(required=False, max_length=20)
    risk = forms.CharField(required=False, max_length=20)
    called = forms.ChoiceField(required=False, choices=[("no", "no")])
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


VIEWS = saved_views.FilteredList(
    page="tools", form=Tools, names=("q", "plugin", "risk", "state", "called", "sort")
)


class OneTool(filters.FindAgents):
    """Which agents the page of a tool shows: of those that have it, and of those that do not."""

    others_offset = fields.Offset()


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list, or only its table to htmx."""
    may_flip = rights.flip_check(request.user)
    narrowed = filters.read(Tools(request.GET))
    page = view_model.page(
        access_index.load(),
        narrowed,
        request.path,
        agents=[name for name in queries.agent_keys() if may_flip(name)],
        may_see_calls=rights.may_read(request.user, "call_record"),
    )
    page.views = VIEWS.present(request, narrowed)
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
    return access.block(request, "tool", tool, home, "tools/_blocked.html", lambda: _page(request, tool))


def _page(request: http.Request, tool: str) -> pieces.View:
    return detail.page(
        access_index.load(),
        tool,
        filters.read(OneTool(request.GET)),
        path=reverse("web:tool", args=[tool]),
        may_see_calls=rights.may_read(request.user, "call_record"),
    )
