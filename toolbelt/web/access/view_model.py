"""The Access page of an agent: the whole of it, and the parts that a change affects."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control.reports import queries
from toolbelt.core import effects as values
from toolbelt.core import risks
from toolbelt.web import agents
from toolbelt.web.kit import durations, model_panel, notices, paging, pieces, tool_sections, words
from toolbelt.web.kit import filters as query_filters

# Above so many tools, a section brings its tools when it is opened.
MAX_AT_ONCE = 100
SECTIONS_AT_ONCE = 100
# The groups of sections, in their order; those that fold are folded at first.
_GROUPS = {"on": "On", "request": "On request", "off": "Off", "loose": "Not in a toolkit"}
_ORDER, _FOLDED = tuple(_GROUPS), ("off", "loose")
_SORTS = {"": "By state", "policy": "Policy order"}
_SHOW_CHOICES = {"": "All", "active": "On", "overridden": "Overridden", "destructive": "May be destructive"}


def page(
    access: queries.Access,
    filters: Mapping[str, Any],
    *,
    opened: Sequence[str],
    path: str,
    change: values.Effect | None,
    may_change: bool,
    may_undo: bool = False,
    may_block: bool = False,
    **frame: Any,
) -> pieces.View:
    """Return the page: ``filters`` is the filter, ``opened`` the ids of sections that the reader opened; ``may_undo``
    says whether the reader may take back the last change.
    """
    narrowed = bool(filters["q"] or filters["show"])
    pairs = _matching(access, filters)
    tools = {key for _, keys in pairs for key in keys}
    few = sum(len(keys) for _, keys in pairs) <= MAX_AT_ONCE
    states = {group.id: tool_sections.state(access, group) for group, _ in pairs}
    if not filters["sort"]:
        pairs.sort(key=lambda pair: _ORDER.index(states[pair[0].id]))
    shown = paging.part(pairs, _place(pairs, filters, opened), SECTIONS_AT_ONCE)
    sections = []
    for group, keys in shown.items:
        is_open = group.id in opened or (narrowed and few)
        filled = tuple(tool_sections.row(access, key) for key in keys) if is_open or few else None
        url = f"{path}?{urlencode({**_given(filters), 'open': group.id})}"
        sections.append(
            tool_sections.section(
                access, group, matching=len(keys), shown=filled, is_open=is_open, open_url=url
            )
        )
    parameters = {**_given(filters), "offset": ""}
    return pieces.View(
        agent=agents.present(access.summary, may_undo=may_undo),
        acts=acts(may_block=may_block),
        filter=pieces.View(
            query=filters["q"],
            show=filters["show"],
            sort=filters["sort"],
            show_choices=pieces.choices(
                _SHOW_CHOICES, filters["show"], counts={"overridden": len(access.agent.overrides)}
            ),
            narrowed=narrowed,
            chosen=1 if filters["show"] else 0,
            matches=f"{words.tools(len(tools))} in {words.counted(len(pairs), 'section')}.",
            orders=tuple(
                pieces.View(
                    label=label,
                    chosen=filters["sort"] == sort,
                    url=f"{path}?{query_filters.query_string({**parameters, 'sort': sort})}".rstrip("?"),
                )
                for sort, label in _SORTS.items()
            ),
        ),
        groups=tuple(_groups(sections, Counter(states.values()), filters, narrowed, opened)),
        pages=shown.pages(_given(filters), path),
        model=model_panel.view(access.surface, filters["message"], change),
        may_change=may_change and not access.agent.archived,
        **frame,
    )


def _groups(
    sections: Sequence[pieces.View],
    counts: Mapping[str, int],
    filters: Mapping[str, Any],
    narrowed: bool,
    opened: Sequence[str],
) -> Iterator[pieces.View]:
    """Return the sections under their headings; in the order of the policy there are none."""
    if filters["sort"]:
        yield pieces.View(state="", label="", count=0, folds=False, open=True, sections=tuple(sections))
        return
    for state, each in itertools.groupby(sections, key=lambda section: section.state):
        inside = tuple(each)
        yield pieces.View(
            state=state,
            label=_GROUPS[state],
            count=counts[state],
            folds=state in _FOLDED,
            open=state not in _FOLDED
            or narrowed
            or not set(counts).difference(_FOLDED)
            or any(section.id in opened for section in inside),
            sections=inside,
        )


def acts(*, may_block: bool) -> pieces.View:
    """Return what the menu beside each control offers."""
    return pieces.View(
        words=pieces.SETTINGS[:2],
        spans=tuple(durations.SPANS.items()),
        bulk=tuple((what, what.capitalize(), pieces.SETTINGS) for what in ("tools", "toolkits")),
        zone=timezone.localtime().strftime("%Z"),
        may_block=may_block,
    )


def effects(agent: str, key: str, would: Mapping[bool | None, values.Effect]) -> pieces.View:
    """Return what each state of a toolkit's switch or a tool's override ``would`` do; the one not there is current."""
    lines = tuple((word, would.get(on)) for on, word in ((True, "On"), (False, "Off"), (None, "Default")))
    return pieces.View(agent=agent, key=key, lines=lines)


def matching(
    access: queries.Access, filters: Mapping[str, Any], picked: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the tools that the filter shows, once each, and the toolkits that have some of them; only those of the
    sections that are ``picked``, if any are.
    """
    pairs = [pair for pair in _matching(access, filters) if not picked or pair[0].id in picked]
    tools = dict.fromkeys(key for _, keys in pairs for key in keys)
    return list(tools), [group.key for group, keys in pairs if keys and group.toolkit is not None]


def _matching(
    access: queries.Access, filters: Mapping[str, Any]
) -> list[tuple[tool_sections.Group, list[str]]]:
    """Return the sections that the filter shows, in the order of the policy, with those of their tools that fit."""
    every = (
        (group, [key for key in group.tools if _fits(access, group, key, filters)])
        for group in tool_sections.groups(access)
    )
    return [(group, keys) for group, keys in every if keys or not (filters["q"] or filters["show"])]


def answer(
    access: queries.Access,
    *,
    tools: Collection[str],
    shown: Collection[str],
    message: str,
    notice: notices.Notice,
    change: values.Effect | None,
    may_undo: bool,
) -> pieces.View:
    """Return the parts that a change affects: of the ``tools`` and sections that the page says are ``shown``."""
    return pieces.View(
        agent=agents.present(access.summary, may_undo=may_undo),
        sections=tuple(
            tool_sections.section(access, group)
            for group in tool_sections.groups(access)
            if group.id in shown
        ),
        rows=tuple(tool_sections.row(access, key) for key in sorted(tools) if key in access.catalog.tools),
        overridden=len(access.agent.overrides),
        model=model_panel.view(access.surface, message, change),
        notice=notice,
        announcement=f"{notice.text} {notice.detail}".strip(),
        may_change=True,
        revision=access.revision,
    )


def _fits(access: queries.Access, group: tool_sections.Group, key: str, filters: Mapping[str, Any]) -> bool:
    if filters["q"]:
        tool, toolkit = access.catalog.tools[key], group.toolkit
        names = (toolkit.key, toolkit.title) if toolkit else (group.key,)
        if not words.contains(filters["q"], key, tool.title, tool.description, *names):
            return False
    match filters["show"]:
        case "active":
            return key in access.surface.because
        case "overridden":
            return key in access.agent.overrides
        case "destructive":
            return risks.of(access.catalog.tools[key]) == "destructive"
    return True


def _given(filters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: filters[name] for name in ("q", "show", "sort", "offset") if filters[name]}


def _place(
    matching: Sequence[tuple[tool_sections.Group, Sequence[str]]],
    filters: Mapping[str, Any],
    opened: Sequence[str],
) -> int:
    """Return where to begin: where the address says, or where the first section is that it opens."""
    if filters["offset"] or not opened:
        return int(filters["offset"] or 0)
    places = (place for place, (group, _) in enumerate(matching) if group.id in opened)
    return next(places, 0) // SECTIONS_AT_ONCE * SECTIONS_AT_ONCE
