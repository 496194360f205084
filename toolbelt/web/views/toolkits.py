"""The toolkits: their list, one of them, and its emergency stop."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import holdings, rights
from toolbelt.core import errors
from toolbelt.web.forms import filters
from toolbelt.web.pages import toolkit as one
from toolbelt.web.pages import toolkits as pages
from toolbelt.web.presenters import answers, toolkits
from toolbelt.web.views import answering, stopping

STOP = rights.to("change", "toolkit")


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the list, or only its table to htmx."""
    in_place = answering.is_in_place(request)
    # That a toolkit is removed is told here, where its page led back to.
    notice = None if in_place else answering.kept(request)[0]
    page = pages.page(holdings.every(), filters.said(filters.Toolkits(request.GET)), request.path, notice)
    shown = {"page": page, "in_place": in_place}
    return render(request, "toolkits/_table.html" if in_place else "toolkits/list.html", shown)


@require_safe
def page(request: HttpRequest, toolkit: str) -> HttpResponse:
    """Show one toolkit; to htmx only what a model is told of it."""
    in_place = answering.is_in_place(request)
    filled = _filled(request, toolkit, None if in_place else answering.kept(request)[0])
    if in_place:
        return render(request, "toolkits/_told.html", {"told": filled.told})
    return render(request, "toolkits/toolkit.html", {"page": filled})


@require_POST
@permission_required(STOP, raise_exception=True)
def stop(request: HttpRequest, toolkit: str) -> HttpResponse:
    """Stop a toolkit for everyone, or lift the stop."""

    def in_place(notice: answers.Notice, status: int) -> HttpResponse:
        shown = {"page": _filled(request, toolkit, notice)}
        return render(request, "toolkits/_stopped.html", shown, status=status)

    home = reverse("web:toolkit", args=[toolkit])
    return stopping.stop(request, "toolkit", toolkit, home, in_place)


def _filled(request: HttpRequest, toolkit: str, notice: answers.Notice | None) -> toolkits.ToolkitPage:
    user = request.user
    home = reverse("web:toolkit", args=[toolkit])
    may_edit = user.is_staff and user.has_perm(STOP)
    admin = f"{reverse('admin:toolbelt_toolkit_changelist')}?{urlencode({'q': toolkit})}"
    try:
        return one.page(
            holdings.every(),
            toolkit,
            filters.said(filters.Trial(request.GET)),
            path=home,
            here=request.get_full_path() if request.method == "GET" else answering.back(request, home),
            admin_url=admin if may_edit else "",
            notice=notice,
            may_flip=rights.flippable(user),
            may_stop=user.has_perm(STOP),
            may_remove=user.has_perm(rights.to("delete", "toolkit")),
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
