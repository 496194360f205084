"""Comparing two agents, and copying what differs from one to the other."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.agents import copying
from toolbelt.control.people import rights
from toolbelt.core import errors
from toolbelt.web.compare import forms, view_model
from toolbelt.web.kit import filters, http, model_panel, notices, responses, words

# What the operators of single agents may change of them.
_OF_OPERATORS = ("switch",)


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show in what two sides differ."""
    filled = view_model.page(
        filters.read(forms.Comparison(request.GET)),
        path=request.path,
        may_copy=lambda agent: _may(request, agent),
    )
    return responses.show(request, filled, "compare/compare.html")


@require_POST
def copy(request: http.Request) -> HttpResponse:
    """Copy the rows that were ticked, after a confirmation that shows the effect."""
    only = _may(request, str(request.POST.get("b", "")))
    if only is None:
        raise PermissionDenied
    form = forms.Copying(request.POST)
    responses.declare(request, reverse("web:compare"), undone="Nothing was copied")
    given = form.checked()
    a, b, rows = given["a"], given["b"], given["row"]
    home = view_model.url(a, b)
    responses.declare(request, home, undone="Nothing was copied")
    if only and any(row.partition(":")[0] not in only for row in rows):
        raise PermissionDenied
    if not rows and given["what"] != "all":
        raise errors.Refused("Select a difference first.")
    if not given["confirm"]:
        plan = copying.plan(a, b, None if given["what"] == "all" else rows, only=only)
        return responses.ask_confirmation(request, view_model.question(plan, action=request.path, back=home))
    change = copying.copy(responses.write(request, given), a, b, rows, seen=given["seen"])
    notice = notices.Notice(
        text=f"{words.counted(len(rows), 'difference')} copied from {a} to {b}.",
        detail=model_panel.in_short(change.effect),
        undo=change.entry,
        whole=True,
    )
    return responses.respond(request, notice)


def _may(request: http.Request, agent: str) -> tuple[str, ...] | None:
    """Return which parts of this agent they may change: all (empty), some, or none at all (None)."""
    if request.user.has_perm(rights.FLIP):
        return ()
    return _OF_OPERATORS if rights.may_flip(request.user, agent) else None
