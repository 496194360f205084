"""The review: one page for everything that awaits an operator, and the decisions on tools."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
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
from toolbelt.web.kit import (
    fields,
    filters,
    http,
    model_panel,
    notices,
    paging,
    pieces,
    responses,
    texts,
    words,
)
from toolbelt.web.kit import forms as kit
from toolbelt.web.review import changes, concerns

APPROVE = rights.permission("change", "tool")
# What says a tool's name, and would say the new one.
_CARRY = [rights.permission("change", kind) for kind in ("agent", "toolkit", "loadout", "sub_app")]
# On one page; the others follow when these are decided.
MAX_AT_ONCE = 50
# How many findings and agents the question before an approval lists.
MAX_DOUBTS, MAX_AGENTS = 12, 100


class Filter(forms.Form):
    """The plugin whose tools are shown, and the offset in the other concerns."""

    plugin = forms.CharField(required=False, max_length=200)
    offset = fields.Offset()


class Decision(kit.Change):
    """A decision on tools: those that are selected, all ``unflagged`` that the page showed, or the one that
    the button of a row names (``approve:files__read=sha256:…``).
    """

    decision = forms.CharField(max_length=400)
    # With the version that the page showed of each (files__read=sha256:…), whether it is still that one or not.
    tool = fields.Names("[^=]+=.+", required=False)
    unflagged = fields.Names("[^=]+=.+", required=False)
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
    shown = _page(_review(request, narrowed["plugin"]), narrowed)
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
            inbox.check_hashes(shown)
            doubts = inbox.warnings(shown)
            gains = inbox.new_access(shown) if doubts or len(shown) > 1 else ()
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


def _review(request: http.Request, plugin: str, moved: str = "") -> pieces.View:
    """Return the tools to review; ``moved`` is a tool whose version changed while the page was open."""
    ticked = {value.partition("=")[0] for value in request.POST.getlist("tool")} - {moved}
    loaded = inbox.load(plugin, maximum=MAX_AT_ONCE, first=moved)
    shown = loaded.changes
    return pieces.View(
        changes=tuple(
            changes.change(change, ticked=change.key in ticked, moved=change.key == moved) for change in shown
        ),
        waiting=words.tools(loaded.to_review),
        later=loaded.to_review - len(shown),
        unflagged=sum(not change.flags for change in shown),
        flagged=loaded.flagged,
        renamed=any(change.previous for change in shown),
        plugin=plugin,
        plugins=_plugins(loaded.by_plugin, plugin),
        may_carry=request.user.has_perms(_CARRY),
    )


def _page(reviewed: pieces.View, given: Mapping[str, Any]) -> pieces.View:
    """Return the whole page: the review, and a part of what else needs attention."""
    every = concerns.others(attention.load())
    part = paging.part(every, given["offset"])
    return pieces.View(
        review=reviewed,
        concerns=[present() for present in part.items],
        others=len(every),
        pages=part.pages(given, reverse("web:review"), anchor="#attention"),
    )


def _shown(
    request: http.Request, notice: notices.Notice, change: effects.Effect | None, status: int, moved: str = ""
) -> HttpResponse:
    """Show the remaining tools to review, with the other selections: the part of it for htmx, or the whole page."""
    plugin = request.POST.get("plugin", "")
    review = _review(request, plugin, moved)
    if request.htmx:
        shown = {"page": pieces.View(review=review, notice=notice)}
        return render(request, "review/_decided.html", shown, status=status)
    narrowed = filters.read(Filter({"plugin": plugin}))
    page = _page(review, narrowed)
    page.notice = notice
    return responses.show(request, page, "review/review.html", status=status)


def _declare(request: http.Request) -> None:
    """Declare that a decision is answered with the remaining tools to review."""
    plugin = request.POST.get("plugin", "")
    home = reverse("web:review") + (f"?{urlencode({'plugin': plugin})}" if plugin else "")
    responses.declare(request, home, parts=functools.partial(_shown, request), undone="Nothing was decided")


def _decided(request: http.Request, text: str, *, detail: str = "", keys: Sequence[str]) -> HttpResponse:
    undo = inbox.last_change(keys[-1]) if keys else None
    notice = notices.Notice(text=text, detail=detail, undo=undo, whole=undo is not None)
    return responses.respond(request, notice)


def _moved(request: http.Request, stale: errors.Stale) -> HttpResponse:
    """Show the changed version of a tool first; keep the other selections."""
    gone = stale.now == "retired"
    became = "is no longer offered" if gone else "changed in the meantime: the new version is listed first"
    notice = notices.Notice(text=f"Nothing was decided: {stale.key} {became}.", tone="refused")
    return _shown(request, notice, None, 409, moved=stale.key)


def _ask(
    request: http.Request,
    shown: Mapping[str, str],
    doubts: Sequence[tuple[str, str]],
    gains: Sequence[inbox.NewAccess],
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
        _cautions(doubts, gains),
        [(name, value) for name in names for value in request.POST.getlist(name)],
        home=request.answers.home,
        facts=(available,) if offered else (),
        effect=pieces.Effect.of([gain.effect for gain in getting]) if getting else None,
        differences=tuple(model_panel.difference(gain.agent, gain.effect) for gain in getting[:MAX_AGENTS]),
        dangerous=bool(doubts) or any(gain.destructive for gain in gains),
    )


def _named(keys: Sequence[str]) -> str:
    if not keys:
        return "No tools were"
    return keys[0] if len(keys) == 1 else words.tools(len(keys))


def _cautions(doubts: Sequence[tuple[str, str]], gains: Sequence[inbox.NewAccess]) -> Iterator[str]:
    """Return the warnings before an approval: findings, and destructive tools that agents get."""
    if doubts:
        yield "Approving a tool sends its texts to every model that gets it. Check these findings first."
        yield from (f"{key}: {texts.visible(flag)}" for key, flag in doubts[:MAX_DOUBTS])
        if len(doubts) > MAX_DOUBTS:
            yield f"And {len(doubts) - MAX_DOUBTS} more."
    destructive = {key for gain in gains for key in gain.destructive}
    if destructive:
        agents = [gain.agent for gain in gains if gain.destructive]
        yield f"Enables {words.tools(len(destructive))} that may be destructive, for {words.listing(agents)}."
    if exceeding := [gain.agent for gain in gains if gain.exceeds_budget]:
        verb = "is" if len(exceeding) == 1 else "are"
        yield f"{words.listing(exceeding)} {verb} over budget afterwards."


def _plugins(by_plugin: Mapping[str, int], chosen: str) -> tuple[pieces.Choice, ...]:
    """Return the plugins to choose from; none, if there is nothing to choose."""
    if len(by_plugin) < 2 and (not chosen or chosen in by_plugin):
        return ()
    labels = {"": "All plugins"} | {name: texts.visible(name) for name in by_plugin}
    return pieces.choices(labels, chosen, counts={"": sum(by_plugin.values())} | dict(by_plugin))
