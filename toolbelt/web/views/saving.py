"""How is an editor's form saved that reaches many agents? First it is shown what it does to each; then it is done.

It is shown in a dialog over the form, and to a browser without scripts on a page of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from toolbelt.control import proposals as doors
from toolbelt.control import queries, rights, writing
from toolbelt.core import belts, errors
from toolbelt.web import drafts
from toolbelt.web.pages import proposals
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering

# What belongs to the flow and not to the form.
_FLOW = frozenset({"csrfmiddlewaretoken", "shown", "again", "reason"})
# What app.js says of the page with each request.
_OF_PAGE = frozenset({"tools", "sections", "cells"})
Again = Callable[[Mapping[str, str], int], HttpResponse]


def save(
    request: HttpRequest,
    kind: doors.Kind,
    name: str,
    wanted: drafts.Wanted,
    *,
    new: bool,
    home: str,
    again: Again,
) -> HttpResponse:
    """Save what is wanted, or ask first. ``again`` shows the form once more with its problems, by their place; ``home``
    is the name of the page of what is saved.
    """
    if "again" in request.POST:
        return again({}, 200)
    shown, reason = _said(request)
    try:
        done = doors.save(
            answering.actor(request),
            kind,
            name,
            wanted.changes,
            was=None if new else wanted.was,
            new=new,
            shown=shown,
            reason=reason,
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except doors.Unseen as asked:
        return _asked(
            request,
            asked,
            again=bool(shown),
            reason=reason,
            back=request.path if new else reverse(home, args=[name]),
        )
    except errors.Invalid as invalid:
        address = belts.address(kind, {belts.KINDS[kind].named_by: name})
        return again(drafts.problems(address, invalid.problems), 422)
    except doors.Taken as taken:
        return again({belts.KINDS[kind].named_by: str(taken)}, 422)
    except errors.Refused as refused:
        return again({"": str(refused)}, 422)
    except errors.Stale as stale:
        return again({"": str(stale)}, 409)
    word = belts.KINDS[kind].word
    if done.is_nothing:
        notice = answers.Notice(text=f"Nothing to change: the {word} {name} is so already.")
    else:
        text = f"The {word} {name} is {'made' if new else 'saved'}."
        detail = "" if shown else "It changes nothing for any agent."
        notice = answers.Notice(text=text, detail=detail, undo=_undo(request, done))
    return _led(request, reverse(home, args=[name]), notice)


def remove(request: HttpRequest, kind: doors.Kind, name: str, *, home: str, listing: str) -> HttpResponse:
    """Remove it, or ask first; ``home`` is its page, ``listing`` where one is led when it is gone."""
    shown, reason = _said(request)
    actor = answering.actor(request)
    try:
        done = doors.remove(actor, kind, name, was=drafts.was(request.POST), shown=shown, reason=reason)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except doors.Unseen as asked:
        return _asked(request, asked, again=bool(shown), reason=reason, back=home)
    except (errors.Refused, errors.Stale) as refused:
        notice = answers.Notice(text=f"Not removed: {refused}", tone="refused")
        return _led(request, home, notice)
    text = f"The {belts.KINDS[kind].word} {name} is removed."
    return _led(request, listing, answers.Notice(text=text, undo=_undo(request, done)))


def _said(request: HttpRequest) -> tuple[str, str]:
    return request.POST.get("shown", ""), request.POST.get("reason", "")[: drafts.LONGEST_REASON]


def _asked(
    request: HttpRequest, asked: doors.Unseen, *, again: bool, reason: str, back: str = ""
) -> HttpResponse:
    fields = [
        (field, value)
        for field in request.POST
        if field not in _FLOW | _OF_PAGE
        for value in request.POST.getlist(field)
    ]
    page = proposals.page(asked, again=again, action=request.path, fields=fields, reason=reason, back=back)
    if not answering.is_in_place(request):
        return render(request, "saving/question.html", {"page": page})
    # The form below the dialog stays as it was typed.
    response = render(request, "saving/_asked.html", {"page": page})
    response.headers["HX-Reswap"] = "none"
    return response


def _led(request: HttpRequest, home: str, notice: answers.Notice) -> HttpResponse:
    """Lead to a page that shows the notice."""
    if not answering.is_in_place(request):
        return answering.led_back(request, home, notice, None)
    answering.keep(request, notice)
    return HttpResponse(status=204, headers={"HX-Redirect": home})


def _undo(request: HttpRequest, done: writing.Change) -> int | None:
    """Name the entry that the notice offers to undo, to who may."""
    if done.entry is None:
        return None
    made: Any = queries.change(done.entry)
    return done.entry if made is not None and rights.may_undo(request.user, made) else None
