"""Drafts: changes that were saved instead of made, the page of each, and what is done with them.

Saving runs the view of the form that would make the change, in a transaction that is rolled back, as a proof does.
"""

from __future__ import annotations

import datetime as dt
import functools
import uuid
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import reswap

from toolbelt.control import drafts, trials, writing
from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.core import effects, errors
from toolbelt.web import proofs
from toolbelt.web.kit import audit_words, http, notices, pieces, proved_forms, responses, titles, words
from toolbelt.web.kit import forms as kit

# The most applied drafts that the list shows: the audit log has all.
MAX_APPLIED = 20
# The shares of sessions that the page offers.
PERCENTS = (5, 10, 25, 50, 100)
# The most changes of a draft that its page shows.
MAX_SHOWN = 200
_HIDDEN = "It could not be applied: those who may read what it changes see why."


class Saved(forms.Form):
    """The address of the form that would make the change, and its reason; the other fields are those of that form."""

    draft_of = forms.CharField(max_length=2000)
    reason = forms.CharField(required=False, max_length=500)


class Observed(kit.Change):
    """For how many days a draft is observed, from now on."""

    days = forms.IntegerField(min_value=1, max_value=trials.MAX_DAYS)


class Scheduled(kit.Change):
    """When a draft is applied, in the reader's zone."""

    at = forms.DateTimeField(error_messages={"required": "Enter a time.", "invalid": "Enter a time."})


class RolledOut(kit.Change):
    """In how many percent of the sessions a draft counts, of all of its agents or of one, and for how many days."""

    percent = forms.IntegerField(min_value=1, max_value=100)
    days = forms.IntegerField(min_value=1, max_value=trials.MAX_DAYS)
    agent = forms.CharField(required=False, max_length=64)


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the drafts: all of them to viewers, else one's own."""
    return responses.show(request, _List(request), "review/drafts.html")


@require_safe
def page(request: http.Request, draft: uuid.UUID) -> HttpResponse:
    """Show one draft."""
    return responses.show(request, _DraftPage(request, _find(request, draft)), "review/draft.html")


@require_safe
@responses.require_read("call_record")
def prove(request: http.Request, draft: uuid.UUID) -> HttpResponse:
    """Show what a draft would have done to the recorded calls: a part for htmx, else a page."""
    proof, refusal, found = None, "", _find(request, draft)
    try:
        proof = drafts.prove(responses.write(request), found.key)
    except errors.ToolbeltError as error:
        refusal = str(error) if _is_open(request, found) else _HIDDEN
    view = proofs.Page(request, proof, refusal)
    return responses.show(request, view, "proofs/proof.html", "proofs/_proof.html")


@require_POST
def save(request: http.Request) -> HttpResponse:
    """Save the change of a form as a draft, and make nothing of it."""
    asked = {"draft_of": request.GET.get("draft_of", ""), **request.POST.dict()}
    form = Saved(asked)
    match = proved_forms.find(form.cleaned_data["draft_of"]) if form.is_valid() else None
    if match is None:
        raise Http404("The address is not that of a change that can be saved as a draft.")
    address, found = form.cleaned_data["draft_of"], match
    declare = functools.partial(responses.declare, request, reverse("web:drafts"))
    declare(parts=functools.partial(_keep_page, request), refusal="Not saved")

    def act(write: writing.Write) -> None:
        response = proved_forms.make(request, found, address)
        if response.status_code >= 400:
            raise errors.Refused("the change would be refused. Make the change directly to see why.")

    draft = drafts.save(responses.write(request, form.cleaned_data), act)
    notice = notices.Notice(
        text="Saved as a draft. Nothing was changed.",
        detail="It is applied as you see it here, or not at all.",
    )
    responses.keep_notice(request, notice)
    return responses.see_other(request, _address(draft))


@require_POST
def apply(request: http.Request, draft: uuid.UUID) -> HttpResponse:
    """Make the change of a draft."""
    found = _check(request, draft)
    responses.declare(
        request,
        _address(found),
        title=f"Apply “{found.title}”?",
        verb="Apply draft",
        refusal="Not applied",
    )
    change = drafts.apply(responses.write(request, kit.Change(request.POST).checked()), found.key)
    entry = responses.undo_entry(request, change)
    notice = notices.Notice(text=f"Applied: {found.title}.", undo=entry, whole=entry is not None)
    return responses.respond(request, notice, change.effect)


@require_POST
def observe(request: http.Request, draft: uuid.UUID) -> HttpResponse:
    """Observe a draft from now on; or until another end, if it is observed."""
    found = _check(request, draft)
    responses.declare(request, _address(found), refusal="Not observed")
    data = Observed(request.POST).checked()
    write, ends = responses.write(request, data), timezone.now() + dt.timedelta(days=data["days"])
    until = words.in_full(trials.observe_until(write, found.key, ends).ends)
    return responses.respond(
        request, notices.Notice(text=f"Observed until {until}. Nothing changes for agents.")
    )


@require_POST
def schedule(request: http.Request, draft: uuid.UUID) -> HttpResponse:
    """Apply a draft at a time."""
    found = _check(request, draft)
    responses.declare(
        request,
        _address(found),
        title=f"Apply “{found.title}” at that time?",
        verb="Schedule",
        refusal="Not scheduled",
        fields=("at",),
    )
    data = Scheduled(request.POST).checked()
    trial = trials.schedule(responses.write(request, data), found.key, data["at"])
    return responses.respond(request, notices.Notice(text=f"Scheduled for {words.in_full(trial.starts)}."))


@require_POST
def roll_out(request: http.Request, draft: uuid.UUID) -> HttpResponse:
    """Let a draft count in some of the sessions of its agents."""
    found = _check(request, draft)
    responses.declare(
        request,
        _address(found),
        title=f"Roll out “{found.title}”?",
        verb="Roll out",
        refusal="Not rolled out",
        fields=("percent", "days", "agent"),
    )
    data = RolledOut(request.POST).checked()
    trial = trials.roll_out(
        responses.write(request, data),
        found.key,
        percent=data["percent"],
        agents=[data["agent"]] if data["agent"] else (),
        ends=timezone.now() + dt.timedelta(days=data["days"]),
    )
    text = f"Rolled out to {trial.percent} % of sessions until {words.in_full(trial.ends)}."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
def stop(request: http.Request, draft: uuid.UUID) -> HttpResponse:
    """Stop observing a draft or rolling it out, or do not apply it at its time."""
    found = _check(request, draft)
    responses.declare(request, _address(found), refusal="Not stopped")
    trial = trials.stop(responses.write(request, kit.Change(request.POST).checked()), found.key)
    is_back = trial.mode == "rollout"
    text = "Taken back: it counts in no session any more." if is_back else "Stopped. Nothing was changed."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
def discard(request: http.Request, draft: uuid.UUID) -> HttpResponse:
    """Discard a draft: one's own, or one whose change the user may make."""
    found = _find(request, draft)
    if not drafts.may_discard(request.user, found):
        raise PermissionDenied
    responses.declare(request, reverse("web:drafts"), refusal="Not discarded")
    drafts.discard(responses.write(request, kit.Change(request.POST).checked()), found.key)
    responses.keep_notice(request, notices.Notice(text=f"Discarded: {found.title}."))
    return responses.see_other(request, reverse("web:drafts"))


class Line(pieces.View):
    """A draft in the list, with the trial that runs."""

    def __init__(self, draft: drafts.Draft, trial: trials.Trial | None) -> None:
        self.trial = trial
        self.draft = draft
        self.title = draft.title
        self.url = _address(draft)
        self.changes = words.counted(len(draft.changes), "change")


class _List(pieces.Page):
    """The drafts that can be applied, and those that were."""

    def __init__(self, request: http.Request) -> None:
        self.may_see_all = rights.may_read(request.user, "draft")
        author = "" if self.may_see_all else request.user.get_username()
        running = {trial.draft: trial for trial in trials.running()}
        waiting = drafts.listed(author, applied=False)
        self.open = [Line(draft, running.get(draft.key)) for draft in waiting if draft.is_open]
        applied = drafts.listed(author, applied=True, part=slice(MAX_APPLIED))
        self.applied = [Line(draft, None) for draft in applied]


class _Change(pieces.View):
    """A change of a draft: what it does to what."""

    def __init__(self, request: http.Request, change: Any, stored: Any) -> None:
        is_open = rights.may_read(request.user, change.subject_kind)
        line = audit_words.Line(change, False, is_open=is_open, stored=stored if is_open else None)
        self.verb = drafts.verb(change)
        self.subject, self.title, self.url = line.subject, line.title, line.url
        self.agent, self.is_flip, self.differences = line.agent, line.is_flip, line.differences
        if change.key:
            self.agent = change.subject_key
        if line.kind == "agent":
            self.title = titles.of_agents(request).get(change.subject_key, "")
            known = change.subject_key in titles.of_agents(request)
            self.url = reverse("web:agent_access", args=[change.subject_key]) if known else ""


class _Trial(pieces.View):
    """The last trial of a draft, and what it has counted."""

    def __init__(self, request: http.Request, trial: trials.Trial) -> None:
        self.mode, self.is_running = trial.mode, trial.is_running
        self.starts, self.ends, self.author = trial.starts, trial.ends, trial.author
        self.percent, self.agents, self.arms = trial.percent, trial.agents, trial.arms
        # The arms with the names of their columns.
        self.columns = (("With it", trial.arms.new), ("Without it", trial.arms.old))
        self.compared = trials.compare(trial.arms)
        self.note = trials.why(trial, functools.partial(rights.may_read, request.user))
        is_report = trial.mode == "observe" and rights.may_read(request.user, "call_record")
        self.report = proofs.Page(request, trials.report(trial), "") if is_report else None
        self.rules = [*trials.observed_rules(trial).items()] if is_report else []


class _DraftPage(pieces.Page):
    """One draft, with its changes; ``differing`` is what is not as it was, if it can still be applied."""

    def __init__(self, request: http.Request, draft: drafts.Draft) -> None:
        stored = access_index.catalog_view().catalog
        self.draft = draft
        self.list_url = reverse("web:drafts")
        may_read = functools.partial(rights.may_read, request.user)
        self.differing = drafts.differing(draft, may_read) if draft.is_open else ()
        self.may_apply = draft.is_open and drafts.may_apply(request.user, draft)
        trial = trials.latest(draft.key)
        self.trial = None if trial is None else _Trial(request, trial)
        is_tried = trial is not None and trial.is_running
        self.is_rolled_out = is_tried and trial is not None and trial.mode == "rollout"
        self.may_discard = not self.is_rolled_out and drafts.may_discard(request.user, draft)
        self.may_try = self.may_apply and not is_tried and not self.differing
        self.days, self.all_days = trials.DAYS, (7, 14, 30)
        self.percent, self.all_percents = trials.PERCENT, PERCENTS
        self.agents: tuple[str, ...] = ()
        # Why it cannot be rolled out.
        self.refusal = ""
        try:
            self.agents = trials.agents_of(draft)
        except errors.Refused as error:
            self.refusal = str(error) if _is_open(request, draft) else ""
        later = timezone.now() + dt.timedelta(days=self.days)
        self.may_extend = trial is not None and trial.ends < later
        self.changes = [_Change(request, change, stored) for change in draft.changes[:MAX_SHOWN]]
        self.more = len(draft.changes) - len(self.changes)
        self.count = words.counted(len(draft.changes), "change")


def _find(request: http.Request, key: uuid.UUID) -> drafts.Draft:
    """Return a draft that the user may see."""
    draft = drafts.find(key)
    if not drafts.may_see(request.user, draft):
        raise PermissionDenied
    return draft


def _check(request: http.Request, key: uuid.UUID) -> drafts.Draft:
    """Return a draft that the user may apply."""
    draft = drafts.find(key)
    if not drafts.may_apply(request.user, draft):
        raise PermissionDenied
    return draft


def _is_open(request: http.Request, draft: drafts.Draft) -> bool:
    """Return whether the user may read everything that a draft changes."""
    return all(rights.may_read(request.user, change.subject_kind) for change in draft.changes)


def _address(draft: drafts.Draft) -> str:
    return reverse("web:draft", args=[draft.key])


def _keep_page(
    request: http.Request, notice: notices.Notice, change: effects.Effect | None, status: int
) -> HttpResponse:
    """Show only the notice, so that the form with what was typed stays."""
    view = pieces.Page()
    view.notice = notice
    parts = responses.show(request, view, "_notice_parts.html", "_notice_parts.html", status)
    return reswap(parts, "none")
