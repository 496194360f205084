"""Does what is active fit the agent's budget, and what goes if it does not? (semantics: Budgets)

With ``defer``, what an operator asked for by name stays: always-on tools, sub-apps' tools, switches and overrides
that are on. First go tools outside any toolkit, last key first, those of a loadout or default before those that the
session loaded; then whole toolkits, the last in order first, with every member that nothing above keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from toolbelt.core import agents, catalog, loadouts, questions, resolution

KEPT = frozenset({"override-on", "always-on", "sub-app", "switch-on"})
# What agents share and operators write.
SHARED = frozenset({"toolkit", "loadout", "sub_app"})
# What of it brings no tool to anybody: an emergency stop, whose end gives back what was granted, and words.
_BRINGS_NOTHING = frozenset({"blocked", "title", "description", "examples", "triggers"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """How many tools and tokens are active (meta-tools never count), against the agent's budget if it has one."""

    tools: int
    tokens: int
    budget: agents.Budget | None = None

    @property
    def is_passed(self) -> bool:
        """Say whether this is more than the budget."""
        return self.budget is not None and self.budget.passed_by(self.tools, self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What is active after the budget, and what it deferred; both by key, in key order."""

    standing: questions.Standing
    active: Mapping[str, resolution.Decision]
    deferred: Mapping[str, resolution.Decision]
    spent: Spent

    def decision(self, key: str) -> resolution.Decision:
        """Decide for any tool of the catalog."""
        return self.active.get(key) or self.deferred.get(key) or resolution.decide(self.standing, key)

    def everything(self) -> dict[str, resolution.Decision]:
        """Decide for every tool of the catalog, in key order: for screens and search, not for a question."""
        return {key: self.decision(key) for key in sorted(self.standing.catalog.tools)}

    def has_discoverable(self) -> bool:
        """Say whether anything could be had on request; stops at the first that could."""
        if self.deferred:
            return True
        return any(
            self.decision(key).state == "discoverable" for key in self._perhaps() if key not in self.active
        )

    def discoverable(self) -> Iterator[resolution.Decision]:
        """List what could be had on request: of the allowed toolkits, by pattern, and what the budget deferred."""
        for key in sorted({*self.deferred, *self._perhaps()}.difference(self.active)):
            decision = self.decision(key)
            if decision.state == "discoverable":
                yield decision

    def _perhaps(self) -> Iterator[str]:
        standing = self.standing
        for key in standing.loadable:
            toolkit = standing.catalog.toolkits.get(key)
            if toolkit is not None:
                yield from (m.tool for m in toolkit.members if m.tool in standing.catalog.tools)
        if standing.loadout is not None and standing.loadout.patterns:
            yield from loadouts.tools_discoverable(standing.catalog, standing.loadout_name)


def refuses(before: Spent, after: Spent) -> bool:
    """Say whether a budget that refuses stands against a change from what was active ``before``, outside any session:
    it would be passed, and by more than it was, so that the way down stays open.
    """
    if after.budget is None or after.budget.on_exceed != "refuse" or not after.is_passed:
        return False
    return after.tools > before.tools or after.tokens > before.tokens


def hold(kind: str, changed: Collection[str]) -> bool:
    """Say whether the budgets of all agents hold for a change of these keys of an entry, whoever's it is.

    Not for the end of an emergency stop, which gives back what was granted, and not for what brings no tool.
    """
    return kind in SHARED and not _BRINGS_NOTHING.issuperset(changed)


def resolve(snapshot: resolution.Snapshot) -> Resolution:
    """Resolve a snapshot: what is active now, within the agent's budget."""
    standing = resolution.stand(snapshot)
    return fit(standing, resolution.active(standing))


def fit(standing: questions.Standing, active: dict[str, resolution.Decision]) -> Resolution:
    """Apply the agent's budget to what is active."""
    tools = standing.catalog.tools
    tokens = sum([tools[key].tokens for key in active])
    budget = standing.agent.budget
    goers = [key for key, decision in active.items() if decision.code not in KEPT]
    loaded = {key for key in goers if active[key].code == "loaded"}
    gone = going(standing.catalog, budget, len(active), tokens, goers, loaded)
    deferred = {
        key: resolution.Decision(key, "discoverable", "budget", 10, gone[key]) for key in sorted(gone)
    }
    if gone:
        active = {key: decision for key, decision in active.items() if key not in gone}
        tokens -= sum([tools[key].tokens for key in gone])
    spent = Spent(tools=len(active), tokens=tokens, budget=budget)
    return Resolution(standing=standing, active=active, deferred=deferred, spent=spent)


def going(
    stored: catalog.Catalog,
    budget: agents.Budget | None,
    tools: int,
    tokens: int,
    goers: Collection[str],
    loaded: Collection[str] = (),
) -> dict[str, questions.Origin]:
    """Return what a budget that defers takes away where so many tools and tokens are active, by key.

    ``goers`` are all active tools that may go; those of them that a session ``loaded`` go after the others.
    """
    gone: dict[str, questions.Origin] = {}
    if budget is None or budget.on_exceed != "defer" or not budget.passed_by(tools, tokens):
        return gone
    for origin, group in _goers(stored, goers, loaded):
        for key in group:
            if key not in gone:
                gone[key] = origin
                tools, tokens = tools - 1, tokens - stored.tools[key].tokens
        if not budget.passed_by(tools, tokens):
            break
    return gone


def _goers(
    stored: catalog.Catalog, goers: Collection[str], loaded: Collection[str]
) -> Iterator[tuple[questions.Origin, tuple[str, ...]]]:
    """List what may go, in the order in which it goes: single tools, then whole toolkits."""
    loose = [key for key in goers if key not in stored.toolkits_of]
    for key in sorted(loose, key=lambda key: (key not in loaded, key), reverse=True):
        yield questions.Origin("budget", key), (key,)
    by_toolkit: dict[str, list[str]] = {}
    for key in goers:
        for toolkit in stored.toolkits_of.get(key, ()):
            by_toolkit.setdefault(toolkit.key, []).append(key)
    for toolkit_key in sorted(by_toolkit, key=stored.position.__getitem__, reverse=True):
        yield questions.Origin("budget", toolkit_key), tuple(by_toolkit[toolkit_key])
