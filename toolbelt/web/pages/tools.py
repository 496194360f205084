"""How is the list of tools filled?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control import holdings
from toolbelt.core import catalog, reasons, resolution, risks
from toolbelt.web import words
from toolbelt.web.pages import model, paging, sections, texts
from toolbelt.web.presenters import access, answers, bulk, pieces, tools

_COLUMNS = (("tool", "Tool"), ("plugin", "Plugin"), ("tokens", "Tokens"))
_SORTS: Mapping[str, Callable[[catalog.Tool], Any]] = {
    "tool": lambda tool: tool.key.casefold(),
    "plugin": lambda tool: (tool.plugin.casefold(), tool.key.casefold()),
    "tokens": lambda tool: tool.tokens,
}
_STATES = {
    "available": "Available",
    "unavailable": "Unavailable",
    "stopped": "Stopped",
    "default": "On by default",
}
_RISKS = ("read-only", "writes", "destructive")
# A plugin is named in the address; this stands for none.
NO_PLUGIN = "-"


def page(
    shelf: holdings.Shelf,
    said: Mapping[str, Any],
    path: str,
    *,
    agents: Sequence[str] = (),
    notice: answers.Notice | None = None,
) -> tools.ToolsPage:
    """Fill a page of the list, narrowed and sorted as the form says; ``path`` is the page's own.

    ``agents`` are those for which the reader may set all that is shown.
    """
    stored = shelf.catalog
    shown = matching(shelf, said)
    sort = said["sort"] if str(said["sort"]).lstrip("-") in _SORTS else "tool"
    shown.sort(key=_SORTS[sort.lstrip("-")], reverse=sort.startswith("-"))
    part = paging.part(shown, said["offset"])
    return tools.ToolsPage(
        tools=tuple(line(shelf, tool) for tool in part.items),
        columns=tuple(_column(name, label, said, sort, path) for name, label in _COLUMNS),
        query=said["q"],
        plugins=_plugins(stored, said["plugin"]),
        states=_choices("Any state", _STATES, said["state"]),
        risks=_choices("Any risk", {risk: risk.capitalize() for risk in _RISKS}, said["risk"]),
        sort=said["sort"],
        in_all=len(stored.tools),
        matches=_matches(shown),
        pages=part.pages(said, path),
        here=f"{path}?{urlencode({key: value for key, value in said.items() if value})}",
        bulk=_bulk(len(shown), said, agents) if agents else None,
        notice=notice,
    )


def _bulk(shown: int, said: Mapping[str, Any], agents: Sequence[str]) -> bulk.Bar:
    return bulk.Bar(
        action=reverse("web:bulk_tools"),
        fields=tuple(
            pieces.Field(name=name, value=str(value))
            for name, value in said.items()
            if value and name not in ("sort", "offset")
        ),
        count=f"All {words.tools(shown)} shown" if shown > 1 else "The tool shown",
        what="tools",
        words=(("true", "On"), ("false", "Off"), ("unset", "Inherit")),
        agents=tuple(agents),
    )


def matching(shelf: holdings.Shelf, said: Mapping[str, Any]) -> list[catalog.Tool]:
    """Give the tools that the filter shows."""
    return [tool for tool in shelf.catalog.tools.values() if _fits(shelf, tool, said)]


def line(shelf: holdings.Shelf, tool: catalog.Tool) -> tools.ToolLine:
    """Present one tool of the list."""
    prefix, name = model.split(tool.key)
    state, word, about = standing(shelf.closed.get(tool.key))
    return tools.ToolLine(
        key=tool.key,
        prefix=prefix,
        name=name,
        description=texts.visible(words.cut(tool.description or tool.title, sections.LONGEST_DESCRIPTION)),
        risk=access.Risk(word=risks.of(tool), stated=sections.states_risk(tool)),
        tokens=words.number(tool.tokens),
        plugin=tool.plugin,
        toolkits=in_toolkits(shelf.catalog, tool.key),
        state=state,
        word=word,
        about=about,
    )


def standing(closed: resolution.Decision | None) -> tuple[access.State, str, str]:
    """Say how a tool stands whatever the agent: the state, its word, and why."""
    if closed is None:
        return "active", "Available", ""
    word = "Stopped" if closed.code == "blocked" else "Unavailable"
    return closed.state, word, reasons.in_words(closed)


def in_toolkits(stored: catalog.Catalog, key: str) -> tuple[tools.Named, ...]:
    """Name the toolkits that a tool is in."""
    return tuple(
        tools.Named(key=kit.key, title=kit.title or kit.key) for kit in stored.toolkits_of.get(key, ())
    )


def _fits(shelf: holdings.Shelf, tool: catalog.Tool, said: Mapping[str, Any]) -> bool:
    query = str(said["q"]).strip().casefold()
    if query and not any(query in text.casefold() for text in (tool.key, tool.title, tool.description)):
        return False
    if said["plugin"] and tool.plugin != ("" if said["plugin"] == NO_PLUGIN else said["plugin"]):
        return False
    if said["risk"] in _RISKS and risks.of(tool) != said["risk"]:
        return False
    closed = shelf.closed.get(tool.key)
    match said["state"]:
        case "available":
            return closed is None
        case "unavailable":
            return closed is not None and closed.state == "unavailable"
        case "stopped":
            return closed is not None and closed.state == "denied"
        case "default":
            return tool.default_on
    return True


def _plugins(stored: catalog.Catalog, chosen: str) -> tuple[pieces.Choice, ...]:
    names = {name: plugin.title or name for name, plugin in stored.plugins.items()}
    if any(not tool.plugin for tool in stored.tools.values()):
        names[NO_PLUGIN] = "Without a plugin"
    return _choices("Any plugin", dict(sorted(names.items(), key=lambda one: one[1].casefold())), chosen)


def _choices(anything: str, names: Mapping[str, str], chosen: str) -> tuple[pieces.Choice, ...]:
    first = pieces.Choice(value="", label=anything, chosen=chosen not in names)
    rest = (pieces.Choice(value=value, label=label, chosen=value == chosen) for value, label in names.items())
    return (first, *rest)


def _matches(shown: Iterable[catalog.Tool]) -> str:
    every = list(shown)
    tokens = sum(tool.tokens for tool in every)
    return (
        f"{words.tools(len(every))}, {words.about(tokens)} tokens if a model had them all"
        if every
        else words.tools(0)
    )


def _column(name: str, label: str, said: Mapping[str, Any], sort: str, path: str) -> pieces.Column:
    # Of numbers, one wants to see the largest first.
    first = f"-{name}" if name == "tokens" else name
    wanted = sort.removeprefix("-") if sort.startswith("-") else f"-{sort}"
    order = "ascending" if sort == name else "descending" if sort == f"-{name}" else ""
    kept = {key: value for key, value in said.items() if value and key not in ("sort", "offset")}
    return pieces.Column(
        name=name,
        label=label,
        url=f"{path}?{urlencode({**kept, 'sort': wanted if order else first})}",
        order=order,
    )
