"""The list of sub-apps, and the page of one."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.urls import reverse

from toolbelt.control.access import access_index
from toolbelt.core import belts, catalog, errors, reasons
from toolbelt.web.kit import pieces, words

# As many reasons as one reads.
_MAX_WITHOUT = 8


def listing(index: access_index.AccessIndex) -> pieces.View:
    """Return the list."""
    names = ["", *index.catalog.sub_apps, ""]
    return pieces.View(
        sub_apps=tuple(
            _line(index, sub_app, up, down)
            for sub_app, up, down in zip(index.catalog.sub_apps.values(), names, names[2:], strict=False)
        ),
        total=words.counted(len(index.catalog.sub_apps), "sub-app"),
    )


def page(index: access_index.AccessIndex, key: str) -> pieces.View:
    """Return the page of one. Raise errors.NotFound."""
    sub_app = index.catalog.sub_apps.get(key)
    if sub_app is None:
        raise errors.NotFound("sub-app", key, index.catalog.sub_apps)
    closed = access_index.closed(index.catalog)
    tools = [index.catalog.tools[tool] for tool in _tools(index, sub_app)]
    return pieces.View(
        key=key,
        title=sub_app.title or key,
        description=sub_app.description,
        tools=tuple((tool, closed.get(tool.key)) for tool in tools),
        tokens=words.about(sum(tool.tokens for tool in tools)),
        agents=tuple(_embedded(index, sub_app)),
        seen=json.dumps(belts.entry("sub_app", sub_app), ensure_ascii=False),
    )


def _line(index: access_index.AccessIndex, sub_app: catalog.SubApp, up: str, down: str) -> pieces.View:
    tools = _tools(index, sub_app)
    pairs = [
        tool in access.active
        for access in index.agents
        if access.agent.key in sub_app.agents
        for tool in tools
    ]
    return pieces.View(
        key=sub_app.key,
        title=sub_app.title or sub_app.key,
        description=sub_app.description,
        agents=sub_app.agents,
        tools=words.number(len(tools)),
        held=""
        if all(pairs)
        else f"{words.number(len(pairs) - sum(pairs))} of {words.number(len(pairs))} not on",
        up=up,
        down=down,
    )


def _tools(index: access_index.AccessIndex, sub_app: catalog.SubApp) -> list[str]:
    return [tool for tool in sub_app.tool_names if tool in index.catalog.tools]


def _embedded(index: access_index.AccessIndex, sub_app: catalog.SubApp) -> Iterator[pieces.View]:
    tools = _tools(index, sub_app)
    accesses = {access.agent.key: access for access in index.agents}
    for key in sub_app.agents:
        if key not in accesses:
            continue
        decisions = [accesses[key].decision(tool) for tool in tools]
        without = [
            (decision.tool, reasons.explain(decision)) for decision in decisions if decision.state != "active"
        ]
        active = len(decisions) - len(without)
        yield pieces.View(
            key=key,
            url=reverse("web:agent_access", args=[key]),
            state="active" if not without else "discoverable" if active else "denied",
            word=f"{active} of {len(decisions)} on",
            without=tuple(without[:_MAX_WITHOUT]),
            rest=f"and {len(without) - _MAX_WITHOUT} more" if len(without) > _MAX_WITHOUT else "",
        )
