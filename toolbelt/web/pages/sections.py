"""How is a section of the Access page filled: a toolkit, or a plugin's tools outside all toolkits?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolbelt.control import queries
from toolbelt.core import catalog, grants, reasons, risks
from toolbelt.web import words
from toolbelt.web.pages import model
from toolbelt.web.presenters import access

# Upstream servers write whole pages: a row shows the beginning, and the filter searches all of it.
LONGEST_DESCRIPTION = 240
_INHERITS = {"active": "on", "discoverable": "loadable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What one section is about: a toolkit, or a plugin's tools outside all toolkits; its tools, in order."""

    id: str
    toolkit: catalog.Toolkit | None
    plugin: catalog.Plugin | None
    tools: Sequence[str]

    @property
    def key(self) -> str:
        """Name the toolkit or plugin."""
        return self.id.partition("-")[2]


def groups(found: queries.Access) -> Iterator[Group]:
    """List the sections: toolkits in their order, then plugins' tools outside them, then tools without a plugin."""
    stored = found.catalog
    for toolkit in stored.toolkits.values():
        members = [member.tool for member in toolkit.members if member.tool in stored.tools]
        yield Group(id=f"toolkit-{toolkit.key}", toolkit=toolkit, plugin=None, tools=members)
    outside: dict[str, list[str]] = {}
    for key, tool in stored.tools.items():
        if key not in stored.toolkits_of:
            outside.setdefault(tool.plugin, []).append(key)
    for name in sorted(outside, key=lambda name: (not name, name.casefold())):
        section = f"plugin-{name}" if name else "unplugged"
        yield Group(id=section, toolkit=None, plugin=stored.plugins.get(name), tools=sorted(outside[name]))


def overridden(found: queries.Access) -> list[str]:
    """Name the sections that hold a tool with an override."""
    return [group.id for group in groups(found) if any(key in found.agent.overrides for key in group.tools)]


def section(
    found: queries.Access,
    group: Group,
    *,
    matching: int,
    shown: tuple[access.ToolRow, ...] | None,
    is_open: bool,
    open_url: str,
) -> access.Section:
    """Fill one section."""
    states = [found.decision(key).state for key in group.tools]
    active = [key for key, state in zip(group.tools, states, strict=True) if state == "active"]
    tokens = sum(found.catalog.tools[key].tokens for key in active)
    overridden = [key for key in group.tools if key in found.agent.overrides]
    toolkit = group.toolkit
    if toolkit is not None:
        title, description = toolkit.title or toolkit.key, toolkit.description
    elif group.plugin is not None:
        title, description = group.plugin.title or group.plugin.name, group.plugin.description
    else:
        title, description = "Tools without a plugin", ""
    return access.Section(
        id=group.id,
        key=group.key,
        title=title,
        description=description,
        marks=tuple(_marks(found, group)),
        trouble="",
        switch=_switch(found, toolkit) if toolkit is not None else None,
        active=len(active),
        total=len(group.tools),
        matching=matching,
        size=f"{words.about(tokens)} tokens" if active else "",
        hint=_hint(found, group, states),
        overrides=tuple(f"{key}={words.stored(found.agent.overrides[key])}" for key in overridden),
        open=is_open,
        tools=shown,
        open_url=open_url,
    )


def row(found: queries.Access, key: str) -> access.ToolRow:
    """Fill one tool's row."""
    tool, decision = found.catalog.tools[key], found.decision(key)
    prefix, name = model.split(key)
    stored = found.agent.overrides.get(key)
    inherited = found.inherited.get(key, decision)
    reason = reasons.briefly(decision)
    if decision.state != "active" and stored is True:
        reason += " (stored: On)"
    return access.ToolRow(
        key=key,
        prefix=prefix,
        name=name,
        description=words.cut(tool.description or tool.title, LONGEST_DESCRIPTION),
        risk=access.Risk(word=risks.of(tool), stated=states_risk(tool)),
        tokens=words.number(tool.tokens),
        stored=words.stored(stored),
        inherits=_INHERITS.get(inherited.state, "off"),
        state=decision.state,
        reason=reason,
        until=_until(found, key),
        by=_by(found, key),
    )


def _marks(found: queries.Access, group: Group) -> Iterator[access.Mark]:
    if group.toolkit is not None:
        if group.toolkit.blocked:
            yield access.Mark(word="blocked for everyone", tone="danger")
        if group.key in found.agent.initial_toolkits:
            yield access.Mark(word="in every session", tone="accent")
        elif group.key in found.agent.allowed_toolkits:
            yield access.Mark(word="on demand", tone="accent")
    elif group.plugin is not None:
        if group.plugin.status == "failed":
            yield access.Mark(word="failed", tone="danger")
        if not group.plugin.active:
            yield access.Mark(word="disabled", tone="warning")
        if group.plugin.blocked:
            yield access.Mark(word="blocked for everyone", tone="danger")


def _switch(found: queries.Access, toolkit: catalog.Toolkit) -> access.Switch:
    on = found.agent.switches.get(toolkit.key)
    newest = found.switched.get(toolkit.key)
    told = newest is not None and grants.is_on(newest.after) is on and on is not None
    said = {True: "On", False: "Off", None: "Follows defaults"}[on]
    return access.Switch(
        stored=words.stored(on),
        words=said,
        since=f"by {newest.actor}, {words.moment(newest.at).words}" if told and newest else "",
        until=_until(found, toolkit.key),
        by=_by(found, toolkit.key),
    )


def _by(found: queries.Access, key: str) -> str:
    newest = found.switched.get(key)
    return newest.actor if newest is not None else ""


def _until(found: queries.Access, key: str) -> str:
    end = found.agent.ends.get(key)
    return f"until {words.until(end.at)} · {words.left(end.at)}" if end is not None else ""


def _hint(found: queries.Access, group: Group, states: Sequence[str]) -> str:
    if group.toolkit is not None and found.agent.switches.get(group.key) is False:
        # What its own override keeps off, the switch does not.
        kept_off = found.agent.overrides
        held = sum(found.catalog.tools[key].tokens for key in group.tools if kept_off.get(key) is not False)
        return f"keeps {words.about(held)} tokens out"
    loadable = states.count("discoverable")
    if loadable:
        return f"{loadable} loadable"
    unavailable = states.count("unavailable")
    return f"{unavailable} unavailable" if unavailable else ""


def states_risk(tool: catalog.Tool) -> bool:
    """Say whether the tool says anything of what it may do."""
    hints = json.loads(tool.annotations) if tool.annotations else {}
    return isinstance(hints, dict) and ("readOnlyHint" in hints or "destructiveHint" in hints)
