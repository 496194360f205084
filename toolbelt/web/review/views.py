"""The review: one page for everything that waits for an operator, and the decisions on tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights
from toolbelt.control.reports import attention
from toolbelt.control.servers import inbox
from toolbelt.core import effects, errors
from toolbelt.web.kit import fields, filters, http, model_panel, notices, pieces, responses, words
from toolbelt.web.kit import forms as kit
from toolbelt.web.review import view_model

APPROVE = rights.permission("change", "tool")
# What says a tool's name, and would say the new one.
_CARRY = [rights.permission("change", kind) for kind in ("agent", "toolkit", "loadout", "sub_app")]


class Filter(forms.Form):
    """Which plugin's tools are shown, and where in the list of what else needs attention to begin."""

    plugin = forms.CharField(required=False, max_length=200)
    offset = fields.Offset()


class Versions(forms.MultipleChoiceField):
    """Tools with the version that a page showed of each: ``files__read=sha256:…``, once or more."""

    def valid_value(self, value: str) -> bool:
        """Return whether it is a tool with a version; whether it is still that one is not asked here."""
        tool, _, version = value.partition("=")
        return bool(tool) and bool(version)


class Decision(kit.Change):
    """What was decided of which tools: those that are selected, all ``unflagged`` that the page showed, or the one that
    the button of a row names (``approve:files__read=sha256:…``).
    """

    decision = forms.CharField(max_length=400)
    tool = Versions(required=False)
    unflagged = Versions(required=False)
    carry = forms.BooleanField(required=False)
    plugin = forms.CharField(required=False, max_length=200)

    def clean(self) -> dict[str, Any]:
        """Read which button was pressed, and what it decides on."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        verb, _, one = given.get("decision", "").partition(":")
        values = given.get("unflagged" if verb == "approve-unflagged" else "tool", [])
        if verb not in ("approve", "approve-unflagged", "reject") or (one and "=" not in one):
            raise forms.ValidationError("Select Approve or Reject.")
        pairs = (value.partition("=") for value in ([one] if one else values))
        return given | {
            "is_approval": verb != "reject",
            "shown": {tool: version for tool, _, version in pairs},
        }


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    narrowed = filters.read(Filter(request.GET))
    review = _review(request, plugin=narrowed["plugin"])
    shown = view_model.page(review, attention.load(), narrowed, path=request.path)
    return responses.show(request, shown, "review/review.html")


@require_POST
@permission_required(APPROVE, raise_exception=True)
def decide(request: http.Request) -> HttpResponse:
    """Approve tools as they were shown, or reject them; asked again where they have findings."""
    _declare(request)
    given = Decision(request.POST).checked()
    shown, write = given["shown"], responses.write(request, given)
    if not shown:
        raise errors.Refused("Select the tools first.")
    try:
        if not given["is_approval"]:
            keys = inbox.reject(write, shown)
            return _decided(request, f"{_named(keys)} rejected: blocked for everyone.", keys=keys)
        if not given["confirm"]:
            doubts = inbox.warnings(shown)
            gains = inbox.gains(shown) if doubts or len(shown) > 1 else ()
            if doubts or gains:
                return _ask(request, shown, doubts, gains)
        carry = given["carry"] and request.user.has_perms(_CARRY)
        done = inbox.approve(write, shown, carry_over=carry)
    except errors.Stale as stale:
        return _moved(request, stale)
    carried = f" {words.tools(len(done.carried))} kept the settings of the old name." if done.carried else ""
    problems = " ".join(str(problem) for problem in done.problems)
    detail = f"Applies from the next request.{carried} {problems}".strip()
    return _decided(request, f"{_named(done.keys)} approved.", detail=detail, keys=done.keys)


def _review(request: http.Request, *, plugin: str, moved: str = "") -> pieces.View:
    ticked = {value.partition("=")[0] for value in request.POST.getlist("tool")}
    return view_model.review(
        inbox.load(plugin, maximum=view_model.MAX_AT_ONCE, first=moved),
        plugin=plugin,
        ticked=ticked - {moved},
        moved=moved,
        may_carry=request.user.has_perms(_CARRY),
    )


def _shown(request: http.Request, notice: notices.Notice, status: int, moved: str = "") -> HttpResponse:
    """Show what is left to decide on, with what else was selected: the part of it for htmx, or the whole page."""
    plugin = request.POST.get("plugin", "")
    review = _review(request, plugin=plugin, moved=moved)
    if request.htmx:
        shown = {"page": pieces.View(review=review, notice=notice)}
        return render(request, "review/_decided.html", shown, status=status)
    narrowed = filters.read(Filter({"plugin": plugin}))
    page = view_model.page(review, attention.load(), narrowed, path=reverse("web:review"))
    page.notice = notice
    return responses.show(request, page, "review/review.html", status=status)


def _declare(request: http.Request) -> None:
    """Declare that a decision is answered with what is left to decide on."""

    def parts(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        return _shown(request, notice, status)

    plugin = request.POST.get("plugin", "")
    home = reverse("web:review") + (f"?{urlencode({'plugin': plugin})}" if plugin else "")
    responses.declare(request, home, parts=parts, undone="Nothing was decided")


def _decided(request: http.Request, text: str, *, detail: str = "", keys: Sequence[str]) -> HttpResponse:
    undo = inbox.last_change(keys[-1]) if keys else None
    notice = notices.Notice(text=text, detail=detail, undo=undo, whole=undo is not None)
    return responses.respond(request, notice)


def _moved(request: http.Request, stale: errors.Stale) -> HttpResponse:
    """Show a tool first that is another one by now; what else was ticked stays so."""
    gone = stale.now == "retired"
    became = "is no longer offered" if gone else "changed in the meantime: the new version is listed first"
    notice = notices.Notice(text=f"Nothing was decided: {stale.key} {became}.", tone="refused")
    return _shown(request, notice, 409, moved=stale.key)


def _ask(
    request: http.Request,
    shown: Mapping[str, str],
    doubts: Sequence[tuple[str, str]],
    gains: Sequence[inbox.Gain],
) -> HttpResponse:
    """Ask whether to approve tools: because they have findings, or with which agents get several of them."""
    names = ("decision", "tool", "unflagged", "carry", "plugin")
    name = next(iter(shown)) if len(shown) == 1 else words.tools(len(shown))
    getting = [gain for gain in gains if gain.on]
    offered = [gain.agent for gain in gains if gain.on_request]
    available = f"Available on request to {words.counted(len(offered), 'agent')}: {words.listing(offered)}."
    return responses.ask(
        request,
        f"Approve {name}?",
        "Approve anyway" if doubts else f"Approve {name}",
        view_model.cautions(doubts, gains),
        [(name, value) for name in names for value in request.POST.getlist(name)],
        home=request.answers.home,
        facts=(available,) if offered else (),
        effect=pieces.Effect.of([gain.effect for gain in getting]) if getting else None,
        differences=tuple(
            model_panel.difference(gain.agent, gain.effect) for gain in getting[: view_model.MAX_AGENTS]
        ),
        dangerous=bool(doubts) or any(gain.destructive for gain in gains),
    )


def _named(keys: Sequence[str]) -> str:
    if not keys:
        return "No tools were"
    return keys[0] if len(keys) == 1 else words.tools(len(keys))
