"""A whole configuration as a file: taken away, checked without touching anything, and imported as it was checked."""

from __future__ import annotations

import functools
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control import belt_effects, belt_texts, belts, queries, rights
from toolbelt.control import undo as undoing
from toolbelt.core import errors
from toolbelt.web.forms import edits, filters
from toolbelt.web.pages import belt, entries
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering

_TYPES = {"yaml": "application/yaml", "json": "application/json"}


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the page."""
    return _shown(request, notice=answering.kept(request)[0])


@require_safe
def export(request: HttpRequest) -> HttpResponse:
    """Give the chosen sections as a file: of those that the reader may look at, all if none is chosen."""
    form = filters.Export(request.GET)
    said = filters.said(form)
    allowed = [name for name, kind in belts.SECTIONS.items() if rights.may_read(request.user, kind)]
    wanted = [name for name in said["section"] or allowed if name in belts.SECTIONS]
    if not set(wanted) <= set(allowed):
        raise PermissionDenied
    kind: belt_texts.Form = "json" if said["form"] == "json" else "yaml"
    text = belt_texts.write(belts.part(wanted), kind)
    name = f"belt-{timezone.localdate():%Y-%m-%d}.{kind}"
    return HttpResponse(
        text,
        content_type=f"{_TYPES[kind]}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_POST
def check(request: HttpRequest) -> HttpResponse:
    """Say what importing the belt would do, and write nothing."""
    _demand(request)
    text = ""
    try:
        text = _text(request)
        document = _read(request, text)
        weighed = belt_effects.weigh(answering.actor(request), document)
    except errors.ToolbeltError as error:
        return _shown(request, status=422, text=text, problems=_problems(error))
    return _shown(request, text=text, weighed=weighed)


@require_POST
def import_(request: HttpRequest) -> HttpResponse:
    """Import the belt that was checked, beside the configuration that it was checked beside; else show it anew."""
    _demand(request)
    form = edits.Import(request.POST)
    text = ""
    try:
        text = _text(request)
        document = _read(request, text)
    except errors.ToolbeltError as error:
        return _shown(request, status=422, text=text, problems=_problems(error))
    # Without what was shown of it, it is as if another one had been shown.
    said: dict[str, Any] = (
        form.cleaned_data if form.is_valid() else {"revision": 0, "shown": "", "reason": ""}
    )
    try:
        done = belt_effects.apply(
            answering.actor(request),
            document,
            revision=said["revision"],
            shown=said["shown"],
            reason=said["reason"],
        )
    except errors.Stale as stale:
        return _again(request, text, document, stale)
    except errors.ToolbeltError as error:
        return _shown(request, status=422, text=text, problems=_problems(error))
    notice = answers.Notice(text=f"Imported: {belt.counted(done)}.", undo=_to_undo(request, done), whole=True)
    return answering.led_back(request, reverse("web:belt"), notice, None)


def _again(request: HttpRequest, text: str, document: dict[str, Any], stale: errors.Stale) -> HttpResponse:
    """Show what the import would do now, where that is not what was shown."""
    notice = answers.Notice(text=f"Nothing imported. {stale}", tone="refused")
    try:
        weighed = belt_effects.weigh(answering.actor(request), document)
    except errors.ToolbeltError as error:
        return _shown(request, status=422, text=text, problems=_problems(error), notice=notice)
    return _shown(request, status=409, text=text, weighed=weighed, notice=notice)


def _text(request: HttpRequest) -> str:
    """Give the belt that was uploaded, else the one that was pasted."""
    upload = request.FILES.get("file")
    if upload is None:
        text = str(request.POST.get("text", ""))
        if not text.strip():
            raise _invalid("There is no belt: choose a file, or paste its text.")
        return text
    most = conf.API_BODY_BYTES
    if upload.size is None or upload.size > most:
        raise _invalid(
            f"The file is {belt.megabytes(upload.size or 0)}, and the most is {belt.megabytes(most)}:"
            f" import it on the server, with `{conf.COMMAND} belt import`."
        )
    try:
        return bytes(upload.read()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid("The file is not UTF-8: save it as that.") from error


def _read(request: HttpRequest, text: str) -> dict[str, Any]:
    if "\0" in text:
        raise _invalid("The text holds a NUL character: take it out.")
    found = belt_texts.read(text, strictly=True)
    if not isinstance(found, dict):
        raise _invalid(f"A belt is a mapping of {', '.join(belts.SECTIONS)}.")
    if not request.user.has_perms(rights.to_import(found)):
        raise PermissionDenied
    return found


def _invalid(message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path="", message=message)])


def _problems(error: errors.ToolbeltError) -> tuple[errors.Problem, ...]:
    if isinstance(error, errors.Invalid):
        return error.problems
    return (errors.Problem(path="", message=str(error)),)


def _may_import(request: HttpRequest) -> bool:
    """Say whether there is any section that they may import."""
    return any(
        request.user.has_perms([rights.to("add", kind), rights.to("change", kind)])
        for kind in belts.SECTIONS.values()
    )


def _demand(request: HttpRequest) -> None:
    if not _may_import(request):
        raise PermissionDenied


def _to_undo(request: HttpRequest, done: belts.Imported) -> int | None:
    """Give the entry that undoing all of the import names, if that can be undone, and is theirs to undo."""
    if done.entry is None or queries.change(done.entry) is None:
        return None
    act = undoing.act_of(done.entry)
    may = all(entries.is_undoable(one) and rights.may_undo(request.user, one) for one in act)
    return done.entry if may else None


def _shown(
    request: HttpRequest, *, status: int = 200, notice: answers.Notice | None = None, **said: Any
) -> HttpResponse:
    filled = belt.page(
        may_see=functools.partial(rights.may_read, request.user),
        may_import=_may_import(request),
        here=reverse("web:belt"),
        notice=notice,
        **said,
    )
    return render(request, "belt/belt.html", {"page": filled}, status=status)
