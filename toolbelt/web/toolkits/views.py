"""The toolkits: their list, one of them, and its emergency stop."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.web.access import blocking
from toolbelt.web.kit import filters, http, notices, pieces, responses
from toolbelt.web.toolkits import detail, forms, view_model

STOP = rights.permission("change", "toolkit")


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list, or only its table to htmx."""
    in_place = request.htmx
    # That a toolkit is removed is told here, where its page led back to.
    notice = None if in_place else responses.pop_notice(request)[0]
    page = view_model.page(
        access_index.load(), filters.read(forms.Toolkits(request.GET)), request.path, notice
    )
    shown = {"page": page, "in_place": in_place}
    return render(request, "toolkits/_table.html" if in_place else "toolkits/list.html", shown)


@require_safe
def page(request: http.Request, toolkit: str) -> HttpResponse:
    """Show one toolkit; to htmx only what a model is told of it."""
    in_place = request.htmx
    filled = _filled(request, toolkit, None if in_place else responses.pop_notice(request)[0])
    if in_place:
        return render(request, "toolkits/_told.html", {"told": filled.told})
    return render(request, "toolkits/toolkit.html", {"page": filled})


@require_POST
@permission_required(STOP, raise_exception=True)
def stop(request: http.Request, toolkit: str) -> HttpResponse:
    """Stop a toolkit for everyone, or lift the stop."""

    def in_place(notice: notices.Notice, status: int) -> HttpResponse:
        shown = {"page": _filled(request, toolkit, notice)}
        return render(request, "toolkits/_stopped.html", shown, status=status)

    home = reverse("web:toolkit", args=[toolkit])
    return blocking.stop(request, "toolkit", toolkit, home, in_place)


def _filled(request: http.Request, toolkit: str, notice: notices.Notice | None) -> pieces.View:
    user = request.user
    home = reverse("web:toolkit", args=[toolkit])
    may_edit = user.is_staff and user.has_perm(STOP)
    admin = f"{reverse('admin:toolbelt_toolkit_changelist')}?{urlencode({'q': toolkit})}"
    return detail.page(
        access_index.load(),
        toolkit,
        filters.read(forms.Trial(request.GET)),
        path=home,
        here=responses.here(request, home),
        admin_url=admin if may_edit else "",
        notice=notice,
        may_flip=rights.flip_check(user),
        may_stop=user.has_perm(STOP),
        may_remove=user.has_perm(rights.permission("delete", "toolkit")),
    )
