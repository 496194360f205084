"""The Access page of an agent: the whole of it, and the parts that a change affects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control.reports import queries
from toolbelt.core import effects as values
from toolbelt.core import risks
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import durations, model, notices, paging, pieces, tool_sections, words

# Above so many tools, a section brings its tools when it is opened.
MAX_AT_ONCE = 100
_SHOWS = {"": "All", "active": "On", "overridden": "Overridden", "destructive": "Destructive"}


def page(
    access: queries.Access,
    filters: Mapping[str, Any],
    *,
    opened: Sequence[str],
    path: str,
    change: values.Effect | None,
    may_change: bool,
    may_undo: bool = False,
    may_stop: bool = False,
    **frame: Any,
) -> pieces.View:
    """Return the page: ``filters`` is the filter, ``opened`` the ids of sections that the reader opened (none: those
    with exceptions are open, because operators look there first); ``may_undo``
    says whether the reader may take back the last change.
    """
    narrowed = bool(filters["q"] or filters["show"])
    opened_by_name, opened = opened, opened or tool_sections.overridden(access)
    every = (
        (group, [key for key in group.tools if _fits(access, group, key, filters)])
        for group in tool_sections.groups(access)
    )
    matching = [(group, tools) for group, tools in every if tools or not narrowed]
    fitting = {key for _, tools in matching for key in tools}
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
        agent=agents.present(access.summary, may_undo=may_undo),
        acts=acts(may_stop=may_stop),
        filter=pieces.View(
            query=filters["q"],
            shows=pieces.choices(_SHOWS, filters["show"], counts={"overridden": len(access.agent.overrides)}),
            narrowed=narrowed,
            matches=f"{words.tools(len(fitting))} in {words.counted(len(matching), 'section')}.",
        ),
        toolkits=tuple(toolkits),
        loose=tuple(loose),
        pages=shown.pages(_given(filters), path),
        model=model.view(access.surface, filters["message"], change),
        may_change=may_change and not access.agent.archived,
        **frame,
    )


def acts(*, may_stop: bool) -> pieces.View:
    """Return what the menu beside each control offers."""
    return pieces.View(
        words=pieces.SETTINGS[:2],
        spans=tuple(durations.SPANS.items()),
        bulk=tuple((what, what.capitalize(), pieces.SETTINGS) for what in ("tools", "toolkits")),
        zone=timezone.localtime().strftime("%Z"),
        may_stop=may_stop,
    )


def effects(agent: str, key: str, would: Mapping[bool | None, values.Effect]) -> pieces.View:
    """Return what each state of a toolkit's switch or a tool's override ``would`` do; the one not there is current."""
    lines = tuple((word, would.get(on)) for on, word in ((True, "On"), (False, "Off"), (None, "Default")))
    return pieces.View(agent=agent, key=key, lines=lines)


def matching(access: queries.Access, filters: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the tools that the filter shows, once each, and the toolkits that have some of them."""
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
    notice: notices.Notice,
    change: values.Effect | None,
    may_undo: bool,
) -> pieces.View:
    """Return the parts that a change affects: of the ``tools`` and sections that the page says are ``shown``."""
    return pieces.View(
        agent=agents.present(access.summary, may_undo=may_undo),
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
