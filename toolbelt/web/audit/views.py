"""The audit log, and undoing a change."""

from __future__ import annotations

import functools

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import undo as undoing
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import errors, grants
from toolbelt.web.audit import downloads, forms, view_model
from toolbelt.web.kit import audit_words, filters, http, model_panel, notices, pieces, responses, words
from toolbelt.web.switches import parts as switches


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the log, or only its entries to htmx."""
    narrowed = filters.read(forms.AuditLog(request.GET))
    page = view_model.page(
        narrowed,
        path=request.path,
        may_undo=rights.undo_check(request.user),
        may_see=functools.partial(rights.may_read, request.user),
    )
    page.views = forms.VIEWS.present(request, narrowed)
    return responses.show(request, page, "audit/list.html", "audit/_log.html")


@require_safe
def download(request: http.Request) -> HttpResponseBase:
    """Return all of the log that the filters leave as a file, made while it is sent."""
    narrowed = filters.read(forms.Download(request.GET))
    batches = queries.all_changes(**view_model.log_query(narrowed))
    form = narrowed["form"] or "csv"
    return downloads.answer(request, batches, form, may_see=functools.partial(rights.may_read, request.user))


@require_POST
def undo(request: http.Request, entry: int) -> HttpResponse:
    """Undo a change, or with ``whole`` all changes that were made together.

    It needs the permission for the change that undoes it.
    """
    done = queries.change(entry)
    if done is None:
        raise Http404(f"There is no change {entry}.")
    whole = bool(request.POST.get("whole"))
    if not all(map(rights.undo_check(request.user), undoing.batch_of(entry) if whole else [done])):
        raise PermissionDenied
    _declare(request, done)
    write = undoing.undo_batch if whole else undoing.undo
    try:
        change = write(responses.write(request), entry)
    except errors.Stale as stale:
        if done.key and not whole and stale.now != done.before:
            return _changed_since(request, done, stale)
        raise
    notice = notices.Notice(
        text=f"Undone: {audit_words.sentence(done)}.",
        detail=model_panel.in_short(change.effect),
        undo=None if whole else change.entry,
        undo_word="Redo",
    )
    return responses.respond(request, notice, change.effect)


def _changed_since(request: http.Request, done: queries.Entry, stale: errors.Stale) -> HttpResponse:
    """Ask instead of undoing what was changed since: three ways, and a change based on what is so now."""
    family = done.action.partition(".")[0]
    action = reverse(f"web:{family}", args=[done.subject_key, done.key])
    back = responses.back(request, reverse("web:audit_log"))
    before = grants.is_on(done.before)
    states = [words.state(value) for value in (done.before, done.after, stale.now)]
    question = notices.Confirmation(
        title=words.switch_question(done.key, before, done.subject_key),
        reasons=("There is a newer change of the same setting, so undoing this one would revert both.",),
        differences=(pieces.Difference(what=done.key, before=states[0], after=states[1], now=states[2]),),
        three_ways=True,
        action=action,
        fields=(
            ("on", words.stored(before)),
            ("was", words.stored(grants.is_on(stale.now))),
            ("next", back),
        ),
        confirm_word=words.switch_verb(before),
        dangerous=False,
        back=back,
    )
    if not request.htmx:
        return responses.ask_confirmation(request, question)
    # The page shows what is no longer so: it gets the parts as well.
    notice = notices.Notice(text=f"Not undone: there is a newer change of {done.key}.", tone="refused")
    return switches.render_partial(request, done.subject_key, notice, None, question=question)


def _declare(request: http.Request, done: queries.Entry) -> None:
    home = reverse("web:audit_log")
    if done.subject_kind == "agent":
        switches.declare(request, done.subject_key, home, undone="Not undone")
    else:
        # What concerns several agents may be anywhere on the page.
        reload = functools.partial(responses.refresh, request)
        responses.declare(request, home, parts=reload, undone="Not undone")
