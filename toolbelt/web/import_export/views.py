"""A whole configuration as a file: exported, checked without a change, and imported as it was checked."""

from __future__ import annotations

import functools
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control import undo as undoing
from toolbelt.control.config import adopting, belt_effects, belt_texts, belts
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.import_export import forms, view_model
from toolbelt.web.kit import audit_words, filters, http, notices, responses

_TYPES = {"yaml": "application/yaml", "json": "application/json"}


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    return _shown(request)


@require_safe
def export(request: http.Request) -> HttpResponse:
    """Return the chosen sections that the reader may see as a file; all of them if none is chosen."""
    given = filters.read(forms.Export(request.GET))
    allowed = [name for name, kind in belts.SECTIONS.items() if rights.may_read(request.user, kind)]
    wanted = [name for name in given["section"] or allowed if name in belts.SECTIONS]
    if not set(wanted) <= set(allowed):
        raise PermissionDenied
    kind: belt_texts.Form = "json" if given["form"] == "json" else "yaml"
    text = belt_texts.write(belts.export_sections(wanted), kind)
    name = f"belt-{timezone.localdate():%Y-%m-%d}.{kind}"
    return HttpResponse(
        text,
        content_type=f"{_TYPES[kind]}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_POST
def check(request: http.Request) -> HttpResponse:
    """Return what importing the belt would do, and write nothing."""
    text, document = _document(request)
    return _shown(request, text=text, weighed=belt_effects.assess(responses.write(request), document))


@require_POST
def import_(request: http.Request) -> HttpResponse:
    """Import the belt that was checked if the configuration is still the same; otherwise show the check again."""
    form = forms.Import(request.POST)
    text, document = _document(request)
    # A form that does not say what was shown is answered with the check again.
    given: dict[str, Any] = (
        form.cleaned_data if form.is_valid() else {"revision": 0, "shown": "", "reason": ""}
    )
    try:
        done = belt_effects.apply(
            responses.write(request, given), document, revision=given["revision"], shown=given["shown"]
        )
    except errors.Stale as stale:
        # The check again, because the import would not do what was shown.
        refusal = notices.Notice(text=f"Nothing was imported. {stale}", tone="refused")
        _declare(request, text, refusal)
        weighed = belt_effects.assess(responses.write(request), document)
        return _shown(request, status=409, text=text, weighed=weighed, notice=refusal)
    notice = notices.Notice(
        text=f"Belt imported: {view_model.counted(done)}.", undo=_to_undo(request, done), whole=True
    )
    return responses.respond(request, notice)


def _document(request: http.Request) -> tuple[str, dict[str, Any]]:
    """Return the text of the belt and what it holds; what is wrong with it from now on is shown beside the text.

    Raise PermissionDenied if they may not import any section.
    """
    if not _may_import(request):
        raise PermissionDenied
    _declare(request, "")
    text = _text(request)
    _declare(request, text)
    return text, _read(request, text)


def _declare(request: http.Request, text: str, notice: notices.Notice | None = None) -> None:
    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        return _shown(request, status=422, text=text, problems=error.problems, notice=notice)

    responses.declare(request, reverse("web:import_export"), form=show_again)


def _text(request: http.Request) -> str:
    """Return the belt that was uploaded, else the one that was pasted."""
    upload = request.FILES.get("file")
    if upload is None:
        text = str(request.POST.get("text", ""))
        if not text.strip():
            raise errors.Invalid.of("Choose a file, or paste its text.")
        return text
    maximum = conf.API_BODY_BYTES
    if upload.size is None or upload.size > maximum:
        raise errors.Invalid.of(
            f"The file is {view_model.megabytes(upload.size or 0)}, and the maximum is {view_model.megabytes(maximum)}:"
            f" import it on the server, with `{conf.COMMAND} belt import`."
        )
    try:
        return bytes(upload.read()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.Invalid.of("The file is not UTF-8: save it as UTF-8.") from error


def _read(request: http.Request, text: str) -> dict[str, Any]:
    if "\0" in text:
        raise errors.Invalid.of("The text contains a NUL character: remove it.")
    document = belt_texts.read(text, strictly=True)
    if adopting.recognize(document) is not None:
        adopted = adopting.convert(document)
        if adopted.plugins_file:
            raise errors.Invalid.of(
                "Plugins are code, listed in a plugins file on the server: run"
                f" `{conf.COMMAND} adopt` there, with this file."
            )
        request.adopted = adopted
        document = dict(adopted.belt)
    if not isinstance(document, dict):
        raise errors.Invalid.of(f"A belt is a mapping of {', '.join(belts.SECTIONS)}.")
    if not request.user.has_perms(rights.permissions_to_import(document)):
        raise PermissionDenied
    return document


def _may_import(request: http.Request) -> bool:
    """Return whether there is any section that they may import."""
    return any(
        request.user.has_perms([rights.permission("add", kind), rights.permission("change", kind)])
        for kind in belts.SECTIONS.values()
    )


def _to_undo(request: http.Request, done: belts.Imported) -> int | None:
    """Return the entry that undoing all of the import names, if that can be undone, and is theirs to undo."""
    if done.entry is None or queries.change(done.entry) is None:
        return None
    batch = undoing.batch_of(done.entry)
    may = all(audit_words.is_undoable(entry) and rights.may_undo(request.user, entry) for entry in batch)
    return done.entry if may else None


def _shown(
    request: http.Request, *, status: int = 200, notice: notices.Notice | None = None, **shown: Any
) -> HttpResponse:
    page = view_model.page(
        adopted=getattr(request, "adopted", None),
        may_see=functools.partial(rights.may_read, request.user),
        **shown,
    )
    page.may_import = _may_import(request)
    page.notice = notice or responses.pop_notice(request)[0]
    return responses.show(request, page, "import_export/import_export.html", status=status)
