"""Budgets: whether the active tools fit, and which are deferred if they do not (docs/semantics.md: Budgets).

With ``defer``, everything that an operator named stays: always-on tools, tools of sub-apps, and switches and overrides
that are on. The rest is deferred in this order until what is left fits: what a loadout or a default brings (tools
outside any toolkit, last key first, then whole toolkits, the last in order first), initial toolkits (the last first),
and what the session loaded (the oldest load first).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from toolbelt.core import agents, catalog, definitions, policy, rules
from toolbelt.core.rules import resolution

NEVER_DEFERRED = frozenset({"override-on", "always-on", "sub-app", "switch-on"})
# Kinds that agents share and operators write.
SHARED_KINDS = frozenset({"toolkit", "loadout", "sub_app"})
# Fields of them that add no tool: unblocking only restores what was granted, and texts.
_BRINGS_NOTHING = frozenset({"blocked", "block_ends", "title", "description", "examples", "triggers"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The numbers of active tools and tokens, with the agent's budget if it has one. Meta-tools never count.

    ``tokens`` are those of definitions, policy and off texts; ``policy_tokens`` is the part of the policy.
    """

    tools: int
    tokens: int
    policy_tokens: int = 0
    budget: agents.Budget | None = None

    @property
    def is_exceeded(self) -> bool:
        """Return whether this exceeds the budget."""
        return self.budget is not None and self.budget.exceeded_by(self.tools, self.tokens)


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """What is active after the budget was applied, and what the budget defers, with the reasons, in key order.

    ``tools`` are the active tools, ``others`` the active prompts, resources and so on: they are granted like tools and
    do not count against the budget. ``removed`` are the deferred tools with their origins.
    """

    context: rules.EvaluationContext
    tools: frozenset[str]
    others: frozenset[str] = frozenset()
    removed: Mapping[str, rules.Origin] = field(default_factory=dict)

    @functools.cached_property
    def active(self) -> Mapping[str, resolution.Decision]:
        """The decisions for the active tools."""
        return resolution.active(self.context, self.tools)

    @functools.cached_property
    def non_tools(self) -> Mapping[str, resolution.Decision]:
        """The decisions for the active prompts, resources and so on."""
        return resolution.active(self.context, self.others)

    @functools.cached_property
    def deferred(self) -> Mapping[str, resolution.Decision]:
        """The decisions for the deferred tools."""
        return {
            key: resolution.Decision(key, "discoverable", "budget", 10, self.removed[key])
            for key in sorted(self.removed)
        }

    @property
    def on_request(self) -> frozenset[str]:
        """Everything that could be loaded: from allowed toolkits, by pattern, and what the budget deferred."""
        return self.context.offered(self.tools | self.others) | self.removed.keys()

    @functools.cached_property
    def spent(self) -> Spent:
        """The number of active tools and tokens. Counted when it is needed: most calls do not."""
        context = self.context
        return spend(context.catalog, self.tools, context.concerned, context.agent.budget)

    @functools.cached_property
    def never_deferred(self) -> frozenset[str]:
        """The active tools that an operator granted by name, which no budget removes."""
        return self.tools & self.context.tools(rules.BY_OPERATORS)

    @functools.cached_property
    def allowed_tokens(self) -> int:
        """The tokens of all tools that are active or could be loaded, without the policy."""
        stored = self.context.catalog
        return definitions.tokens(stored, self.tools | (self.on_request - stored.non_tools))

    def decision(self, key: str) -> resolution.Decision:
        """Return the decision for any tool of the catalog."""
        return self.active.get(key) or self.deferred.get(key) or resolution.decide(self.context, key)

    def non_tools_of(self, kind: catalog.Kind) -> tuple[catalog.Tool, ...]:
        """Return the active entries of a kind, in key order; of "tool", those for apps only."""
        tools = self.context.catalog.tools
        return tuple([tools[key] for key in self.non_tools if tools[key].kind == kind])

    def all_decisions(self) -> dict[str, resolution.Decision]:
        """Return the decision for every tool of the catalog, in key order: for screens and search, not for requests."""
        return {key: self.decision(key) for key in sorted(self.context.catalog.tools)}

    def has_discoverable(self) -> bool:
        """Return whether any tool could be loaded; stops at the first."""
        return any(True for _ in self.offered())

    def offered(self) -> Iterator[str]:
        """Yield the tools of :meth:`discoverable` as they are found, in any order, some of them twice."""
        yield from self.removed
        context = self.context
        for answers in context.answers(rules.OFFERING):
            for key in answers.tools:
                if (
                    key not in context.active
                    and not context.denies(key)
                    and key not in context.catalog.non_tools
                    and rules.closing(context.catalog, key) is None
                ):
                    yield key

    def discoverable(self) -> Iterator[resolution.Decision]:
        """Yield what could be loaded: from allowed toolkits, by pattern, and what the budget deferred."""
        for key in sorted(self.on_request - self.context.catalog.non_tools):
            yield self.decision(key)


def refuses(before: Spent, after: Spent) -> bool:
    """Return whether a budget that refuses forbids a change, given what was active ``before`` outside any session.

    It does if the budget is exceeded by more than before, so that reducing an exceeded budget stays possible.
    """
    if after.budget is None or after.budget.on_exceed != "refuse" or not after.is_exceeded:
        return False
    return after.tools > before.tools or after.tokens > before.tokens


def is_worsened(before: Spent, after: Spent) -> bool:
    """Return whether a change passes a budget, or exceeds one of its limits by more than before; only that is worth a
    warning.
    """
    if not after.is_exceeded or after.budget is None:
        return False
    if not before.is_exceeded:
        return True
    limits = (
        (after.budget.max_tools, before.tools, after.tools),
        (after.budget.max_tokens, before.tokens, after.tokens),
    )
    return any(most is not None and now > most and now > then for most, then, now in limits)


def concerns_all_agents(kind: str, changed: Collection[str]) -> bool:
    """Return whether a change of these fields must be checked against the budgets of all agents.

    Unblocking, which restores what was granted, and changes that add no tool need no check.
    """
    return kind in SHARED_KINDS and not _BRINGS_NOTHING.issuperset(changed)


def resolve(snapshot: resolution.Snapshot) -> Resolution:
    """Resolve a snapshot: what is active now, within the agent's budget."""
    context = resolution.build_context(snapshot)
    stored, budget, active = context.catalog, context.agent.budget, context.active
    others = active & stored.non_tools
    tools = active - others if others else active
    removed: Mapping[str, rules.Origin] = {}
    if budget is not None and budget.defers:
        fixed = context.tools(rules.BY_OPERATORS)
        removed = deferred_tools(stored, budget, tools, fixed, context.concerned, *_requested(context))
        tools = tools.difference(removed)
    return Resolution(context=context, tools=tools, others=others, removed=removed)


def spend(
    stored: catalog.Catalog,
    active: Collection[str],
    concerned: Collection[str],
    budget: agents.Budget | None = None,
) -> Spent:
    """Return the part of the budget that these active tools spend, with the off texts of the toolkits that concern the
    agent. None of the tools is a prompt or a resource.
    """
    policy_tokens = policy.tokens(stored, active, concerned)
    tokens = policy_tokens + definitions.tokens(stored, active)
    return Spent(tools=len(active), tokens=tokens, policy_tokens=policy_tokens, budget=budget)


def spend_after(
    stored: catalog.Catalog,
    spent: Spent,
    before: Set[str],
    after: Set[str],
    concerned_before: Set[str],
    concerned_after: Set[str],
    budget: agents.Budget | None = None,
) -> Spent:
    """Return the spending of the tools ``after`` a change, given that of those ``before`` it; like :func:`spend`."""
    policy_tokens = spent.policy_tokens + policy.tokens_added(
        stored, before, after, concerned_before, concerned_after
    )
    definition_tokens = (
        spent.tokens
        - spent.policy_tokens
        + definitions.tokens(stored, after - before)
        - definitions.tokens(stored, before - after)
    )
    return Spent(
        tools=len(after), tokens=definition_tokens + policy_tokens, policy_tokens=policy_tokens, budget=budget
    )


def _is_exceeded(
    stored: catalog.Catalog,
    active: Collection[str],
    concerned: Collection[str],
    budget: agents.Budget,
    definition_tokens: int,
) -> bool:
    """Return whether these active tools exceed the budget. The policy is only counted if that decides."""
    if budget.exceeded_by(len(active), definition_tokens):
        return True
    return budget.max_tokens is not None and spend(stored, active, concerned, budget).is_exceeded


def without_each_override(snapshot: resolution.Snapshot) -> dict[str, resolution.Decision]:
    """Return the decision for each overridden tool without its override, while all other overrides apply.

    The rules decide about one tool at a time, so one context without any override serves them all. Only a budget that
    defers depends on the other tools.
    """
    stored, agent = snapshot.catalog, snapshot.agent
    cleared = dataclasses.replace(snapshot, agent=dataclasses.replace(agent, overrides={}))
    without = resolution.build_context(cleared)
    decisions = {key: resolution.decide(without, key) for key in agent.overrides if key in stored.tools}
    if agent.budget is not None and agent.budget.defers:
        decisions |= _deferred_alone(resolution.build_context(snapshot), agent.budget, decisions)
    return decisions


def _deferred_alone(
    context: rules.EvaluationContext, budget: agents.Budget, decisions: Mapping[str, resolution.Decision]
) -> dict[str, resolution.Decision]:
    """Return which of these tools the budget would defer if this one, and only it, had the given decision.

    One pass in the order of deferral: a tool is deferred if what is left when it is its turn is still too much.
    """
    stored = context.catalog
    asked = {key for key, decision in decisions.items() if _is_deferrable(stored, decision)}
    active = {key: d for key, d in resolution.active(context).items() if key not in stored.non_tools}
    deferrable = {key for key, decision in active.items() if _is_deferrable(stored, decision)}
    left, deferred = set(active), {}
    spent = spend(stored, left, context.concerned, budget)
    for origin, group in _removal_order(stored, deferrable | asked, *_requested(context)):
        for key in asked.intersection(group):
            with_it = _spend_changed(context, spent, left, left | {key})
            if with_it.is_exceeded:
                deferred[key] = resolution.Decision(key, "discoverable", "budget", 10, origin)
        after = left.difference(deferrable.intersection(group))
        spent, left = _spend_changed(context, spent, left, after), after
    return deferred


def _is_deferrable(stored: catalog.Catalog, decision: resolution.Decision) -> bool:
    return (
        decision.state == "active"
        and decision.code not in NEVER_DEFERRED
        and decision.tool not in stored.non_tools
    )


def _spend_changed(
    context: rules.EvaluationContext, spent: Spent, before: Set[str], after: Set[str]
) -> Spent:
    concerned = context.concerned
    return spend_after(context.catalog, spent, before, after, concerned, concerned, context.agent.budget)


def _requested(context: rules.EvaluationContext) -> tuple[Requested, Requested]:
    """Return the initial toolkits and the loads of the session, with their tools, in the order in which a budget defers
    them; a subagent has neither.
    """
    if context.subagent:
        return (), ()
    toolkits = reversed(context.catalog.in_order(context.initial))
    return [(kit.key, [member.tool for member in kit.members]) for kit in toolkits], tuple(_loads(context))


def has_room(resolved: Resolution, tools: Collection[str]) -> bool:
    """Return whether these tools can be loaded within the budget.

    A budget that defers makes room for them, one that refuses does not, and one that warns always has room.
    """
    context = resolved.context
    budget = context.agent.budget
    if budget is None or budget.on_exceed == "warn":
        return True
    stored = context.catalog
    added = context.not_denied(frozenset(tools) - stored.non_tools)
    added -= rules.closed(stored, added)
    return fits(stored, budget, resolved.tools, resolved.never_deferred, added, context.concerned)


def fits(
    stored: catalog.Catalog,
    budget: agents.Budget | None,
    active: Set[str],
    fixed: Set[str],
    added: Set[str],
    concerned: Collection[str],
) -> bool:
    """Return whether the budget has room for the ``added`` tools beside what is active, or ``fixed`` if it defers."""
    if budget is None or budget.on_exceed == "warn":
        return True
    stays = active if budget.on_exceed == "refuse" else fixed
    if added <= stays:
        return True
    both = stays | added
    if budget.exceeded_by(len(both), 0):
        return False
    return not _is_exceeded(stored, both, concerned, budget, definitions.tokens(stored, both))


# What was requested under a name, with its tools, in the order in which a budget defers it.
Requested = Sequence[tuple[str, Collection[str]]]


def _loads(context: rules.EvaluationContext) -> Iterator[tuple[str, Collection[str]]]:
    """Yield what the session loaded, with its tools, in the order in which a budget defers it."""
    stored = context.catalog
    for kind, name in context.load_order:
        match kind:
            case "toolkit" if name in context.toolkits and name in stored.toolkits:
                yield name, [member.tool for member in stored.toolkits[name].members]
            case "plugin":
                yield name, stored.tools_of_plugin.get(name, ())
            case "tool":
                yield name, (name,)


def deferred_tools(
    stored: catalog.Catalog,
    budget: agents.Budget | None,
    active: Collection[str],
    fixed: Collection[str],
    concerned: Collection[str],
    initial: Requested,
    loads: Requested = (),
) -> dict[str, rules.Origin]:
    """Return the active tools that a deferring budget removes, by key. ``fixed`` tools are never deferred.

    An initial toolkit is deferred whole. What the session loaded keeps the tools that a later load needs.
    """
    removed: dict[str, rules.Origin] = {}
    if budget is None or not budget.defers:
        return removed
    left, tokens = set(active), definitions.tokens(stored, active)
    if not _is_exceeded(stored, left, concerned, budget, tokens):
        return removed
    for origin, group in _removal_order(stored, left.difference(fixed), initial, loads):
        removed.update(dict.fromkeys(group, origin))
        left.difference_update(group)
        tokens -= definitions.tokens(stored, group)
        if not _is_exceeded(stored, left, concerned, budget, tokens):
            break
    return removed


def _removal_order(
    stored: catalog.Catalog, candidates: Collection[str], initial: Requested, loads: Requested
) -> Iterator[tuple[rules.Origin, Collection[str]]]:
    """Yield what may be deferred, in order: single tools, whole toolkits, initial toolkits, what was loaded."""
    requested = [*initial, *loads]
    request_of: dict[str, int] = {}
    for number, (_, tools) in enumerate(requested):
        for key in tools:
            if number >= len(initial):
                request_of[key] = number
            else:
                request_of.setdefault(key, number)
    not_requested = [key for key in candidates if key not in request_of]
    for key in sorted((key for key in not_requested if key not in stored.toolkits_of), reverse=True):
        yield rules.Origin("budget", key), (key,)
    by_toolkit: dict[str, list[str]] = {}
    for key in not_requested:
        if key in stored.toolkits_of:
            # A tool is deferred with the last of its toolkits, which is deferred first.
            by_toolkit.setdefault(stored.toolkits_of[key][-1].key, []).append(key)
    for toolkit in sorted(by_toolkit, key=stored.position.__getitem__, reverse=True):
        yield rules.Origin("budget", toolkit), by_toolkit[toolkit]
    for number, (name, tools) in enumerate(requested):
        group = [key for key in tools if key in candidates and request_of[key] == number]
        if group:
            yield rules.Origin("budget", name), group
