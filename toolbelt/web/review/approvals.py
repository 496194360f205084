"""Approvals: the calls that wait for people, the page of each, and the decisions about them.

Reading decides nothing: a link in a message may be followed by a program. A decision names what the page showed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.agents import call_approvals
from toolbelt.control.people import rights
from toolbelt.core import call_approvals as values
from toolbelt.core import effects, errors
from toolbelt.web.kit import fields, http, notices, pieces, responses, texts, titles, words
from toolbelt.web.kit import forms as kit
from toolbelt.web.review import asked_calls, call_edits

# The most requests on a page; the others follow when these are decided.
MAX_AT_ONCE = 50
MAX_SETTLED = 20
# The days of people's figures, and from how many calls on it is marked that a person rejected none.
DAYS, MANY = 30, 20
WHO = (
    "Approvers, operators and administrators decide about calls that wait for approval, and the operators of an agent"
    " about its calls."
)


class Decision(kit.Change):
    """A decision on calls, each as the page showed it (``7F3KQ2MW=0f3a…``)."""

    decision = forms.ChoiceField(
        choices=[("approve", "Approve"), ("always", "Approve for a while"), ("reject", "Reject")]
    )
    call = fields.Names("[0-9A-Za-z]{1,12}=[0-9a-f]{1,64}")
    note = forms.CharField(required=False, max_length=values.MAX_NOTE)

    def shown(self) -> dict[str, str]:
        """Return what was shown of each call, by key."""
        pairs = (value.partition("=") for value in self.cleaned_data["call"])
        return {key: digest for key, _, digest in pairs}


def _require_decider(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return the view with a check: 403 unless the user may decide about calls of some agent."""

    @functools.wraps(view)
    def guarded(request: http.Request, **address: str) -> HttpResponse:
        agents = rights.decidable_agents(request.user)
        if agents is not None and not agents:
            raise PermissionDenied(WHO)
        return view(request, **address)

    return guarded


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the calls that wait, and what was decided lately."""
    return responses.show(request, _Page(request), "review/approvals.html")


@require_safe
def page(request: http.Request, approval: str) -> HttpResponse:
    """Show one request, which is where notifications lead to."""
    detail = _find(request, approval)
    return responses.show(request, _CallPage(request, detail), "review/approval.html")


@require_POST
@_require_decider
def decide(request: http.Request) -> HttpResponse:
    """Approve or reject calls, as the page showed them: all of them, or none."""
    declare = functools.partial(responses.declare, request, reverse("web:approvals"))
    declare(parts=functools.partial(_render, request), refusal="Nothing was decided")
    form = Decision(request.POST)
    data, shown = form.checked(), form.shown()
    asked = [call_approvals.find(key) for key in shown]
    _check(request, asked)
    write = responses.write(request, data)
    try:
        if data["decision"] == "reject":
            decided = call_approvals.reject_all(write, shown, data["note"])
        else:
            always = values.MAX_ALWAYS if data["decision"] == "always" else None
            decided = call_approvals.approve_all(write, shown, always)
    except (errors.Refused, errors.Stale) as error:
        return _show_stale(request, shown, error)
    return responses.respond(request, _notice(decided))


@require_POST
@_require_decider
def revoke(request: http.Request, approval: str) -> HttpResponse:
    """End an approval that holds for a while."""
    found = _find(request, approval).approval
    parts = functools.partial(_render, request)
    responses.declare(request, reverse("web:approvals"), parts=parts, refusal="Nothing was revoked")
    call_approvals.revoke(responses.write(request, kit.Change(request.POST).checked()), found.key)
    who = titles.label("agent", found.agent)
    notice = notices.Notice(text=f"Such calls of {found.tool} by {who} are asked about again.")
    return responses.respond(request, notice)


@require_POST
@_require_decider
def edit(request: http.Request, approval: str) -> HttpResponse:
    """Replace arguments of a call, and approve it with them."""
    detail = _find(request, approval)
    form = call_edits.Form(detail, request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.show(error)
        view = _CallPage(request, detail, form)
        return render(request, "review/approval.html", {"page": view}, status=status)

    home = reverse("web:approval", args=[detail.approval.key])
    responses.declare(request, home, refusal="Nothing was decided", form=show_again)
    edited, shown = form.values(), form.shown
    write = responses.write(request, kit.Change(request.POST).checked())
    key = detail.approval.key
    try:
        if form.is_unchanged(edited):
            decided = call_approvals.approve(write, key, shown)
        else:
            decided = call_approvals.edit_and_approve(write, key, edited, shown)
    except (errors.Refused, errors.Stale) as error:
        if next(_stale({key: shown}), None) is None:
            # The edited arguments are refused: show them again.
            raise
        return _show_stale(request, {key: shown}, error)
    return responses.respond(request, _notice([decided]))


def _find(request: http.Request, key: str) -> call_approvals.Detail:
    """Return a request. Raise errors.NotFound, or PermissionDenied unless the user may decide about it."""
    detail = call_approvals.detail(key)
    _check(request, [detail.approval])
    return detail


def _check(request: http.Request, asked: Collection[call_approvals.Approval]) -> None:
    agents = rights.decidable_agents(request.user)
    if agents is not None and (others := {approval.agent for approval in asked} - agents):
        raise PermissionDenied(f"{WHO} You operate no agent named {words.listing(sorted(others))}.")


def _notice(decided: Sequence[call_approvals.Approval]) -> notices.Notice:
    """Return what was decided, and what happens next."""
    first = decided[0]
    which = f"The call of {first.tool} by {titles.label('agent', first.agent)} is"
    if len(decided) > 1:
        which = f"{words.counted(len(decided), 'call')} of {first.tool} are"
    if first.state == "rejected":
        detail = f"The model reads: {first.note}" if first.note else "The model reads that a person said no."
        return notices.Notice(text=f"{which} rejected.", detail=detail)
    if first.state == "pending":
        missing = first.needed - len(first.approved_by)
        detail = "Another person has to approve, too." if missing < 2 else f"{missing} more people have to."
        return notices.Notice(text=f"{which} approved by you.", detail=detail)
    if first.always is not None:
        until = words.in_full(first.always)
        return notices.Notice(
            text=f"{which} approved until {until}.",
            detail="Whenever the agent makes exactly this call, it runs: no one is asked.",
        )
    edited = " with your changes" if first.edited else ""
    runs = "It runs once" if len(decided) == 1 else "Each runs once"
    return notices.Notice(text=f"{which} approved{edited}.", detail=f"{runs}, when the agent calls again.")


def _show_stale(request: http.Request, shown: Mapping[str, str], error: errors.ToolbeltError) -> HttpResponse:
    """Respond that nothing was decided, and why: another person decided or edited, or it expired or was withdrawn."""
    text = next(_stale(shown), str(error))
    return responses.respond(
        request, notices.Notice(text=f"Nothing was decided: {text}", tone="refused"), status=409
    )


def _stale(shown: Mapping[str, str]) -> Iterator[str]:
    for key, digest in shown.items():
        approval = call_approvals.find(key)
        fate = asked_calls.Fate(approval)
        if fate.state != "pending":
            yield f"the call {key} is not pending any more, but {fate.words}."
        elif approval.shown != digest:
            yield f"{approval.edited_by} edited the call {key} in the meantime: read it again."


class _Waiting(pieces.Page):
    """The part of the page that a decision changes."""

    def __init__(self, request: http.Request) -> None:
        agents, user = rights.decidable_agents(request.user), request.user.get_username()
        self.may_decide = agents is None or bool(agents)
        groups = call_approvals.pending(agents) if self.may_decide else ()
        waiting = [approval for group in groups for approval in group.approvals]
        found = {each.approval.key: each for each in call_approvals.details(waiting[:MAX_AT_ONCE])}
        shown = [
            [found[approval.key] for approval in group.approvals if approval.key in found] for group in groups
        ]
        no_help = call_approvals.no_help([each.approval for each in found.values()], user)
        self.groups = tuple(asked_calls.Group(details, user, no_help) for details in shown if details)
        self.waiting = len(waiting)
        self.later = len(waiting) - len(found)
        settled = call_approvals.settled(agents, maximum=MAX_SETTLED) if self.may_decide else ()
        self.settled = tuple(map(asked_calls.Fate, settled))
        self.kept = tuple(call_approvals.kept(agents)) if self.may_decide else ()
        deciders = call_approvals.deciders(DAYS, agents) if self.may_decide else ()
        self.deciders, self.days = tuple(map(_Decider, deciders)), DAYS
        self.who = WHO
        asking = [
            rule
            for rule in access_index.catalog_view().catalog.gate_rules.values()
            if rule.effect == "ask" and not rule.observed
        ]
        self.asking = asked_calls.rules([rule.key for rule in asking], asking)


class _Decider(pieces.View):
    """How a person decided about calls, in words."""

    def __init__(self, decider: call_approvals.Decider) -> None:
        self.name, self.decided = decider.name, decider.decided
        self.a_day = f"{decider.a_day:.1f}".removesuffix(".0")
        self.wait = words.span(decider.median_wait)
        # A share of 99.6 % is not all.
        self.share = f"{int(decider.share * 100)} %"
        self.is_habit = decider.approved == decider.decided >= MANY


class _Page(_Waiting):
    """The whole page."""


class _CallPage(pieces.Page):
    """One request; ``form`` has what was typed."""

    def __init__(
        self, request: http.Request, detail: call_approvals.Detail, form: call_edits.Form | None = None
    ) -> None:
        approval = detail.approval
        stored = access_index.catalog_view().catalog
        user = request.user.get_username()
        no_help = call_approvals.no_help([approval], user).get(approval.key, "")
        self.call = asked_calls.AskedCall(detail, user, no_help)
        self.fate = asked_calls.Fate(approval)
        self.is_in_force = self.fate.state in ("approved", "rejected")
        self.is_kept = call_approvals.is_kept(approval)
        self.rules = asked_calls.rules(approval.rules, detail.rules)
        self.has_tool = approval.tool in stored.tools
        self.has_agent = approval.agent in titles.of_agents(request)
        self.session = texts.visible(approval.session)
        self.form = form or call_edits.Form(detail)


def _render(
    request: http.Request, notice: notices.Notice, change: effects.Effect | None, status: int
) -> HttpResponse:
    """Show what still waits, as a part for htmx."""
    view = _Waiting(request)
    view.notice = notice
    return responses.show(request, view, "review/approvals.html", "review/_approvals_decided.html", status)
