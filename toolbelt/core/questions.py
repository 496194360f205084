"""What do the eleven questions ask of one tool? (semantics: The resolution)

Deny comes before allow: questions 1 to 5 close, 6 to 9 open, 10 offers, and nothing that an agent can do (load,
question 8) comes before a denial. A question answers with the one rule that decided, or does not apply (None).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolbelt.core import agents, catalog, grants, loadouts

State = Literal["active", "discoverable", "denied", "dormant", "unavailable"]
STATES: tuple[State, ...] = ("active", "discoverable", "denied", "dormant", "unavailable")


class Origin(NamedTuple):
    """The one rule that decided: ``kind`` (switch, override, loadout, toolkit, plugin, …), its ``name``, ``detail``."""

    kind: str
    name: str
    detail: str = ""


class Answer(NamedTuple):
    """What a question answers, if it does."""

    state: State
    code: str
    origin: Origin


class Question(NamedTuple):
    """One of the eleven: its number, its words, and the function that answers it."""

    number: int
    asks: str
    answer: Callable[[Standing, catalog.Tool], Answer | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A snapshot with what all its questions share worked out once.

    ``denying`` are the views of every loadout whose disabled entries count, ``loadout`` is the one in force.
    ``alone``, ``switched_on`` and ``loaded`` hold the answers of questions 6, 7 and 8 by tool; a subagent has none.
    ``asked`` are the questions from 3 on that can apply to this agent at all.
    """

    catalog: catalog.Catalog
    agent: agents.Agent
    subagent: bool
    denying: tuple[loadouts.View, ...]
    loadout: loadouts.View | None
    loadout_name: str
    toolkits: tuple[str, ...]
    initial: frozenset[str]
    loadable: frozenset[str]
    tools_by_name: frozenset[str]
    plugins_by_name: frozenset[str]
    alone: Mapping[str, Answer]
    switched_on: Mapping[str, Answer]
    loaded: Mapping[str, Answer]
    asked: tuple[Question, ...]


def pattern_for(standing: Standing, tool: catalog.Tool) -> str | None:
    """Give the pattern of the loadout in force that makes the tool discoverable, or None."""
    if standing.loadout is None or not standing.loadout.patterns:
        return None
    return standing.loadout.discovers(tool.key) or standing.loadout.discovers(tool.plugin)


def loaded_by_name(standing: Standing, tool: catalog.Tool) -> Answer | None:
    """Answer for a tool that was loaded by its name or its plugin's, as long as a pattern still matches it."""
    if tool.key in standing.tools_by_name:
        kind, name = "tool", tool.key
    elif tool.plugin and tool.plugin in standing.plugins_by_name:
        kind, name = "plugin", tool.plugin
    else:
        return None
    pattern = pattern_for(standing, tool)
    return Answer("active", "loaded", Origin(kind, name, pattern)) if pattern else None


def _unavailable(standing: Standing, tool: catalog.Tool) -> Answer | None:
    plugin = standing.catalog.plugins.get(tool.plugin)
    if plugin is not None and plugin.status == "failed":
        return Answer("unavailable", "plugin-failed", Origin("plugin", plugin.name))
    if plugin is not None and not plugin.active:
        return Answer("unavailable", "plugin-disabled", Origin("plugin", plugin.name))
    if tool.retired:
        return Answer("unavailable", "tool-retired", Origin("tool", tool.key))
    if not tool.seen and not (plugin is not None and plugin.trusted):
        return Answer("unavailable", "tool-unseen", Origin("tool", tool.key))
    if catalog.is_changed(tool):
        return Answer("unavailable", "tool-changed", Origin("tool", tool.key))
    return None


def _blocked(standing: Standing, tool: catalog.Tool) -> Answer | None:
    if tool.blocked:
        return Answer("denied", "blocked", Origin("tool", tool.key))
    plugin = standing.catalog.plugins.get(tool.plugin)
    if plugin is not None and plugin.blocked:
        return Answer("denied", "blocked", Origin("plugin", plugin.name))
    for toolkit in standing.catalog.toolkits_of.get(tool.key, ()):
        if toolkit.blocked:
            return Answer("denied", "blocked", Origin("toolkit", toolkit.key))
    return None


def _switched_off(standing: Standing, tool: catalog.Tool) -> Answer | None:
    toolkit = grants.switch_off_over(standing.catalog, standing.agent, tool.key)
    if not toolkit:
        return None
    return Answer("denied", "switch-off", Origin("switch", toolkit, grants.until(standing.agent, toolkit)))


def _overridden_off(standing: Standing, tool: catalog.Tool) -> Answer | None:
    if standing.agent.overrides.get(tool.key) is False:
        until = grants.until(standing.agent, tool.key)
        return Answer("denied", "override-off", Origin("override", tool.key, until))
    return None


def _disabled(standing: Standing, tool: catalog.Tool) -> Answer | None:
    for view in standing.denying:
        origin = view.disables(tool.key, tool.plugin)
        if origin:
            level = view.chain.index(origin) + 1
            return Answer(
                "denied", "loadout-disabled", Origin("loadout", origin, f"level {level} of {view.name}")
            )
    return None


def _granted_alone(standing: Standing, tool: catalog.Tool) -> Answer | None:
    return standing.alone.get(tool.key)


def _switched_on(standing: Standing, tool: catalog.Tool) -> Answer | None:
    return standing.switched_on.get(tool.key)


def _loaded(standing: Standing, tool: catalog.Tool) -> Answer | None:
    if standing.subagent:
        return None
    return standing.loaded.get(tool.key) or loaded_by_name(standing, tool)


def brought(standing: Standing, tool: catalog.Tool) -> Answer | None:
    """Answer for a tool that the loadout in force names, or that is on by default where there is none."""
    if standing.loadout is None:
        return Answer("active", "default-on", Origin("tool", tool.key)) if tool.default_on else None
    category = standing.catalog.category(tool)
    brought = standing.loadout.includes(tool.plugin, category)
    if brought is None:
        return None
    kind, origin = brought
    return Answer(
        "active", f"loadout-{kind}", Origin("loadout", origin, tool.plugin if kind == "plugin" else category)
    )


def _discoverable(standing: Standing, tool: catalog.Tool) -> Answer | None:
    for toolkit in standing.catalog.toolkits_of.get(tool.key, ()):
        if toolkit.key in standing.loadable:
            return Answer("discoverable", "loadable", Origin("toolkit", toolkit.key))
    pattern = pattern_for(standing, tool)
    if pattern and standing.loadout is not None:
        return Answer(
            "discoverable", "pattern", Origin("loadout", standing.loadout.patterns[pattern], pattern)
        )
    return None


def _otherwise(standing: Standing, tool: catalog.Tool) -> Answer:
    return Answer("dormant", "not-granted", Origin("agent", standing.agent.key))


QUESTIONS = (
    Question(
        1,
        "Is its plugin failed or disabled, or the tool retired, unseen or changed since its approval?",
        _unavailable,
    ),
    Question(2, "Is the tool, its plugin or a toolkit over it blocked for everyone?", _blocked),
    Question(3, "Is any switch over it off?", _switched_off),
    Question(4, "Is its override off?", _overridden_off),
    Question(5, "Does the loadout, at any level of its chain, disable the tool or its plugin?", _disabled),
    Question(6, "Is its override on, is it always on, or bound by a sub-app?", _granted_alone),
    Question(7, "Is any switch over it on?", _switched_on),
    Question(8, "Is it in a toolkit that this session has, or loaded by name?", _loaded),
    Question(
        9,
        "Does the loadout name its plugin or category, or, without a loadout, is it on by default?",
        brought,
    ),
    Question(
        10, "Is it in an allowed toolkit that is not loaded, or does a pattern match it?", _discoverable
    ),
    Question(11, "Otherwise", _otherwise),
)
# The first two look at the catalog alone, so their answers can be kept with it.
OF_THE_CATALOG = QUESTIONS[:2]
OF_THE_AGENT = QUESTIONS[2:]
