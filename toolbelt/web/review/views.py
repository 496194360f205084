"""The review: one page for everything that awaits an operator, and the decisions on tools."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights
from toolbelt.control.reports import attention, error_spikes
from toolbelt.control.servers import approvals, decisions, inbox, instructions
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
    titles,
    words,
)
from toolbelt.web.kit import forms as kit
from toolbelt.web.review import changes, concerns
from toolbelt.web.review import instructions as instructions_view

APPROVE = rights.permission("change", "tool")
# The permissions to change every kind of entry that contains names of tools.
_CARRY = [rights.permission("change", kind) for kind in ("agent", "toolkit", "loadout", "sub_app")]
# The most tools on a page; the others follow when these are decided.
MAX_AT_ONCE = 50
# The most findings and agents that the confirmation of an approval lists.
MAX_FINDINGS, MAX_AGENTS = 12, 100


class Filter(forms.Form):
    """The plugin whose tools are shown, and the offset in the other concerns."""

    plugin = forms.CharField(required=False, max_length=200)
    offset = fields.Offset()


class Decision(kit.Change):
    """A decision on tools: the selected ones, all ``unflagged`` ones of the page, or the one that the button of a row
    names (``approve:files__read=sha256:…``).
    """

    decision = forms.CharField(max_length=400)
    # Each with the version that the page showed (files__read=sha256:…), which may be outdated.
    tool = fields.Names("[^=]+=.+", required=False)
    unflagged = fields.Names("[^=]+=.+", required=False)
    carry = forms.BooleanField(required=False)
    plugin = forms.CharField(required=False, max_length=200)

    def clean(self) -> dict[str, Any]:
        """Add the pressed button and the tools that it decides on."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        verb, _, single = data.get("decision", "").partition(":")
        values = data.get("unflagged" if verb == "approve-unflagged" else "tool", [])
        if verb not in ("approve", "approve-unflagged", "reject", "keep") or (single and "=" not in single):
            raise forms.ValidationError("Select Approve, Reject or Keep description.")
        pairs = (value.partition("=") for value in ([single] if single else values))
        return data | {
            "verb": verb.partition("-")[0],
            "shown": {tool: version for tool, _, version in pairs},
        }


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    criteria = filters.read(Filter(request.GET))
    view = _Page(_Review(request, criteria["plugin"]), criteria, _may_see_calls(request))
    return responses.show(request, view, "review/review.html")


@require_POST
@permission_required(APPROVE, raise_exception=True)
def decide(request: http.Request) -> HttpResponse:
    """Approve tools in the versions that the page showed, reject them, or keep the descriptions that were approved
    before. Approving findings requires a confirmation.
    """
    _declare(request)
    data = Decision(request.POST).checked()
    versions, write, who = data["shown"], responses.write(request, data), ""
    if not versions:
        raise errors.Refused("Select the tools first.")
    try:
        if data["verb"] == "keep":
            keys = decisions.keep(write, versions)
            return _respond(request, f"{_label(keys)} kept as described when approved.", keys=keys)
        if data["verb"] == "reject":
            keys = decisions.reject(write, versions)
            return _respond(request, f"{_label(keys)} rejected: blocked for everyone.", keys=keys)
        if not data["confirm"]:
            approvals.check_hashes(versions)
            who = _who(inbox.check(versions))
        carry = data["carry"] and request.user.has_perms(_CARRY)
        approval = decisions.approve(write, versions, carry_over=carry)
    except inbox.NotConfirmed as asked:
        return _ask(request, versions, asked.findings, asked.gains)
    except errors.Stale as stale:
        return _show_changed(request, stale)
    carried = approval.carried
    note = f" {words.tools(len(carried))} kept the settings of the old name." if carried else ""
    problems = " ".join(str(problem) for problem in approval.problems)
    detail = f"Applies from the next request. {who}{note} {problems}".strip()
    return _respond(request, f"{_label(approval.keys)} approved.", detail=detail, keys=approval.keys)


class _Review(pieces.View):
    """The tools to review; ``moved`` is a tool whose version changed while the page was open."""

    def __init__(self, request: http.Request, plugin: str, moved: str = "") -> None:
        ticked = {value.partition("=")[0] for value in request.POST.getlist("tool")} - {moved}
        loaded = inbox.load(plugin, maximum=MAX_AT_ONCE, first=moved)
        items = loaded.changes
        self.changes = tuple(
            changes.Change(change, ticked=change.key in ticked, moved=change.key == moved) for change in items
        )
        self.waiting = words.tools(loaded.to_review)
        self.later = loaded.to_review - len(items)
        self.unflagged = sum(not change.flags for change in items)
        self.flagged = loaded.flagged
        self.renamed = any(change.previous for change in items)
        self.plugin = plugin
        self.plugins = _plugins(loaded, plugin)
        self.titles = loaded.titles
        self.may_carry = request.user.has_perms(_CARRY)


class _Decided(pieces.Page):
    """The part of the page that a decision changes."""

    def __init__(self, review: _Review) -> None:
        self.review = review


class _Page(_Decided):
    """The whole page: the review, and a page of the other concerns."""

    def __init__(self, review: _Review, criteria: Mapping[str, Any], may_see_calls: bool) -> None:
        spikes = error_spikes.load() if may_see_calls else ()
        lines = concerns.others(attention.load(), spikes)
        part = paging.part(lines, criteria["offset"])
        super().__init__(review)
        found = instructions.unseen(review.plugin)
        self.instructions = tuple(map(instructions_view.View, found))
        self.concerns = [present() for present in part.items]
        self.concerns_total = len(lines)
        self.pages = part.pages(criteria, reverse("web:review"), anchor="#attention")


def _render(
    request: http.Request, notice: notices.Notice, change: effects.Effect | None, status: int, moved: str = ""
) -> HttpResponse:
    """Show the remaining tools to review with their selection: a part for htmx, or the whole page."""
    plugin = request.POST.get("plugin", "")
    review = _Review(request, plugin, moved)
    criteria = filters.read(Filter({"plugin": plugin}))
    page = _Decided(review) if request.htmx else _Page(review, criteria, _may_see_calls(request))
    page.notice = notice
    return responses.show(request, page, "review/review.html", "review/_decided.html", status)


def _may_see_calls(request: http.Request) -> bool:
    return rights.may_read(request.user, "call_record")


def _declare(request: http.Request) -> None:
    """Declare that the response to a decision shows the remaining tools to review."""
    plugin = request.POST.get("plugin", "")
    home = reverse("web:review") + (f"?{urlencode({'plugin': plugin})}" if plugin else "")
    responses.declare(request, home, parts=functools.partial(_render, request), refusal="Nothing was decided")


def _respond(request: http.Request, text: str, *, detail: str = "", keys: Sequence[str]) -> HttpResponse:
    undo = inbox.last_change(keys[-1]) if keys else None
    notice = notices.Notice(text=text, detail=detail, undo=undo, whole=undo is not None)
    return responses.respond(request, notice)


def _show_changed(request: http.Request, stale: errors.Stale) -> HttpResponse:
    """Show the changed version of a tool first; keep the other selections."""
    is_retired = stale.now == "retired"
    outcome = (
        "is no longer offered" if is_retired else "changed in the meantime: the new version is listed first"
    )
    notice = notices.Notice(text=f"Nothing was decided: {stale.key} {outcome}.", tone="refused")
    return _render(request, notice, None, 409, moved=stale.key)


def _ask(
    request: http.Request,
    versions: Mapping[str, str],
    findings: Sequence[tuple[str, str]],
    gains: Sequence[inbox.NewAccess],
) -> HttpResponse:
    """Ask for confirmation to approve tools, with their findings, or the agents that get several of them."""
    names = ("decision", "tool", "unflagged", "carry", "plugin")
    name = next(iter(versions)) if len(versions) == 1 else words.tools(len(versions))
    getting = [gain for gain in gains if gain.on]
    offered = [titles.of(gain.agent) for gain in gains if gain.on_request]
    available = f"Available on request to {words.counted(len(offered), 'agent')}: {words.listing(offered)}."
    return responses.ask(
        request,
        f"Approve {name}?",
        "Approve anyway" if findings else f"Approve {name}",
        _cautions(findings, gains),
        [(name, value) for name in names for value in request.POST.getlist(name)],
        home=request.answers.home,
        facts=(available,) if offered else (),
        effect=pieces.Effect.of([gain.effect for gain in getting]) if getting else None,
        differences=tuple(
            model_panel.difference(titles.of(gain.agent), gain.effect) for gain in getting[:MAX_AGENTS]
        ),
        dangerous=bool(findings) or any(gain.destructive for gain in gains),
    )


def _who(gains: Sequence[inbox.NewAccess]) -> str:
    """Return which agents have a tool after its approval, in a sentence; empty if none does."""
    on = [titles.of(gain.agent) for gain in gains if gain.on]
    offered = [titles.of(gain.agent) for gain in gains if gain.on_request]
    parts = [f"on for {words.listing(on)}"] if on else []
    parts += [f"on request for {words.listing(offered)}"] if offered else []
    return f"It is {' and '.join(parts)}." if parts else ""


def _label(keys: Sequence[str]) -> str:
    if not keys:
        return "No tools were"
    return keys[0] if len(keys) == 1 else words.tools(len(keys))


def _cautions(findings: Sequence[tuple[str, str]], gains: Sequence[inbox.NewAccess]) -> Iterator[str]:
    """Yield the warnings before an approval: findings, destructive tools, and exceeded budgets."""
    if findings:
        yield "Approving a tool sends its texts to every model that gets it. Check these findings first."
        yield from (f"{key}: {texts.visible(flag)}" for key, flag in findings[:MAX_FINDINGS])
        if len(findings) > MAX_FINDINGS:
            yield f"And {len(findings) - MAX_FINDINGS} more."
    destructive = {key for gain in gains for key in gain.destructive}
    if destructive:
        agents = [titles.of(gain.agent) for gain in gains if gain.destructive]
        yield f"Enables {words.tools(len(destructive))} that may be destructive, for {words.listing(agents)}."
    if exceeding := [titles.of(gain.agent) for gain in gains if gain.exceeds_budget]:
        verb = "is" if len(exceeding) == 1 else "are"
        yield f"{words.listing(exceeding)} {verb} over budget afterwards."


def _plugins(loaded: inbox.Inbox, chosen: str) -> tuple[pieces.Choice, ...]:
    """Return the plugins to choose from; none if there is nothing to choose."""
    by_plugin = loaded.by_plugin
    if len(by_plugin) < 2 and (not chosen or chosen in by_plugin):
        return ()
    labels = {"": "All plugins"} | {name: texts.visible(loaded.titles[name] or name) for name in by_plugin}
    return pieces.choices(labels, chosen, counts={"": sum(by_plugin.values())} | dict(by_plugin))
