"""The tools: their list, one of them, and its emergency stop."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import holdings, queries, rights
from toolbelt.core import errors
from toolbelt.web.forms import filters
from toolbelt.web.pages import tool as one
from toolbelt.web.pages import tools as pages
from toolbelt.web.presenters import answers, tools
from toolbelt.web.views import answering, stopping

STOP = rights.to("change", "tool")


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the list, or only its table to htmx."""
    in_place = answering.is_in_place(request)
    may_flip = rights.flippable(request.user)
    page = pages.page(
        holdings.shelf(),
        filters.said(filters.Tools(request.GET)),
        request.path,
        agents=[name for name in queries.agent_keys() if may_flip(name)],
        notice=None if in_place else answering.kept(request)[0],
    )
    shown = {"page": page, "in_place": in_place}
    return render(request, "tools/_table.html" if in_place else "tools/list.html", shown)


@require_safe
def page(request: HttpRequest, tool: str) -> HttpResponse:
    """Show one tool."""
    filled = _filled(request, tool, answering.kept(request)[0])
    return render(request, "tools/tool.html", {"page": filled})


@require_POST
@permission_required(STOP, raise_exception=True)
def stop(request: HttpRequest, tool: str) -> HttpResponse:
    """Stop a tool for everyone, or lift the stop."""

    def in_place(notice: answers.Notice, status: int) -> HttpResponse:
        return render(request, "tools/_stopped.html", {"page": _filled(request, tool, notice)}, status=status)

    return stopping.stop(request, "tool", tool, reverse("web:tool", args=[tool]), in_place)


def _filled(request: HttpRequest, tool: str, notice: answers.Notice | None) -> tools.ToolPage:
    user = request.user
    home = reverse("web:tool", args=[tool])
    may_edit = user.is_staff and user.has_perm(STOP)
    admin = f"{reverse('admin:toolbelt_tool_changelist')}?{urlencode({'q': tool})}"
    try:
        return one.page(
            holdings.every(),
            tool,
            filters.said(filters.OneTool(request.GET)),
            path=home,
            here=request.get_full_path() if request.method == "GET" else answering.back(request, home),
            admin_url=admin if may_edit else "",
            notice=notice,
            may_see_calls=rights.may_read(user, "call_record"),
            may_stop=user.has_perm(STOP),
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
