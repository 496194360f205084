"""Whom and what a gate rule concerns, and what its author should know before it is saved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import agents, catalog, conditions, gate_rules, schema
from toolbelt.store import call_counts, clock, operators

# The most counts that are shown of a rule.
MAX_COUNTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEffect:
    """The agents and tools whose calls a rule concerns, by key, and what to check before it is saved."""

    agents: tuple[str, ...]
    tools: tuple[str, ...]
    notes: tuple[str, ...]


def of(stored: catalog.Catalog, rule: catalog.GateRule, all_agents: Collection[agents.Agent]) -> RuleEffect:
    """Return whom and what a rule concerns; archived agents make no calls."""
    concerned = [agent.key for agent in gate_rules.agents_of(stored, rule, all_agents) if not agent.archived]
    tools = [*gate_rules.tools_of(stored, rule)]
    return RuleEffect(
        agents=tuple(sorted(concerned)),
        tools=tuple(tool.key for tool in tools),
        notes=tuple(_notes(stored, rule, tools, has_agents=bool(concerned))),
    )


def running(rule: catalog.GateRule) -> tuple[call_counts.StoredCount, ...]:
    """Return the highest counts of a rule that are running."""
    return tuple(call_counts.running(rule.key, clock.now(), MAX_COUNTS))


def _notes(
    stored: catalog.Catalog, rule: catalog.GateRule, tools: Collection[catalog.Tool], *, has_agents: bool
) -> Iterator[str]:
    if rule.effect == "allow" and not any(other.effect == "ask" for other in stored.gate_rules.values()):
        yield "It changes nothing yet: no rule asks, and a rule that allows never turns a denial."
    for group in operators.empty_groups(rule.approvers) if rule.approvers else ():
        yield f"No one is in the group {group!r}, so that no one can approve for it: add people to it in the admin."
    if not tools:
        yield "It concerns no tool yet."
    if not has_agents:
        yield "It concerns no agent yet."
    brought = frozenset().union(*stored.brings.values()) if stored.brings else frozenset[str]()
    for label in sorted({*rule.labels, *rule.without} - brought):
        yield f"No tool brings the label {label!r} yet: name it in the brings of a tool or toolkit."
    schemas = [schema.mapping(tool.input_schema, schema.EMPTY) for tool in tools]
    for word, text in (("when", rule.when), ("unless", rule.unless)):
        for name in conditions.fields_of_text(text):
            if schemas and not any(_lists(each, name) for each in schemas):
                outcome = "never applies" if word == "when" and rule.effect != "allow" else "may never hold"
                yield f"No tool that it concerns lists an argument {name!r}, so it {outcome}: check its spelling."
        yield from _of_other_types(rule, text, tools)


def _of_other_types(rule: catalog.GateRule, text: str, tools: Collection[catalog.Tool]) -> Iterator[str]:
    """Yield what is to be known of conditions about another type than an argument of a tool has."""
    for name, about in conditions.types(text).items():
        for tool in tools:
            properties = schema.mapping(tool.input_schema, schema.EMPTY).get("properties")
            takes = properties.get(name) if isinstance(properties, Mapping) else None
            named = conditions.named_types(takes) if isinstance(takes, Mapping) else frozenset[str]()
            if named and about.isdisjoint(named):
                outcome = "applies to none" if rule.effect == "allow" else "applies to all"
                yield (
                    f"{tool.key} takes a {' or '.join(sorted(named))} as {name!r}, and the condition is about a"
                    f" {' or '.join(sorted(about))}: it {outcome} of its calls with one."
                )
                break


def _lists(takes: Mapping[str, Any], name: str) -> bool:
    """Return whether a tool lists an argument, or takes some that it does not list by name."""
    properties = takes.get("properties")
    if not isinstance(properties, Mapping) or {"allOf", "anyOf", "oneOf", "$ref"} & takes.keys():
        return True
    return name in properties or not properties
