"""Comparing two agents, and copying differences from one to the other."""

from __future__ import annotations

import functools

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.agents import copying
from toolbelt.control.people import rights
from toolbelt.core import errors
from toolbelt.web.compare import view_model
from toolbelt.web.kit import fields, filters, http, model_panel, notices, responses, words
from toolbelt.web.kit import forms as kit

# The parts that operators of single agents may change.
_OF_OPERATORS = ("switch",)


class Copying(kit.Change):
    """The rows to copy from one side to the other: the ticked rows, or all; ``seen`` is a digest of what was shown."""

    a = forms.CharField(max_length=200)
    b = forms.CharField(max_length=200)
    row = fields.Names(required=False)
    what = forms.CharField(required=False, max_length=10)
    seen = forms.CharField(required=False, max_length=64)


class Comparison(forms.Form):
    """The two sides of a comparison, and their times."""

    a = forms.CharField(required=False, max_length=200)
    b = forms.CharField(required=False, max_length=200)
    a_at = forms.DateTimeField(required=False)
    b_at = forms.DateTimeField(required=False)
    show = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the differences between two sides."""
    criteria = filters.read(Comparison(request.GET))
    view = view_model.Page(request, criteria, functools.partial(_copyable_parts, request))
    return responses.show(request, view, "compare/compare.html")


@require_POST
def copy(request: http.Request) -> HttpResponse:
    """Copy the selected rows, after a confirmation that shows the effect."""
    allowed = _copyable_parts(request, str(request.POST.get("b", "")))
    if allowed is None:
        raise PermissionDenied
    form = Copying(request.POST)
    responses.declare(request, reverse("web:compare"), refusal="Nothing was copied")
    data = form.checked()
    a, b, rows = data["a"], data["b"], data["row"]
    home = view_model.url(a, b)
    responses.declare(request, home, refusal="Nothing was copied")
    if allowed and any(row.partition(":")[0] not in allowed for row in rows):
        raise PermissionDenied
    if not rows and data["what"] != "all":
        raise errors.Refused("Select a difference first.")
    if not data["confirm"]:
        plan = copying.plan(a, b, None if data["what"] == "all" else rows, only=allowed)
        rows_shown = [("row", row.id) for row in plan.rows]
        return responses.ask(
            request,
            f"Copy {words.counted(len(plan.rows), 'difference')} to {plan.comparison.b.key}?",
            "Copy",
            plan.reasons,
            [("a", plan.comparison.a.name), ("b", plan.comparison.b.name), *rows_shown, ("seen", plan.seen)],
            home=home,
            effect=model_panel.effect(plan.effect),
            differences=tuple(view_model.changes(plan)),
            dangerous=bool(plan.reasons),
        )
    change = copying.copy(responses.write(request, data), a, b, rows, seen=data["seen"])
    notice = notices.Notice(
        text=f"{words.counted(len(rows), 'difference')} copied from {a} to {b}.",
        detail=model_panel.summarize(change.effect),
        undo=change.entry,
        whole=True,
    )
    return responses.respond(request, notice)


def _copyable_parts(request: http.Request, agent: str) -> tuple[str, ...] | None:
    """Return the parts of this agent that the user may change: all (empty), some, or none (None)."""
    if request.user.has_perm(rights.FLIP):
        return ()
    return _OF_OPERATORS if rights.may_flip(request.user, agent) else None
