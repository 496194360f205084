"""Comparing two agents, and copying what differs from one to the other."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import copying, rights
from toolbelt.core import errors
from toolbelt.web.forms import edits, filters
from toolbelt.web.pages import compare, model
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering

# What the operators of single agents may change of them.
_OF_OPERATORS = ("switch",)


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show in what two sides differ."""
    filled = compare.page(
        filters.said(filters.Comparison(request.GET)),
        path=request.path,
        here=request.get_full_path(),
        notice=answering.kept(request)[0],
        may_copy=lambda agent: _may(request, agent),
    )
    return render(request, "compare/compare.html", {"page": filled})


@require_POST
def copy(request: HttpRequest) -> HttpResponse:
    """Copy the rows that were ticked: first with the question what comes of it, then with its answer."""
    only = _may(request, str(request.POST.get("b", "")))
    if only is None:
        raise PermissionDenied
    form = edits.Copying(request.POST)
    if not form.is_valid():
        raise Http404(f"There are no such rows to copy: {form.problems()}")
    said = form.cleaned_data
    a, b, rows = said["a"], said["b"], said["row"]
    home = compare.url(a, b)
    if only and any(row.partition(":")[0] not in only for row in rows):
        raise PermissionDenied
    if not rows and said["what"] != "all":
        return _led(request, home, answers.Notice(text="Nothing copied: tick a row first.", tone="refused"))
    try:
        if not said["confirm"]:
            plan = copying.plan(a, b, None if said["what"] == "all" else rows, only=only)
            return answering.asked(request, compare.question(plan, action=request.path, back=home))
        change = copying.copy(answering.actor(request), a, b, rows, seen=said["seen"], reason=said["reason"])
    except errors.ToolbeltError as error:
        return _led(request, home, answers.Notice(text=f"Nothing copied. {error}", tone="refused"))
    notice = answers.Notice(
        text=f"{b} got {len(rows)} {'row' if len(rows) == 1 else 'rows'} of {a}.",
        detail=model.in_short(change.effect),
        undo=change.entry,
        whole=True,
    )
    return _led(request, home, notice)


def _may(request: HttpRequest, agent: str) -> tuple[str, ...] | None:
    """Say which parts of this agent they may change: all (empty), some, or none at all (None)."""
    if request.user.has_perm(rights.FLIP):
        return ()
    return _OF_OPERATORS if rights.may_flip(request.user, agent) else None


def _led(request: HttpRequest, home: str, notice: answers.Notice) -> HttpResponse:
    """Lead back to the comparison, which is another one by now."""
    if not answering.is_in_place(request):
        return answering.led_back(request, home, notice, None)
    answering.keep(request, notice)
    return HttpResponse(status=204, headers={"HX-Redirect": home})
