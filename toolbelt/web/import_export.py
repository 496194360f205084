"""Import & export: download a belt, check a belt, and import it as checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control import undo as undoing
from toolbelt.control.catalog import entries
from toolbelt.control.config import adopting, belt_decisions, belt_effects, belt_texts, belts, drift
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.kit import (
    audit_words,
    differences,
    fields,
    filters,
    http,
    notices,
    pieces,
    responses,
    words,
)
from toolbelt.web.kit import forms as kit

# The most entries of a section, and the most problems, that are shown; the others are counted.
MAX_ENTRIES, MAX_PROBLEMS = 100, 200


class Import(kit.Change):
    """The digest of the checked belt, and the revision that it was compared with."""

    revision = forms.IntegerField(min_value=0, max_value=2**63 - 1)
    shown = forms.CharField(max_length=64)


class Export(forms.Form):
    """The sections to export, whether only their decisions, and the format."""

    section = fields.Names(required=False)
    decisions = forms.BooleanField(required=False)
    form = forms.ChoiceField(required=False, choices=[("yaml", "yaml"), ("json", "json")])


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    return _render(request)


@require_safe
def export(request: http.Request) -> HttpResponse:
    """Return the chosen sections, or all that the reader may see, as a file."""
    criteria = filters.read(Export(request.GET))
    allowed = [name for name, kind in belts.SECTIONS.items() if rights.may_read(request.user, kind)]
    sections = [name for name in criteria["section"] or allowed if name in belts.SECTIONS]
    if not set(sections) <= set(allowed):
        raise PermissionDenied
    kind: belt_texts.Form = "json" if criteria["form"] == "json" else "yaml"
    only = bool(criteria["decisions"])
    exported = belt_decisions.export() if only else belts.export()
    document = {name: entries_ for name, entries_ in exported.items() if name in sections}
    text = belt_texts.write_decisions(document, kind) if only else belt_texts.write(document, kind)
    name = f"belt-{timezone.localdate():%Y-%m-%d}{'-decisions' if only else ''}.{kind}"
    return HttpResponse(
        text,
        content_type=f"application/{kind}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_POST
def check(request: http.Request) -> HttpResponse:
    """Show the effects of importing the belt, without writing anything."""
    text, document = _document(request)
    return _render(request, text=text, assessment=belt_effects.assess(responses.write(request), document))


@require_POST
def import_(request: http.Request) -> HttpResponse:
    """Import the checked belt if the configuration has not changed; otherwise show the check again."""
    form = Import(request.POST)
    text, document = _document(request)
    # An invalid form has an outdated digest, so the check is shown again.
    data: dict[str, Any] = (
        form.cleaned_data if form.is_valid() else {"revision": 0, "shown": "", "reason": ""}
    )
    try:
        imported = belt_effects.apply(
            responses.write(request, data), document, revision=data["revision"], seen_digest=data["shown"]
        )
    except errors.Stale as stale:
        # Show the check again, because the import would have a different effect.
        refusal = notices.Notice(text=f"Nothing was imported. {stale}", tone="refused")
        _declare(request, text, refusal)
        assessment = belt_effects.assess(responses.write(request), document)
        return _render(request, status=409, text=text, assessment=assessment, notice=refusal)
    notice = notices.Notice(
        text=f"Belt imported: {_counted(imported)}.", undo=_undo_entry(request, imported), whole=True
    )
    return responses.respond(request, notice)


def _document(request: http.Request) -> tuple[str, dict[str, Any]]:
    """Return the text of the belt and its document, and declare that its problems are shown beside the text.

    Raise PermissionDenied if the user may not import any section.
    """
    if not _may_import(request):
        raise PermissionDenied
    _declare(request, "")
    text = _text(request)
    _declare(request, text)
    return text, _read(request, text)


def _declare(request: http.Request, text: str, notice: notices.Notice | None = None) -> None:
    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        return _render(request, status=422, text=text, problems=error.problems, notice=notice)

    responses.declare(request, reverse("web:import_export"), form=show_again)


def _text(request: http.Request) -> str:
    """Return the uploaded belt if there is one, otherwise the pasted one."""
    upload = request.FILES.get("file")
    if upload is None:
        text = str(request.POST.get("text", ""))
        if not text.strip():
            raise errors.Invalid.of("Choose a file, or paste its text.")
        return text
    maximum = conf.API_BODY_BYTES
    if upload.size is None or upload.size > maximum:
        raise errors.Invalid.of(
            f"The file is {_megabytes(upload.size or 0)}, and the maximum is {_megabytes(maximum)}:"
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
    """Return whether the user may import any section."""
    return any(
        request.user.has_perms([rights.permission("add", kind), rights.permission("change", kind)])
        for kind in belts.SECTIONS.values()
    )


def _undo_entry(request: http.Request, imported: belts.Imported) -> int | None:
    """Return the audit entry that undoes the whole import; None without the permission."""
    if imported.entry is None or queries.change(imported.entry) is None:
        return None
    batch = undoing.batch_of(imported.entry)
    may_undo = all(audit_words.is_undoable(each) and rights.may_undo(request.user, each) for each in batch)
    return imported.entry if may_undo else None


def _render(
    request: http.Request,
    *,
    status: int = 200,
    notice: notices.Notice | None = None,
    text: str = "",
    assessment: belt_effects.Assessment | None = None,
    problems: Iterable[errors.Problem] = (),
) -> HttpResponse:
    return responses.show(
        request,
        _Page(request, status=status, notice=notice, text=text, assessment=assessment, problems=problems),
        "import_export/import_export.html",
        status=status,
    )


class _Page(pieces.Page):
    """The page, with what was checked or refused."""

    # It is fetched after the page.
    proof = None

    def __init__(
        self,
        request: http.Request,
        *,
        status: int = 200,
        notice: notices.Notice | None = None,
        text: str = "",
        assessment: belt_effects.Assessment | None = None,
        problems: Iterable[errors.Problem] = (),
    ) -> None:
        adopted: adopting.Adopted | None = getattr(request, "adopted", None)
        shown_problems = list(problems if adopted is None else map(adopted.in_file, problems))
        if len(shown_problems) > MAX_PROBLEMS:
            more = f"{words.number(len(shown_problems) - MAX_PROBLEMS)} more."
            shown_problems[MAX_PROBLEMS:] = [errors.Problem(path="", message=more)]
        counts = queries.section_counts()
        self.sections = [
            (section, _title(section), counts[kind])
            for section, kind in belts.SECTIONS.items()
            if rights.may_read(request.user, kind)
        ]
        may_see_all = len(self.sections) == len(belts.SECTIONS)
        self.drift = drift.find() if may_see_all else None
        self.drift_lines = [] if self.drift is None else list(map(drift.line, self.drift.differences))
        self.maximum = _megabytes(conf.API_BODY_BYTES)
        self.text = text
        self.checked = None if assessment is None else Checked(assessment)
        self.problems = tuple(shown_problems)
        self.adopted = "" if adopted is None else adopting.TITLES[adopted.kind]
        self.left_aside = () if adopted is None else (*adopted.notes, *adopted.skipped)
        self.may_import = _may_import(request)
        self.notice = notice or responses.pop_notice(request)[0]


def _title(section: str) -> str:
    return "Rules" if section == "gate_rules" else section.replace("_", "-").capitalize()


def _megabytes(count: int) -> str:
    """Return a number of bytes as a limit: ``2.5 MB``."""
    return f"{count / 1_000_000:,.4g} MB"


def _counted(imported: belts.Imported) -> str:
    """Return the numbers of an import in one line: ``2 added, 1 changed, 40 unchanged``."""
    return (
        f"{words.number(imported.created)} added, {words.number(imported.changed)} changed, "
        f"{words.number(imported.same)} unchanged"
    )


class Checked(pieces.View):
    """What importing a belt would change, and for which agents."""

    def __init__(self, assessment: belt_effects.Assessment) -> None:
        imported = assessment.imported
        self.assessment = assessment
        self.words = _counted(imported)
        self.is_nothing = not imported.differences and not imported.ordered
        self.sections = tuple(_sections(imported))
        self.ordered = [
            _title(section) for section, kind in belts.SECTIONS.items() if kind in imported.ordered
        ]
        has_reasons = any(consequence.reasons for consequence in assessment.consequences)
        self.dangerous = has_reasons or bool(imported.to_confirm)


class _Section(pieces.View):
    """The changes of one section: the first entries with their differences, and how many more there are."""

    def __init__(self, section: str, differences: Sequence[belts.Difference]) -> None:
        new = sum(difference.before is None for difference in differences)
        self.title = _title(section)
        self.words = f"{words.number(new)} added, {words.number(len(differences) - new)} changed"
        self.entries = [(difference, _lines(difference)) for difference in differences[:MAX_ENTRIES]]
        self.more = max(0, len(differences) - MAX_ENTRIES)


def _sections(imported: belts.Imported) -> Iterator[_Section]:
    for section, kind in belts.SECTIONS.items():
        if of_kind := [difference for difference in imported.differences if difference.kind == kind]:
            yield _Section(section, of_kind)


def _lines(difference: belts.Difference) -> tuple[pieces.Difference, ...]:
    before, after = entries.differences(difference.before, difference.after)
    name_field = entries.name_field(difference.kind)
    return differences.lines(before, {key: value for key, value in after.items() if key != name_field})
