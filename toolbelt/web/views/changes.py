"""The audit log, and taking a change back."""

from __future__ import annotations

import functools

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import queries, rights
from toolbelt.control import undo as undoing
from toolbelt.core import effects, errors, grants
from toolbelt.web import downloads, words
from toolbelt.web.forms import filters
from toolbelt.web.pages import changes, entries, model, questions
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the log, or only its entries to htmx."""
    in_place = answering.is_in_place(request)
    notice = None if in_place else answering.kept(request)[0]
    page = changes.page(
        filters.said(filters.Changes(request.GET)),
        path=request.path,
        here=request.get_full_path(),
        notice=notice,
        may_undo=rights.undoable(request.user),
        may_see=functools.partial(rights.may_read, request.user),
    )
    shown = {"page": page, "in_place": in_place}
    return render(request, "changes/_log.html" if in_place else "changes/list.html", shown)


@require_safe
def download(request: HttpRequest) -> HttpResponseBase:
    """Give all of the log that the filters leave as a file, made while it is sent."""
    asked = filters.said(filters.Download(request.GET))
    found = queries.all_changes(**changes.asked(asked))
    form = asked["form"] or "csv"
    return downloads.answer(request, found, form, may_see=functools.partial(rights.may_read, request.user))


@require_POST
def undo(request: HttpRequest, entry: int) -> HttpResponse:
    """Take one change back, or with ``whole`` all that was done in the same act.

    Whoever may make the change that takes it back may do so.
    """
    done = queries.change(entry)
    if done is None:
        raise Http404(f"There is no change {entry}.")
    whole = bool(request.POST.get("whole"))
    if not all(map(rights.undoable(request.user), undoing.act_of(entry) if whole else [done])):
        raise PermissionDenied
    write = undoing.undo_act if whole else undoing.undo
    try:
        change = write(answering.actor(request), entry)
    except errors.Stale as stale:
        if done.key and not whole and stale.now != done.before:
            return _changed_since(request, done, stale)
        return _answered(
            request, done, answers.Notice(text=f"Not undone. {stale}", tone="refused"), None, 409
        )
    except errors.ToolbeltError as error:
        return _answered(
            request, done, answers.Notice(text=f"Not undone. {error}", tone="refused"), None, 422
        )
    notice = answers.Notice(
        text=f"Undone: {entries.told(done)}.",
        detail=model.in_short(change.effect),
        undo=None if whole else change.entry,
        undo_word="Redo",
    )
    return _answered(request, done, notice, change.effect)


def _changed_since(request: HttpRequest, done: queries.Entry, stale: errors.Stale) -> HttpResponse:
    family = done.action.partition(".")[0]
    action = reverse(f"web:{family}", args=[done.subject_key, done.key])
    back = answering.back(request, reverse("web:changes"))
    question = questions.changed_since(
        done,
        stale,
        title=words.asking(family, done.key, grants.is_on(done.before), done.subject_key),
        verb=words.wanted(family, grants.is_on(done.before)),
        action=action,
        back=back,
    )
    if not answering.is_in_place(request):
        return answering.asked(request, question)
    # The page shows what is no longer so: it gets the parts as well.
    notice = answers.Notice(text=f"Not undone: {done.key} was changed since.", tone="refused")
    return answering.in_place(request, done.subject_key, notice, None, question=question)


def _answered(
    request: HttpRequest,
    done: queries.Entry,
    notice: answers.Notice,
    change: effects.Effect | None,
    status: int = 200,
) -> HttpResponse:
    if answering.is_in_place(request) and done.subject_kind == "agent":
        return answering.in_place(request, done.subject_key, notice, change, status=status)
    if answering.is_in_place(request):
        # What is more than one agent's may stand anywhere on the page.
        return answering.anew(request, notice, change)
    return answering.led_back(request, reverse("web:changes"), notice, change)
