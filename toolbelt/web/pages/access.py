"""How is the Access page of one agent filled, whole or in the parts that a change leaves behind?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control import queries
from toolbelt.core import effects, risks
from toolbelt.web import spans, words
from toolbelt.web.pages import agents, model, paging, sections
from toolbelt.web.presenters import access, answers, pieces

# Above so many tools, a section brings its tools when it is opened.
MOST_AT_ONCE = 100


def page(
    found: queries.Access,
    said: Mapping[str, Any],
    *,
    opened: Sequence[str],
    path: str,
    here: str,
    notice: answers.Notice | None,
    change: effects.Effect | None,
    may_change: bool,
    may_undo: bool = False,
    may_stop: bool = False,
) -> access.AccessPage:
    """Fill the page: ``said`` is the filter, ``opened`` the ids of sections that somebody opened (none: those
    with exceptions are open, for there an operator looks first); ``may_undo``
    says whether the reader may take back the last change.
    """
    narrowed = bool(said["q"] or said["show"])
    opened_by_name, opened = opened, opened or sections.overridden(found)
    every = (
        (group, [key for key in group.tools if _fits(found, group, key, said)])
        for group in sections.groups(found)
    )
    matching = [(group, tools) for group, tools in every if tools or not narrowed]
    shown = paging.part(matching, _place(matching, said, opened_by_name))
    few = sum(len(tools) for _, tools in matching) <= MOST_AT_ONCE
    toolkits: list[access.Section] = []
    loose: list[access.Section] = []
    for group, tools in shown.items:
        is_open = group.id in opened or (narrowed and few)
        filled = sections.section(
            found,
            group,
            matching=len(tools),
            shown=tuple(sections.row(found, key) for key in tools) if is_open or few else None,
            is_open=is_open,
            open_url=f"{path}?{urlencode({**_given(said), 'open': group.id})}",
        )
        (toolkits if group.toolkit else loose).append(filled)
    return access.AccessPage(
        agent=agents.header(found.summary, may_undo=may_undo),
        acts=acts(may_stop=may_stop),
        filter=access.Filter(
            query=said["q"],
            shows=_shows(found, said["show"]),
            narrowed=narrowed,
            matches=_matches(matching),
        ),
        toolkits=tuple(toolkits),
        loose=tuple(loose),
        pages=shown.pages(_given(said), path),
        model=model.view(found.surface, said["message"], change),
        notice=notice,
        may_change=may_change and not found.agent.archived,
        here=here,
    )


def acts(*, may_stop: bool) -> access.Acts:
    """Say what the menu beside each control offers."""
    return access.Acts(
        words=(("true", "On"), ("false", "Off")),
        spans=tuple(spans.SPANS.items()),
        bulk=(
            ("tools", "Tools", (("true", "On"), ("false", "Off"), ("unset", "Inherit"))),
            ("toolkits", "Toolkits", (("true", "On"), ("false", "Off"), ("unset", "Follow defaults"))),
        ),
        zone=timezone.localtime().strftime("%Z"),
        may_stop=may_stop,
    )


def matching(found: queries.Access, said: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Name the tools that the filter shows, once each, and the toolkits that have some of them."""
    tools: dict[str, None] = {}
    toolkits: list[str] = []
    for group in sections.groups(found):
        fitting = [key for key in group.tools if _fits(found, group, key, said)]
        tools.update(dict.fromkeys(fitting))
        if fitting and group.toolkit is not None:
            toolkits.append(group.key)
    return list(tools), toolkits


def answer(
    found: queries.Access,
    *,
    tools: Collection[str],
    shown: Collection[str],
    message: str,
    here: str,
    notice: answers.Notice,
    change: effects.Effect | None,
    may_undo: bool,
) -> access.AccessAnswer:
    """Fill the parts that a change leaves behind: of the ``tools`` and sections that the page says are ``shown``."""
    return access.AccessAnswer(
        agent=agents.header(found.summary, may_undo=may_undo),
        sections=tuple(
            sections.section(found, group, matching=0, shown=None, is_open=False, open_url="")
            for group in sections.groups(found)
            if group.id in shown
        ),
        rows=tuple(sections.row(found, key) for key in sorted(tools) if key in found.catalog.tools),
        overridden=len(found.agent.overrides),
        model=model.view(found.surface, message, change),
        notice=notice,
        announcement=f"{notice.text} {notice.detail}".strip(),
        may_change=True,
        here=here,
        revision=found.revision,
    )


def _fits(found: queries.Access, group: sections.Group, key: str, said: Mapping[str, Any]) -> bool:
    query, show = str(said["q"]).strip().casefold(), said["show"]
    if query:
        tool = found.catalog.tools[key]
        toolkit = group.toolkit
        texts = [key, tool.title, tool.description]
        texts += [toolkit.key, toolkit.title] if toolkit else [group.key]
        if not any(query in text.casefold() for text in texts):
            return False
    match show:
        case "active":
            return key in found.surface.because
        case "overridden":
            return key in found.agent.overrides
        case "destructive":
            return risks.of(found.catalog.tools[key]) == "destructive"
    return True


def _given(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: said[name] for name in ("q", "show", "offset") if said[name]}


def _place(
    matching: Sequence[tuple[sections.Group, Sequence[str]]], said: Mapping[str, Any], opened: Sequence[str]
) -> int:
    """Return where to begin: where the address says, or where the first section is that it opens."""
    if said["offset"] or not opened:
        return int(said["offset"] or 0)
    places = (place for place, (group, _) in enumerate(matching) if group.id in opened)
    return next(places, 0) // paging.AT_ONCE * paging.AT_ONCE


def _matches(matching: Sequence[tuple[sections.Group, Sequence[str]]]) -> str:
    tools = {key for _, keys in matching for key in keys}
    count = len(matching)
    return f"{words.tools(len(tools))} in {count} section{'' if count == 1 else 's'}."


def _shows(found: queries.Access, chosen: str) -> tuple[pieces.Choice, ...]:
    labels = (("", "All"), ("active", "Active"), ("overridden", "Overridden"), ("destructive", "Destructive"))
    counts = {"overridden": len(found.agent.overrides)}
    return tuple(
        pieces.Choice(value=value, label=label, chosen=value == chosen, count=counts.get(value))
        for value, label in labels
    )
