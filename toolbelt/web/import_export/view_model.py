"""The page of import and export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from toolbelt import conf
from toolbelt.control.catalog import entries
from toolbelt.control.config import adopting, belt_effects, belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.kit import differences, pieces, words

# How many entries of a section, and problems, are shown; the rest is counted.
MAX_ENTRIES, MAX_PROBLEMS = 100, 200
_TITLES = {"sub_apps": "Sub-apps"}


def page(
    *,
    may_see: Callable[[str], bool],
    text: str = "",
    weighed: belt_effects.Assessment | None = None,
    adopted: adopting.Adopted | None = None,
    problems: Iterable[errors.Problem] = (),
) -> pieces.View:
    """Return the page; ``may_see`` says which kinds of entry the reader may export."""
    listed = list(problems if adopted is None else map(adopted.in_file, problems))
    if len(listed) > MAX_PROBLEMS:
        more = f"{words.number(len(listed) - MAX_PROBLEMS)} more."
        listed[MAX_PROBLEMS:] = [errors.Problem(path="", message=more)]
    counts = queries.section_counts()
    return pieces.View(
        sections=tuple(
            pieces.Choice(value=section, label=title(section), chosen=True, count=counts[kind])
            for section, kind in belts.SECTIONS.items()
            if may_see(kind)
        ),
        maximum=megabytes(conf.API_BODY_BYTES),
        text=text,
        checked=None if weighed is None else _checked(weighed),
        problems=tuple(listed),
        adopted="" if adopted is None else adopting.TITLES[adopted.kind],
        left_aside=() if adopted is None else (*adopted.notes, *adopted.left_aside),
    )


def title(section: str) -> str:
    """Return the title of a section."""
    return _TITLES.get(section, section.capitalize())


def megabytes(count: int) -> str:
    """Print a number of bytes as a limit: ``2.5 MB``."""
    return f"{count / 1_000_000:,.4g} MB"


def counted(imported: belts.Imported) -> str:
    """Return what an import does in a line: ``2 added, 1 changed, 40 unchanged``."""
    return (
        f"{words.number(imported.created)} added, {words.number(imported.changed)} changed, "
        f"{words.number(imported.same)} unchanged"
    )


def _checked(weighed: belt_effects.Assessment) -> pieces.View:
    imported = weighed.imported
    return pieces.View(
        words=counted(imported),
        is_nothing=not imported.differences and not imported.ordered,
        sections=tuple(_sections(imported)),
        ordered=tuple(title(section) for section, kind in belts.SECTIONS.items() if kind in imported.ordered),
        consequences=weighed.consequences,
        warnings=tuple(imported.warnings),
        dangerous=any(consequence.reasons for consequence in weighed.consequences)
        or bool(imported.to_confirm),
        revision=weighed.revision,
        shown=weighed.digest,
    )


def _sections(imported: belts.Imported) -> Iterator[pieces.View]:
    for section, kind in belts.SECTIONS.items():
        of_kind = [difference for difference in imported.differences if difference.kind == kind]
        if not of_kind:
            continue
        new = sum(difference.before is None for difference in of_kind)
        yield pieces.View(
            title=title(section),
            words=f"{words.number(new)} added, {words.number(len(of_kind) - new)} changed",
            entries=tuple(map(_entry, of_kind[:MAX_ENTRIES])),
            more=max(0, len(of_kind) - MAX_ENTRIES),
        )


def _entry(difference: belts.Difference) -> pieces.View:
    before, after = entries.differences(difference.before, difference.after)
    named = entries.name_field(difference.kind)
    return pieces.View(
        name=difference.name,
        is_new=difference.before is None,
        lines=differences.lines(before, {key: value for key, value in after.items() if key != named}),
    )
