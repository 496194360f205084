"""The page of import and export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolbelt import conf
from toolbelt.control.catalog import entries
from toolbelt.control.config import adopting, belt_effects, belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.kit import differences, model, pieces, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that stands against the belt, and where in it; `where` may be empty."""

    where: str
    what: str


# How many entries of a section, and problems, are shown; the rest is counted.
MAX_ENTRIES, MAX_PROBLEMS = 100, 200
# How many tools of an agent are named that come or go.
MAX_TOOLS = 12
_TITLES = {"sub_apps": "Sub-apps"}


def page(
    *,
    may_see: Callable[[str], bool],
    text: str = "",
    weighed: belt_effects.Assessment | None = None,
    adopted: adopting.Adopted | None = None,
    problems: Iterable[errors.Problem] = (),
    **frame: Any,
) -> pieces.View:
    """Fill the page; ``may_see`` says which kinds of entry the reader may take away."""
    found = tuple(problems)
    if adopted is not None:
        found = tuple(map(adopted.in_file, found))
    more = len(found) - MAX_PROBLEMS
    listed = [Problem(where=one.path, what=one.message) for one in found[:MAX_PROBLEMS]]
    if more > 0:
        listed.append(Problem(where="", what=f"{words.number(more)} more."))
    counts = queries.section_counts()
    return pieces.View(
        sections=tuple(
            pieces.Choice(value=section, label=title(section), chosen=True, count=counts[kind])
            for section, kind in belts.SECTIONS.items()
            if may_see(kind)
        ),
        most=megabytes(conf.API_BODY_BYTES),
        text=text,
        checked=None if weighed is None else _checked(weighed),
        problems=tuple(listed),
        adopted="" if adopted is None else adopting.TITLES[adopted.kind],
        left_aside=()
        if adopted is None
        else tuple(
            Problem(where=one.path, what=one.message) for one in (*adopted.notes, *adopted.left_aside)
        ),
        **frame,
    )


def title(section: str) -> str:
    """Name a section to people."""
    return _TITLES.get(section, section.capitalize())


def megabytes(count: int) -> str:
    """Print so many bytes as one says a limit: ``2.5 MB``."""
    return f"{count / 1_000_000:,.4g} MB"


def counted(imported: belts.Imported) -> str:
    """Return what an import does in a line: ``2 added, 1 changed, 40 unchanged``."""
    return (
        f"{words.number(imported.created)} added, {words.number(imported.changed)} changed, "
        f"{words.number(imported.same)} unchanged"
    )


def _checked(weighed: belt_effects.Assessment) -> pieces.View:
    imported = weighed.imported
    consequences = tuple(_consequence(consequence) for consequence in weighed.consequences)
    return pieces.View(
        words=counted(imported),
        is_nothing=not imported.differences and not imported.ordered,
        sections=tuple(_sections(imported)),
        ordered=tuple(title(section) for section, kind in belts.SECTIONS.items() if kind in imported.ordered),
        consequences=consequences,
        warnings=tuple(Problem(where=warning.path, what=warning.message) for warning in imported.warnings),
        dangerous=any(one.reasons for one in consequences) or bool(imported.to_confirm),
        revision=weighed.revision,
        shown=weighed.digest,
    )


def _sections(imported: belts.Imported) -> Iterator[pieces.View]:
    for section, kind in belts.SECTIONS.items():
        of_kind = [difference for difference in imported.differences if difference.kind == kind]
        if not of_kind:
            continue
        new = sum(one.before is None for one in of_kind)
        yield pieces.View(
            title=title(section),
            words=f"{words.number(new)} added, {words.number(len(of_kind) - new)} changed",
            entries=tuple(_entry(one) for one in of_kind[:MAX_ENTRIES]),
            more=max(0, len(of_kind) - MAX_ENTRIES),
        )


def _entry(one: belts.Difference) -> pieces.View:
    before, after = entries.differences(one.before, one.after)
    named = entries.name_field(one.kind)
    return pieces.View(
        name=one.name,
        is_new=one.before is None,
        lines=differences.lines(before, {key: value for key, value in after.items() if key != named}),
    )


def _consequence(consequence: belt_effects.Consequence) -> pieces.View:
    return pieces.View(
        agent=consequence.agent,
        is_new=consequence.is_new,
        effect=model.effect(consequence.effect),
        came=words.listing(consequence.effect.added, MAX_TOOLS),
        went=words.listing(consequence.effect.removed, MAX_TOOLS),
        reasons=consequence.reasons,
    )
