"""The eleven rules that decide about a tool (docs/semantics.md: The eleven rules).

Denials come first: rules 1 to 5 deny, 6 to 9 grant, 10 offers, and nothing that an agent can do (load, rule 8) precedes
a denial. A rule returns its answer, or None if it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolbelt.core import agents, catalog, declared_versions, grants, loadouts, sessions, tool_versions

State = Literal["active", "discoverable", "denied", "dormant", "unavailable"]
STATES: tuple[State, ...] = ("active", "discoverable", "denied", "dormant", "unavailable")


class Origin(NamedTuple):
    """The origin of a decision: its ``kind`` (switch, override, loadout, …), its ``name``, and a ``detail``."""

    kind: str
    name: str
    detail: str = ""


class Answer(NamedTuple):
    """The result of a rule that applies."""

    state: State
    code: str
    origin: Origin


class Rule(NamedTuple):
    """One of the eleven rules: its number, its text, and the function that applies it."""

    number: int
    text: str
    answer: Callable[[EvaluationContext, catalog.Tool], Answer | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationContext:
    """A snapshot with the values that its rules share.

    ``denying`` are the views of all loadouts whose disabled entries apply, ``loadout`` is the one in force.
    ``granted_alone``, ``switched_on`` and ``loaded`` hold the answers of rules 6, 7 and 8 by tool; a subagent has none.
    ``rules`` are the rules from 3 on that can apply to this agent. ``load_order`` is what the session loaded, the
    oldest load first. ``has_session``: the request has a session, in which something can be loaded.
    ``concerned`` are the toolkits whose off texts the agent gets.
    """

    catalog: catalog.Catalog
    agent: agents.Agent
    subagent: bool
    has_session: bool
    concerned: frozenset[str]
    denying: tuple[loadouts.View, ...]
    loadout: loadouts.View | None
    loadout_name: str
    toolkits: tuple[str, ...]
    initial: frozenset[str]
    loadable: frozenset[str]
    tools_by_name: frozenset[str]
    plugins_by_name: frozenset[str]
    load_order: tuple[tuple[sessions.Kind, str], ...]
    granted_alone: Mapping[str, Answer]
    switched_on: Mapping[str, Answer]
    loaded: Mapping[str, Answer]
    rules: tuple[Rule, ...]


def pattern_for(context: EvaluationContext, tool: catalog.Tool) -> str | None:
    """Return the pattern of the loadout in force that makes the tool discoverable, or None."""
    if context.loadout is None or not context.loadout.patterns:
        return None
    return context.loadout.discovers(tool.key) or context.loadout.discovers(tool.plugin)


def loaded_by_name(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    """Return the answer for a tool that was loaded by its name or its plugin's, while a pattern still matches it."""
    if tool.key in context.tools_by_name:
        kind, name = "tool", tool.key
    elif tool.plugin and tool.plugin in context.plugins_by_name:
        kind, name = "plugin", tool.plugin
    else:
        return None
    pattern = pattern_for(context, tool)
    return Answer("active", "loaded", Origin(kind, name, pattern)) if pattern else None


def block_over(stored: catalog.Catalog, tool: catalog.Tool) -> Origin | None:
    """Return what is blocked for everyone: the tool, its plugin or one of its toolkits; None if nothing is."""
    if tool.blocked:
        return Origin("tool", tool.key)
    plugin = stored.plugins.get(tool.plugin)
    if plugin is not None and plugin.blocked:
        return Origin("plugin", plugin.name)
    for toolkit in stored.toolkits_of.get(tool.key, ()):
        if toolkit.blocked:
            return Origin("toolkit", toolkit.key)
    return None


def _unavailable(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    plugin = context.catalog.plugins.get(tool.plugin)
    if plugin is not None and plugin.status == "failed":
        return Answer("unavailable", "plugin-failed", Origin("plugin", plugin.name))
    if plugin is not None and not plugin.active:
        return Answer("unavailable", "plugin-disabled", Origin("plugin", plugin.name))
    if tool.retired:
        return Answer("unavailable", "tool-retired", Origin("tool", tool.key))
    if context.catalog.is_not_running(tool.key):
        return Answer("unavailable", "not-running", Origin("plugin", tool.plugin))
    if tool.schema_problem:
        return Answer("unavailable", "schema-invalid", Origin("tool", tool.key, tool.schema_problem))
    if tool.blocked and tool_versions.is_rejected(tool):
        return None  # blocked until it is reviewed again
    if not tool.seen and not (plugin is not None and plugin.trusted):
        return Answer("unavailable", "tool-unseen", Origin("tool", tool.key))
    if tool_versions.is_changed(declared_versions.offered(tool)):
        return Answer("unavailable", "tool-changed", Origin("tool", tool.key))
    return None


def _blocked(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    origin = block_over(context.catalog, tool)
    return Answer("denied", "blocked", origin) if origin is not None else None


def _switched_off(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    toolkit = grants.switch_off_over(context.catalog, context.agent, tool.key)
    if not toolkit:
        return None
    return Answer(
        "denied", "switch-off", Origin("switch", toolkit, grants.describe_expiry(context.agent, toolkit))
    )


def _overridden_off(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    if context.agent.overrides.get(tool.key) is False:
        until = grants.describe_expiry(context.agent, tool.key)
        return Answer("denied", "override-off", Origin("override", tool.key, until))
    return None


def _disabled(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    for view in context.denying:
        origin = view.disables(tool.key, tool.plugin)
        if origin:
            level = view.chain.index(origin) + 1
            return Answer(
                "denied", "loadout-disabled", Origin("loadout", origin, f"level {level} of {view.name}")
            )
    return None


def _granted_alone(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    return context.granted_alone.get(tool.key)


def _switched_on(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    return context.switched_on.get(tool.key)


def _loaded(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    if context.subagent:
        return None
    return context.loaded.get(tool.key) or loaded_by_name(context, tool)


def included(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    """Return the answer for a tool that the loadout in force includes, or that is on by default without a loadout."""
    if context.loadout is None:
        return Answer("active", "default-on", Origin("tool", tool.key)) if tool.default_on else None
    category = context.catalog.category(tool)
    source = context.loadout.includes(tool.plugin, category)
    if source is None:
        return None
    kind, origin = source
    return Answer(
        "active", f"loadout-{kind}", Origin("loadout", origin, tool.plugin if kind == "plugin" else category)
    )


def _discoverable(context: EvaluationContext, tool: catalog.Tool) -> Answer | None:
    for toolkit in context.catalog.toolkits_of.get(tool.key, ()):
        if toolkit.key in context.loadable:
            return Answer("discoverable", "loadable", Origin("toolkit", toolkit.key))
    pattern = pattern_for(context, tool)
    if pattern and context.loadout is not None:
        return Answer(
            "discoverable", "pattern", Origin("loadout", context.loadout.patterns[pattern], pattern)
        )
    return None


def _otherwise(context: EvaluationContext, tool: catalog.Tool) -> Answer:
    return Answer("dormant", "not-granted", Origin("agent", context.agent.key))


RULES = (
    Rule(
        1,
        "Has its plugin failed or been disabled, or is the tool retired, not running, invalid, new, or changed?",
        _unavailable,
    ),
    Rule(2, "Is the tool, its plugin or one of its toolkits blocked for everyone?", _blocked),
    Rule(3, "Is the switch of one of its toolkits off?", _switched_off),
    Rule(4, "Is its override off?", _overridden_off),
    Rule(5, "Does the agent's loadout, or one that it extends, disable the tool or its plugin?", _disabled),
    Rule(6, "Is its override on, is it an always-on tool, or does a sub-app bind it?", _granted_alone),
    Rule(7, "Is the switch of one of its toolkits on?", _switched_on),
    Rule(8, "Is it in a toolkit that this session has, or was it loaded by name?", _loaded),
    Rule(
        9,
        "Does the loadout include its plugin or category? Or, without a loadout, is it on by default?",
        included,
    ),
    Rule(
        10,
        "Is it in a toolkit that the agent may load, or does a pattern of the agent's loadout match it?",
        _discoverable,
    ),
    Rule(11, "Otherwise", _otherwise),
)
# The first two depend only on the catalog, which can therefore cache their answers.
CATALOG_RULES = RULES[:2]
AGENT_RULES = RULES[2:]
DENYING_RULES = RULES[1:5]
