"""The tools: their list, one of them, and its emergency stop."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.web.access import blocking
from toolbelt.web.kit import filters, http, notices, pieces, responses
from toolbelt.web.tools import detail, forms, view_model

STOP = rights.permission("change", "tool")


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list, or only its table to htmx."""
    in_place = request.htmx
    may_flip = rights.flip_check(request.user)
    page = view_model.page(
        access_index.catalog_view(),
        filters.read(forms.Tools(request.GET)),
        request.path,
        agents=[name for name in queries.agent_keys() if may_flip(name)],
        notice=None if in_place else responses.pop_notice(request)[0],
    )
    shown = {"page": page, "in_place": in_place}
    return render(request, "tools/_table.html" if in_place else "tools/list.html", shown)


@require_safe
def page(request: http.Request, tool: str) -> HttpResponse:
    """Show one tool."""
    filled = _filled(request, tool, responses.pop_notice(request)[0])
    return render(request, "tools/tool.html", {"page": filled})


@require_POST
@permission_required(STOP, raise_exception=True)
def stop(request: http.Request, tool: str) -> HttpResponse:
    """Stop a tool for everyone, or lift the stop."""

    def in_place(notice: notices.Notice, status: int) -> HttpResponse:
        return render(request, "tools/_stopped.html", {"page": _filled(request, tool, notice)}, status=status)

    return blocking.stop(request, "tool", tool, reverse("web:tool", args=[tool]), in_place)


def _filled(request: http.Request, tool: str, notice: notices.Notice | None) -> pieces.View:
    user = request.user
    home = reverse("web:tool", args=[tool])
    may_edit = user.is_staff and user.has_perm(STOP)
    admin = f"{reverse('admin:toolbelt_tool_changelist')}?{urlencode({'q': tool})}"
    return detail.page(
        access_index.load(),
        tool,
        filters.read(forms.OneTool(request.GET)),
        path=home,
        here=responses.here(request, home),
        admin_url=admin if may_edit else "",
        notice=notice,
        may_see_calls=rights.may_read(user, "call_record"),
        may_stop=user.has_perm(STOP),
    )
