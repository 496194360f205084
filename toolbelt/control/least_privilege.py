"""Proposals of smaller belts: the least that agents need, by the calls that are recorded.

A proposal is a belt with its proof, and is imported like any other belt, by a person. See
:mod:`toolbelt.core.least_privilege` for what it clears, and in which order.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt import conf
from toolbelt.control import past, proofs, writing
from toolbelt.core import (
    agents,
    belts,
    catalog,
    errors,
    grants,
    least_privilege,
    loadouts,
    reach,
    replay,
    texts,
)
from toolbelt.core.rules import inventory
from toolbelt.store import audit, clock, recorded_facts, retention, revisions, snapshots

DAYS, MAX_DAYS = proofs.DAYS, proofs.MAX_DAYS
# Fewer calls say too little of what an agent needs.
MIN_CALLS = 50
# The share of the days of which there must be records of calls.
MIN_SHARE = 0.9

Exception_ = Literal["few-calls", "short-history", "uncertain-history"]
EXCEPTIONS: Mapping[Exception_, str] = {
    "few-calls": f"fewer than {MIN_CALLS} recorded calls",
    "short-history": "the agent, or the records of calls, are younger than the period",
    "uncertain-history": "it was changed without the audit log in this time",
}
STEPS: Mapping[least_privilege.StepKind, str] = {
    "load": "Loaded on request instead of always",
    "clear": "Cleared",
    "loadout": "Its own loadout, with",
    "off": "Turned off",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAgent:
    """What is proposed for an agent: ``smaller``, or why nothing is (``exception``). ``calls`` is how many were made.

    An agent of which nothing can be cleared has a ``smaller`` without steps.
    """

    agent: str
    calls: int
    smaller: least_privilege.Smaller | None = None
    exception: Exception_ | None = None

    @property
    def is_nothing(self) -> bool:
        """Return whether it stays as it is."""
        return self.smaller is None or not self.smaller.steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A smaller belt for some agents. ``belt`` has the agents that change and their loadouts, ``proof`` what applying
    it would have done; None if nothing changes. ``revision`` is that of the configuration it was computed from.
    """

    days: int
    since: dt.datetime
    agents: tuple[OfAgent, ...]
    belt: Mapping[str, Any]
    proof: proofs.Proof | None
    revision: int

    @property
    def is_nothing(self) -> bool:
        """Return whether all agents stay as they are."""
        return not self.belt

    @property
    def tokens(self) -> tuple[int, int]:
        """Return the tokens of one request of each of the agents that change, before and after."""
        changed = [one.smaller for one in self.agents if one.smaller is not None and not one.is_nothing]
        return sum(one.before.tokens for one in changed), sum(one.after.tokens for one in changed)

    @property
    def sentence(self) -> str:
        """Return what is proposed, in one sentence."""
        if self.is_nothing:
            return f"By the calls of the last {texts.counted(self.days, 'day')}, nothing can be cleared."
        before, after = self.tokens
        names = [one.agent for one in self.agents if not one.is_nothing]
        whose = names[0] if len(names) == 1 else texts.counted(len(names), "agent")
        return f"{whose}: {before:,} → {after:,} tokens per request{' in total' if len(names) > 1 else ''}."


def propose(
    write: writing.Write,
    names: Collection[str] = (),
    *,
    days: int = DAYS,
    keep: Sequence[str] = (),
    turn_off: bool = False,
) -> Proposal:
    """Return the smallest belt that refuses none of the calls of these agents, or of all that are not archived.

    What matches ``keep`` (names of tools, plugins and toolkits, or their beginnings with ``*``) stays. With
    ``turn_off``, the rest of what was not called is turned off. Raise errors.NotFound for an agent
    that does not exist, and errors.Invalid for an impossible period or pattern. Nothing is written.
    """
    _check(days, keep)
    revision, stored = revisions.number(), snapshots.catalog()
    present = {each.agent.key: each.agent for each in snapshots.present()}
    for name in names:
        if name not in present:
            raise errors.NotFound("agent", name, present)
    now = clock.now()
    since = now - dt.timedelta(days=days)
    history = _History(since, days)
    proposed = tuple(
        _of_agent(stored, present[name], history, keep=keep, turn_off=turn_off)
        for name in (dict.fromkeys(names) or present)
    )
    belt = _belt(proposed)
    proof = proofs.of_belt(write, belt, days=days) if belt else None
    return Proposal(days=days, since=since, agents=proposed, belt=belt, proof=proof, revision=revision)


def document(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as plain values, for programs."""
    return {
        "days": proposal.days,
        "since": grants.format_time(proposal.since),
        "sentence": proposal.sentence,
        "tokens": list(proposal.tokens),
        "agents": [_document(one) for one in proposal.agents],
        "belt": dict(proposal.belt),
        "proof": None if proposal.proof is None else proofs.document(proposal.proof),
    }


def _document(one: OfAgent) -> dict[str, Any]:
    smaller = one.smaller
    return {
        "agent": one.agent,
        "calls": one.calls,
        "exception": one.exception,
        "tools": None if smaller is None else [smaller.before.tools, smaller.after.tools],
        "tokens": None if smaller is None else [smaller.before.tokens, smaller.after.tokens],
        "steps": [
            {"kind": step.kind, "names": list(step.names)} for step in (smaller.steps if smaller else ())
        ],
        "unused": dict(smaller.unused) if smaller else {},
    }


def _check(days: int, keep: Sequence[str]) -> None:
    problems = [] if 1 <= days <= MAX_DAYS else [proofs.problem_of_days(days)]
    problems += [
        errors.Problem(path="keep", message=message)
        for pattern in keep
        if (message := loadouts.pattern_problem(pattern))
    ]
    if problems:
        raise errors.Invalid(problems)


class _History:
    """What was recorded in the period, and how everything was configured when it began."""

    def __init__(self, since: dt.datetime, days: int) -> None:
        self.since = since
        self._past = past.at(since)
        self._approved = audit.approved_since(self._past.place.entry)
        oldest = retention.calls().oldest
        begun = since + dt.timedelta(days=days) * (1 - MIN_SHARE)
        self._is_short = oldest is None or oldest > begun

    def exception(self, agent: str, calls: int) -> Exception_ | None:
        """Return why nothing is proposed for an agent."""
        found = self._past.agent(agent)
        if self._past.history.is_uncertain(agent):
            return "uncertain-history"
        if self._is_short or found is None or found[1].archived:
            return "short-history"
        return "few-calls" if calls < MIN_CALLS else None

    def calls(self, agent: str) -> Iterator[tuple[replay.Facts, int]]:
        """Yield the facts of the agent's calls, each with how many there are."""
        within = reach.Reach(agents=frozenset({agent}))
        reader = recorded_facts.Reader(recorded_facts.Window(self.since), within=within)
        return ((group.facts, group.calls) for group in reader.grouped(self.since))

    def new(self, stored: catalog.Catalog, agent: agents.Agent) -> frozenset[str]:
        """Return the tools that the agent did not have all the time, and what was granted or approved meanwhile."""
        found = self._past.agent(agent.key)
        then = (
            frozenset[str]()
            if found is None
            else _tools(self._past.compiled().as_of(self.since), found[1].as_of(self.since))
        )
        entries = audit.since(self._past.place.entry, "agent", agent.key)
        granted = {
            key
            for _, key, before, after in entries
            if key and grants.is_on(after) and not grants.is_on(before)
        }
        return (_tools(stored, agent) - then) | granted | self._approved


def _of_agent(
    stored: catalog.Catalog,
    agent: agents.Agent,
    history: _History,
    *,
    keep: Sequence[str],
    turn_off: bool,
) -> OfAgent:
    groups = dict(history.calls(agent.key))
    calls = sum(groups.values())
    if (exception := history.exception(agent.key, calls)) is not None:
        return OfAgent(agent=agent.key, calls=calls, exception=exception)
    smaller = least_privilege.find(
        stored,
        agent,
        least_privilege.Evidence(calls=groups, new=history.new(stored, agent), keep=keep),
        kind_loadouts=conf.KIND_LOADOUTS,
        at=clock.now(),
        turn_off=turn_off,
    )
    return OfAgent(agent=agent.key, calls=calls, smaller=smaller)


def _belt(proposed: Sequence[OfAgent]) -> dict[str, Any]:
    changed = [one.smaller for one in proposed if one.smaller is not None and not one.is_nothing]
    own = [belts.entry("loadout", one.loadout) for one in changed if one.loadout is not None]
    entries = [belts.entry("agent", one.agent) for one in changed]
    return {**({"loadouts": own} if own else {}), **({"agents": entries} if entries else {})}


def _tools(stored: catalog.Catalog, agent: agents.Agent) -> frozenset[str]:
    """Return what an agent has, and what its budget defers."""
    taken = inventory.take(stored, agent, conf.KIND_LOADOUTS)
    return taken.active | taken.deferred | taken.non_tools
