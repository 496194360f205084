"""The Access page of an agent: the whole of it, and the parts that a change affects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control.reports import queries
from toolbelt.core import effects, risks
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import durations, model, notices, paging, pieces, tool_sections, words

# Above so many tools, a section brings its tools when it is opened.
MAX_AT_ONCE = 100


def page(
    access: queries.Access,
    filters: Mapping[str, Any],
    *,
    opened: Sequence[str],
    path: str,
    change: effects.Effect | None,
    may_change: bool,
    may_undo: bool = False,
    may_stop: bool = False,
    **frame: Any,
) -> pieces.View:
    """Fill the page: ``filters`` is the filter, ``opened`` the ids of sections that somebody opened (none: those
    with exceptions are open, for there an operator looks first); ``may_undo``
    says whether the reader may take back the last change.
    """
    narrowed = bool(filters["q"] or filters["show"])
    opened_by_name, opened = opened, opened or tool_sections.overridden(access)
    every = (
        (group, [key for key in group.tools if _fits(access, group, key, filters)])
        for group in tool_sections.groups(access)
    )
    matching = [(group, tools) for group, tools in every if tools or not narrowed]
    shown = paging.part(matching, _place(matching, filters, opened_by_name))
    few = sum(len(tools) for _, tools in matching) <= MAX_AT_ONCE
    toolkits: list[pieces.View] = []
    loose: list[pieces.View] = []
    for group, tools in shown.items:
        is_open = group.id in opened or (narrowed and few)
        filled = tool_sections.section(
            access,
            group,
            matching=len(tools),
            shown=tuple(tool_sections.row(access, key) for key in tools) if is_open or few else None,
            is_open=is_open,
            open_url=f"{path}?{urlencode({**_given(filters), 'open': group.id})}",
        )
        (toolkits if group.toolkit else loose).append(filled)
    return pieces.View(
        agent=agents.header(access.summary, may_undo=may_undo),
        acts=acts(may_stop=may_stop),
        filter=pieces.View(
            query=filters["q"],
            shows=_shows(access, filters["show"]),
            narrowed=narrowed,
            matches=_matches(matching),
        ),
        toolkits=tuple(toolkits),
        loose=tuple(loose),
        pages=shown.pages(_given(filters), path),
        model=model.view(access.surface, filters["message"], change),
        may_change=may_change and not access.agent.archived,
        **frame,
    )


_SETTINGS = (("true", "Turn on"), ("false", "Turn off"), ("unset", "Reset to default"))


def acts(*, may_stop: bool) -> pieces.View:
    """Return what the menu beside each control offers."""
    return pieces.View(
        words=(("true", "Turn on"), ("false", "Turn off")),
        spans=tuple(durations.SPANS.items()),
        bulk=(
            ("tools", "Tools", _SETTINGS),
            ("toolkits", "Toolkits", _SETTINGS),
        ),
        zone=timezone.localtime().strftime("%Z"),
        may_stop=may_stop,
    )


def matching(access: queries.Access, filters: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Name the tools that the filter shows, once each, and the toolkits that have some of them."""
    tools: dict[str, None] = {}
    toolkits: list[str] = []
    for group in tool_sections.groups(access):
        fitting = [key for key in group.tools if _fits(access, group, key, filters)]
        tools.update(dict.fromkeys(fitting))
        if fitting and group.toolkit is not None:
            toolkits.append(group.key)
    return list(tools), toolkits


def answer(
    access: queries.Access,
    *,
    tools: Collection[str],
    shown: Collection[str],
    message: str,
    here: str,
    notice: notices.Notice,
    change: effects.Effect | None,
    may_undo: bool,
) -> pieces.View:
    """Fill the parts that a change leaves behind: of the ``tools`` and sections that the page says are ``shown``."""
    return pieces.View(
        agent=agents.header(access.summary, may_undo=may_undo),
        sections=tuple(
            tool_sections.section(access, group, matching=0, shown=None, is_open=False, open_url="")
            for group in tool_sections.groups(access)
            if group.id in shown
        ),
        rows=tuple(tool_sections.row(access, key) for key in sorted(tools) if key in access.catalog.tools),
        overridden=len(access.agent.overrides),
        model=model.view(access.surface, message, change),
        notice=notice,
        announcement=f"{notice.text} {notice.detail}".strip(),
        may_change=True,
        here=here,
        revision=access.revision,
    )


def _fits(access: queries.Access, group: tool_sections.Group, key: str, filters: Mapping[str, Any]) -> bool:
    query, show = str(filters["q"]).strip().casefold(), filters["show"]
    if query:
        tool = access.catalog.tools[key]
        toolkit = group.toolkit
        texts = [key, tool.title, tool.description]
        texts += [toolkit.key, toolkit.title] if toolkit else [group.key]
        if not any(query in text.casefold() for text in texts):
            return False
    match show:
        case "active":
            return key in access.surface.because
        case "overridden":
            return key in access.agent.overrides
        case "destructive":
            return risks.of(access.catalog.tools[key]) == "destructive"
    return True


def _given(filters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: filters[name] for name in ("q", "show", "offset") if filters[name]}


def _place(
    matching: Sequence[tuple[tool_sections.Group, Sequence[str]]],
    filters: Mapping[str, Any],
    opened: Sequence[str],
) -> int:
    """Return where to begin: where the address says, or where the first section is that it opens."""
    if filters["offset"] or not opened:
        return int(filters["offset"] or 0)
    places = (place for place, (group, _) in enumerate(matching) if group.id in opened)
    return next(places, 0) // paging.AT_ONCE * paging.AT_ONCE


def _matches(matching: Sequence[tuple[tool_sections.Group, Sequence[str]]]) -> str:
    tools = {key for _, keys in matching for key in keys}
    count = len(matching)
    return f"{words.tools(len(tools))} in {count} section{'' if count == 1 else 's'}."


def _shows(access: queries.Access, chosen: str) -> tuple[pieces.Choice, ...]:
    labels = (("", "All"), ("active", "On"), ("overridden", "Overridden"), ("destructive", "Destructive"))
    counts = {"overridden": len(access.agent.overrides)}
    return tuple(
        pieces.Choice(value=value, label=label, chosen=value == chosen, count=counts.get(value))
        for value, label in labels
    )
