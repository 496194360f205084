"""How is the page filled on which a whole configuration goes out, and comes in?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from toolbelt import conf
from toolbelt.control import belt_effects, belts, entries, queries
from toolbelt.core import errors
from toolbelt.web import words
from toolbelt.web.pages import differences, model
from toolbelt.web.presenters import answers, belt, pieces

# How many entries of a section, and problems, are shown; the rest is counted.
MOST_ENTRIES, MOST_PROBLEMS = 100, 200
# How many tools of an agent are named that come or go.
MOST_TOOLS = 12
_TITLES = {"sub_apps": "Sub-apps"}


def page(
    *,
    may_see: Callable[[str], bool],
    may_import: bool,
    here: str,
    notice: answers.Notice | None,
    text: str = "",
    weighed: belt_effects.Weighed | None = None,
    problems: Iterable[errors.Problem] = (),
) -> belt.BeltPage:
    """Fill the page; ``may_see`` says which kinds of entry the reader may take away."""
    found = tuple(problems)
    more = len(found) - MOST_PROBLEMS
    listed = [belt.Problem(where=one.path, what=one.message) for one in found[:MOST_PROBLEMS]]
    if more > 0:
        listed.append(belt.Problem(where="", what=f"{words.number(more)} more."))
    counts = queries.section_counts()
    return belt.BeltPage(
        sections=tuple(
            pieces.Choice(value=section, label=title(section), chosen=True, count=counts[kind])
            for section, kind in belts.SECTIONS.items()
            if may_see(kind)
        ),
        may_import=may_import,
        most=megabytes(conf.API_BODY_BYTES),
        text=text,
        checked=None if weighed is None else _checked(weighed),
        problems=tuple(listed),
        notice=notice,
        here=here,
    )


def title(section: str) -> str:
    """Name a section to people."""
    return _TITLES.get(section, section.capitalize())


def megabytes(count: int) -> str:
    """Print so many bytes as one says a limit: ``2.5 MB``."""
    return f"{count / 1_000_000:,.4g} MB"


def counted(imported: belts.Imported) -> str:
    """Say what an import does in a line: ``2 added, 1 changed, 40 as they are``."""
    return (
        f"{words.number(imported.created)} added, {words.number(imported.changed)} changed, "
        f"{words.number(imported.same)} as they are"
    )


def _checked(weighed: belt_effects.Weighed) -> belt.Checked:
    imported = weighed.imported
    consequences = tuple(_consequence(one) for one in weighed.consequences)
    return belt.Checked(
        words=counted(imported),
        is_nothing=not imported.differences and not imported.ordered,
        sections=tuple(_sections(imported)),
        ordered=tuple(title(section) for section, kind in belts.SECTIONS.items() if kind in imported.ordered),
        consequences=consequences,
        dangerous=any(one.reasons for one in consequences),
        revision=weighed.revision,
        shown=weighed.digest,
    )


def _sections(imported: belts.Imported) -> Iterator[belt.Section]:
    for section, kind in belts.SECTIONS.items():
        of_kind = [one for one in imported.differences if one.kind == kind]
        if not of_kind:
            continue
        new = sum(one.before is None for one in of_kind)
        yield belt.Section(
            title=title(section),
            words=f"{words.number(new)} added, {words.number(len(of_kind) - new)} changed",
            entries=tuple(_entry(one) for one in of_kind[:MOST_ENTRIES]),
            more=max(0, len(of_kind) - MOST_ENTRIES),
        )


def _entry(one: belts.Difference) -> belt.Entry:
    before, after = entries.differences(one.before, one.after)
    named = entries.naming(one.kind)
    return belt.Entry(
        name=one.name,
        is_new=one.before is None,
        lines=differences.lines(before, {key: value for key, value in after.items() if key != named}),
    )


def _consequence(one: belt_effects.Consequence) -> belt.Consequence:
    return belt.Consequence(
        agent=one.agent,
        is_new=one.is_new,
        effect=model.effect(one.effect),
        came=words.listing(one.effect.added, MOST_TOOLS),
        went=words.listing(one.effect.removed, MOST_TOOLS),
        reasons=one.reasons,
    )
