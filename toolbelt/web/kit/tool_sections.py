"""The sections of tools, and their switches: a toolkit, or a plugin's tools outside all toolkits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils import timezone

from toolbelt.control.reports import queries
from toolbelt.core import catalog, gate_rules, grants, policy, risks
from toolbelt.core.rules import reasons, resolution
from toolbelt.web.kit import explained, pieces, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A label beside a section's title. `tone` is "quiet", "accent", "warning" or "danger"."""

    word: str
    tone: str = "quiet"


# Upstream servers send whole pages: a row shows the beginning, but the filter searches all of it.
MAX_DESCRIPTION_LENGTH = 240
_INHERITS = {"active": "on", "discoverable": "on request"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The tools of a section, in order: of a toolkit, or of a plugin outside all toolkits."""

    id: str
    toolkit: catalog.Toolkit | None
    plugin: catalog.Plugin | None
    tools: Sequence[str]

    @property
    def key(self) -> str:
        """Return the name of the toolkit or plugin."""
        return self.id.partition("-")[2]


def groups(access: queries.Access) -> Iterator[Group]:
    """Yield the sections: toolkits in their order, then plugins' tools outside them, then tools without a plugin."""
    stored = access.catalog
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


def state(access: queries.Access, group: Group) -> str:
    """Return the state of a section: "on" (any of its tools is), "request", "off", or "loose" (not a toolkit)."""
    if group.toolkit is None:
        return "loose"
    if any(key in access.surface.resolution.active for key in group.tools):
        return "on"
    loadable = any(access.decision(key).state == "discoverable" for key in group.tools)
    return "request" if loadable else "off"


class Section(pieces.View):
    """One section. ``tools`` are its ``matching`` tools; None if they are fetched when it is opened."""

    def __init__(
        self,
        access: queries.Access,
        group: Group,
        *,
        is_open: bool = False,
        matching: int = 0,
        tools: Sequence[Row] | None = None,
    ) -> None:
        self.open, self.matching, self.tools = is_open, matching, tools
        keys = [key for key in group.tools if key not in access.catalog.non_tools]
        active = [key for key in keys if access.decision(key).state == "active"]
        overridden = [key for key in group.tools if key in access.agent.overrides]
        toolkit, entry = group.toolkit, group.toolkit or group.plugin
        self.id = group.id
        self.key = group.key
        self.state = state(access, group)
        self.kind = "toolkit" if toolkit else "plugin" if entry else ""
        self.title = (entry.title or group.key) if entry else "Tools without a plugin"
        self.description = entry.description if entry else ""
        self.marks = tuple(_marks(access, group))
        self.switch = _switch(access, toolkit, keys or group.tools) if toolkit is not None else None
        self.active = len(active)
        self.total = len(keys)
        self.tokens, self.token_parts = _tokens(access, group, active)
        self.hint = _hint(access, group, [access.decision(key).state for key in group.tools])
        self.overrides = tuple(f"{key}={words.form_value(access.agent.overrides[key])}" for key in overridden)


def rows(access: queries.Access, keys: Iterable[str]) -> tuple[Row, ...]:
    """Return the rows of these tools."""
    decisions = {key: access.decision(key) for key in keys}
    explanations = explained.Explanations(decisions.values())
    return tuple(Row(access, key, explanations.of(decision)) for key, decision in decisions.items())


class Row(pieces.View):
    """One tool of a section."""

    def __init__(self, access: queries.Access, key: str, reason: str) -> None:
        tool, decision = access.catalog.tools[key], access.decision(key)
        stored = access.agent.overrides.get(key)
        inherited = access.inherited.get(key, decision)
        if decision.state != "active" and stored is True:
            reason += " (stored: On)"
        self.key = key
        self.description = purpose(tool)
        self.risk = risk(tool)
        self.stored = words.form_value(stored)
        self.inherits = _INHERITS.get(inherited.state, "off")
        self.state = decision.state
        self.word = words.state_of(decision)
        self.reason = reason
        self.until = _until(access, key)
        self.by = _by(access, key)
        self.at_the_gate = _at_the_gate(access, key)


def _at_the_gate(access: queries.Access, tool: str) -> str:
    """Return what gate rules do to calls of a tool, in words; empty if none concerns them."""
    if not access.catalog.gate_rules:
        return ""
    steps = gate_rules.explain(access.catalog, access.agent, tool, at=timezone.now())
    return "; ".join(gate_rules.in_words(step.rule) for step in steps if not step.has_ended)


def _tokens(access: queries.Access, group: Group, active: Sequence[str]) -> tuple[str, str]:
    """Return the tokens of the active tools and of the toolkit's policy: their sum, and each of them; empty if none."""
    stored, tools = access.catalog, sum(access.catalog.tools[key].tokens for key in active)
    in_policy = 0
    if group.toolkit is not None and (active or group.key in access.surface.resolution.context.concerned):
        in_policy = policy.section_tokens(stored, policy.section_of(stored, group.toolkit, active))
    if not tools and not in_policy:
        return "", ""
    parts = f"tools {words.approx(tools)} + policy {words.approx(in_policy)}" if in_policy else ""
    return words.approx(tools + in_policy), parts


def _marks(access: queries.Access, group: Group) -> Iterator[Mark]:
    if group.toolkit is not None:
        if group.toolkit.blocked:
            yield Mark(word=words.blocked(group.toolkit.block_ends), tone="danger")
        if any(access.catalog.is_not_running(key) for key in group.tools):
            yield Mark(word="not running", tone="warning")
        if group.key in access.agent.initial_toolkits:
            yield Mark(word="in every session", tone="accent")
        elif group.key in access.agent.allowed_toolkits:
            yield Mark(word="on request", tone="accent")
    elif group.plugin is not None:
        if group.plugin.status == "failed":
            yield Mark(word="failed", tone="danger")
        if group.plugin.not_running:
            yield Mark(word="not running", tone="warning")
        if not group.plugin.active:
            yield Mark(word="off", tone="warning")
        if group.plugin.blocked:
            yield Mark(word=words.blocked(group.plugin.block_ends), tone="danger")


def _switch(access: queries.Access, toolkit: catalog.Toolkit, tools: Sequence[str]) -> Switch:
    stored = access.agent.switches.get(toolkit.key)
    newest = access.switched.get(toolkit.key)
    is_newest = stored is not None and newest is not None and grants.is_on(newest.after) is stored
    return Switch(
        stored,
        [access.decision(key) for key in tools],
        since=f"by {newest.actor}, {words.since(newest.at)}" if is_newest and newest else "",
        until=_until(access, toolkit.key),
        by=_by(access, toolkit.key),
    )


def _by(access: queries.Access, key: str) -> str:
    newest = access.switched.get(key)
    return newest.actor if newest is not None else ""


def _until(access: queries.Access, key: str) -> str:
    end = access.agent.ends.get(key)
    return f"until {words.until(end.at)} · {words.time_left(end.at)}" if end is not None else ""


def _hint(access: queries.Access, group: Group, states: Sequence[str]) -> str:
    if group.toolkit is not None and access.agent.switches.get(group.key) is False:
        # Tools with an override that turns them off do not depend on the switch.
        stored = access.agent.overrides
        saved = sum(access.catalog.tools[key].tokens for key in group.tools if stored.get(key) is not False)
        return f"saves {words.approx(saved)} tokens"
    loadable = states.count("discoverable")
    if loadable:
        return f"{loadable} on request"
    unavailable = states.count("unavailable")
    return f"{unavailable} unavailable" if unavailable else ""


class Switch(pieces.View):
    """The switch: it shows whether the model has the toolkit's tools, and a press requests the opposite.

    ``position`` is "on", "partly" or "off". ``stored`` is "unset" if nothing is stored. ``other`` is the value of the
    link beside the switch: it resets the switch, or stores its default. ``no_effect`` is the reason why turning the
    switch on has no effect; empty if it has one.
    """

    def __init__(
        self,
        stored: bool | None,
        decisions: Collection[resolution.Decision],
        *,
        since: str = "",
        until: str = "",
        by: str = "",
    ) -> None:
        active = sum(decision.state == "active" for decision in decisions)
        position = "off" if not active else "on" if active == len(decisions) else "partly"
        is_loadable = any(decision.state == "discoverable" for decision in decisions)
        is_blocked = bool(decisions) and all(decision.code == "blocked" for decision in decisions)
        off = words.BLOCKED if is_blocked else words.STATES["discoverable" if is_loadable else "denied"]
        basis, other, label = "", "unset", "Reset to default"
        if stored is None:
            basis, other, label = "Default", *(("true", "Set to On") if active else ("false", "Set to Off"))
        elif stored and not active:
            basis = "set to On"
        self.stored = words.form_value(stored)
        self.position = position
        self.requested = "false" if active else "true"
        self.words = {"off": off, "on": "On", "partly": f"{active} of {len(decisions)} on"}[position]
        self.basis = basis
        self.other = other
        self.label = label
        self.no_effect = _no_effect_reason(decisions) if not active else ""
        self.since = since
        self.until = until
        self.by = by


def _no_effect_reason(decisions: Collection[resolution.Decision]) -> str:
    if not decisions or not all(decision.holds_whatever_the_switch for decision in decisions):
        return ""
    return f"turning it on has no effect: {reasons.explain_briefly(next(iter(decisions)))}"


def risk(tool: catalog.Tool) -> str:
    """Return the label beside a tool's name: its stated risk, or its kind if it is not a tool."""
    return risks.stated(tool) if tool.kind == "tool" else words.KINDS[tool.kind]


def purpose(tool: catalog.Tool) -> str:
    """Return the purpose of a tool in one line."""
    return words.cut(tool.description or tool.title, MAX_DESCRIPTION_LENGTH)
