"""How are the list of sub-apps, the page of one, and its editor filled?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from django.urls import reverse

from toolbelt.control import holdings
from toolbelt.core import belts, catalog, errors, reasons, resolution, risks
from toolbelt.web import drafts, sub_app_drafts, words
from toolbelt.web.pages import model, sections
from toolbelt.web.presenters import access, answers, pieces
from toolbelt.web.presenters import sub_apps as presenters

_FIELDS = ("key", "title", "description", "agents")
# As many reasons as one reads.
_MOST_WITHOUT = 8


def listing(
    found: holdings.Holdings, *, here: str, notice: answers.Notice | None, may_add: bool, may_order: bool
) -> presenters.SubAppsPage:
    """Fill the list."""
    names = list(found.catalog.sub_apps)
    count = len(names)
    return presenters.SubAppsPage(
        sub_apps=tuple(
            _line(
                found,
                sub_app,
                names[place - 1] if place else "",
                names[place + 1] if place + 1 < count else "",
            )
            for place, sub_app in enumerate(found.catalog.sub_apps.values())
        ),
        total=f"{words.number(count)} sub-app{'' if count == 1 else 's'}",
        notice=notice,
        may_add=may_add,
        may_order=may_order,
        here=here,
    )


def page(
    found: holdings.Holdings,
    key: str,
    *,
    here: str,
    notice: answers.Notice | None,
    may_change: bool,
    may_remove: bool,
) -> presenters.SubAppPage:
    """Fill the page of one. Raises errors.NotFound."""
    sub_app = found.catalog.sub_apps.get(key)
    if sub_app is None:
        raise errors.NotFound("sub-app", key, found.catalog.sub_apps)
    closed = holdings.closed(found.catalog)
    tools = [found.catalog.tools[tool] for tool in _tools(found, sub_app)]
    return presenters.SubAppPage(
        key=key,
        title=sub_app.title or key,
        description=sub_app.description,
        tools=tuple(_bound(tool, closed) for tool in tools),
        tokens=words.about(sum(tool.tokens for tool in tools)),
        agents=tuple(_embedded(found, sub_app)),
        seen=json.dumps(belts.entry("sub_app", sub_app), ensure_ascii=False),
        notice=notice,
        may_change=may_change,
        may_remove=may_remove,
        here=here,
    )


def form(
    stored: catalog.Catalog,
    agents: Sequence[str],
    draft: sub_app_drafts.Draft,
    *,
    new: bool,
    action: str,
    back: str,
    seen: str,
    reason: str,
    problems: Mapping[str, str],
) -> presenters.Form:
    """Fill the editor; ``agents`` are there to be embedded, ``problems`` are by their places in the entry."""
    said = {name: text for name in _FIELDS if (text := drafts.at(problems, name))}
    if "tool_names" in problems:
        said["tool_names"] = problems["tool_names"]
    rest = [
        text for place, text in problems.items() if place.partition("[")[0] not in (*_FIELDS, "tool_names")
    ]
    if problems:
        said[""] = " ".join(rest) or "Look at what is marked."
    return presenters.Form(
        key=draft.name,
        new=new,
        action=action,
        back=back,
        title=draft.title,
        description=draft.description,
        tools=tuple(
            presenters.Row(
                place=place,
                key=key,
                about=_about(stored, key),
                problem=problems.get(f"tool_names[{place}]", ""),
            )
            for place, key in enumerate(draft.tools)
        ),
        agents=tuple(
            pieces.Choice(value=key, label=key, chosen=key in draft.agents)
            for key in dict.fromkeys((*agents, *draft.agents))
        ),
        known=tuple(key for key in stored.tools if key not in draft.tools),
        reason=reason,
        seen=seen,
        problems=said,
    )


def _line(found: holdings.Holdings, sub_app: catalog.SubApp, up: str, down: str) -> presenters.SubAppLine:
    tools = _tools(found, sub_app)
    pairs = [
        tool in holder.active
        for holder in found.holders
        if holder.agent.key in sub_app.agents
        for tool in tools
    ]
    return presenters.SubAppLine(
        key=sub_app.key,
        title=sub_app.title or sub_app.key,
        description=sub_app.description,
        agents=sub_app.agents,
        tools=words.number(len(tools)),
        held=""
        if all(pairs)
        else f"{words.number(len(pairs) - sum(pairs))} of {words.number(len(pairs))} denied",
        up=up,
        down=down,
    )


def _tools(found: holdings.Holdings, sub_app: catalog.SubApp) -> list[str]:
    return [tool for tool in sub_app.tool_names if tool in found.catalog.tools]


def _bound(tool: catalog.Tool, closed: Mapping[str, resolution.Decision]) -> presenters.Bound:
    prefix, name = model.split(tool.key)
    decision = closed.get(tool.key)
    return presenters.Bound(
        key=tool.key,
        prefix=prefix,
        name=name,
        description=words.cut(tool.description or tool.title, sections.LONGEST_DESCRIPTION),
        risk=access.Risk(word=risks.of(tool), stated=sections.states_risk(tool)),
        tokens=words.number(tool.tokens),
        state=decision.state if decision else "",
        about=reasons.in_words(decision) if decision else "",
    )


def _embedded(found: holdings.Holdings, sub_app: catalog.SubApp) -> Iterator[presenters.Embedded]:
    tools = _tools(found, sub_app)
    holders = {holder.agent.key: holder for holder in found.holders}
    for key in sub_app.agents:
        if key not in holders:
            continue
        decisions = [holders[key].decision(tool) for tool in tools]
        without = [(one.tool, reasons.in_words(one)) for one in decisions if one.state != "active"]
        active = len(decisions) - len(without)
        yield presenters.Embedded(
            key=key,
            url=reverse("web:agent_access", args=[key]),
            state="active" if not without else "discoverable" if active else "denied",
            word=f"{active} of {len(decisions)} active",
            without=tuple(without[:_MOST_WITHOUT]),
            rest=f"and {len(without) - _MOST_WITHOUT} more" if len(without) > _MOST_WITHOUT else "",
        )


def _about(stored: catalog.Catalog, key: str) -> str:
    tool = stored.tools.get(key)
    return words.cut(tool.description or tool.title, 100) if tool else ""
