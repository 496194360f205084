"""Gate rules: conditions on calls that the eleven rules admit (docs/semantics.md: Gate rules).

A rule that denies decides, whatever others there are; else one that allows waives all that ask; else one that asks
holds the call until people have approved it. Rules have no order and no priorities: one more of them that denies or
asks never permits a call, and one that allows never turns a denial. What cannot be evaluated is unknown: a rule that
denies or asks applies then, one that allows does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from toolbelt.core import agents, call_limits, catalog, conditions, loadouts, risks

MAX_RULES = 200
# The window of the limit on identical calls by default.
BREAKER_PER = "10m"
# Applies; does not; depends on arguments that were not given; cannot be found out.
Answer = Literal["applies", "does not apply", "depends", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A count that a call belongs to, by the rule and whose calls it counts. If ``is_limited``, the call may only run
    while fewer calls were counted than the rule says.
    """

    rule: catalog.GateRule
    limit: call_limits.CallLimit
    subject: str
    is_limited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What came before a call, for the rules that read it.

    ``labels`` are those of its session (None: it has none). ``count`` returns how many calls were counted, and
    ``identity`` a digest of the arguments (empty: there is none); both may raise conditions.TooComplexError if the
    judgement has to be quick. ``session`` is whose calls count as those of one session. ``breaker`` is the rule on
    identical calls that applies where no other one does. ``counted`` are the rules for whose limits the call counts
    already, by key: they do not limit it again, and of those that ask, it is beyond the limits that its approval has
    ``answered``. ``is_left_out``: it is judged by its arguments alone, and rules about the past are left out.
    """

    labels: frozenset[str] | None = None
    count: Callable[[Count], int | None] = lambda count: None
    identity: Callable[[Mapping[str, Any]], str] = lambda arguments: ""
    session: str = ""
    breaker: catalog.GateRule | None = None
    counted: Collection[str] = ()
    answered: Collection[str] = ()
    is_left_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the gate rules say about a call: the rule that denies it, or those that ask about it, or the one that waives
    them; and the observed rules that would. ``counts`` are those that the call belongs to, if it runs.
    """

    denied_by: catalog.GateRule | None = None
    asked_by: tuple[catalog.GateRule, ...] = ()
    waived_by: catalog.GateRule | None = None
    would: tuple[str, ...] = ()
    counts: tuple[Count, ...] = ()

    @property
    def decided_by(self) -> str:
        """Return the key of the rule that decided about the call; empty if none did."""
        rule = self.denied_by or (self.asked_by[0] if self.asked_by else self.waived_by)
        return rule.key if rule is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One gate rule of a trace: its answer, and the arguments on which it depends."""

    rule: catalog.GateRule
    answer: Answer
    depends_on: tuple[str, ...] = ()
    has_ended: bool = False
    # How many calls were counted of its limit, if that is known.
    counted: int | None = None

    @property
    def words(self) -> str:
        """Return the answer for people: ``applies``, ``depends on amount``, ``has ended``."""
        if self.has_ended:
            return "has ended"
        if self.answer == "depends":
            return (
                f"depends on {', '.join(self.depends_on)}" if self.depends_on else "depends on the arguments"
            )
        if self.answer == "unknown":
            outcome = "does not apply" if self.rule.effect == "allow" else "applies"
            return f"cannot be known for these arguments, so it {outcome}"
        if self.counted is not None and self.rule.more_than is not None:
            return f"{self.answer}: {self.counted} of {self.rule.more_than.calls} calls were made"
        return self.answer


NOTHING = Judgement()
# Of a call about which nothing is known, and of one that is judged by its arguments alone.
UNKNOWN, LEFT_OUT = Past(), Past(is_left_out=True)
_VERBS: Mapping[catalog.Effect, str] = {"deny": "denies", "ask": "asks", "allow": "allows"}


def judge(
    stored: catalog.Catalog,
    agent: agents.Agent,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    subagent: str = "",
    past: Past = UNKNOWN,
    at: datetime | None = None,
    is_quick: bool = False,
) -> Judgement:
    """Return what the gate rules say about a call with these arguments, which are those that the tool gets.

    ``past`` is what came before it; ``at`` is the time, by which rules have ended; None: none has. With ``is_quick``,
    raise conditions.TooComplexError if that takes long.
    """
    rules = of_tool(stored, tool) if stored.gate_rules else ()
    if past.breaker is not None and not any(
        _replaces_breaker(stored, rule, agent, subagent, at) for rule in rules
    ):
        rules = (past.breaker, *rules)
    if not rules:
        return NOTHING
    evaluation = conditions.Evaluation(arguments, is_quick=is_quick)
    in_force: dict[catalog.Effect, list[catalog.GateRule]] = {effect: [] for effect in catalog.EFFECTS}
    observed: dict[catalog.Effect, list[str]] = {effect: [] for effect in catalog.EFFECTS}
    counts: list[Count] = []
    # Those that deny come first, and those that allow last.
    for rule in rules:
        effect = rule.effect
        is_decided = bool(in_force["deny"]) and not rule.observed
        is_needless = effect == "allow" and not (in_force["ask"] or observed["ask"])
        if is_decided or is_needless or has_ended(rule, at) or not concerns(stored, rule, agent, subagent):
            continue
        if not (_applies(rule, evaluation) and _applies_after(rule, past)):
            continue
        if rule.key in past.counted:
            if rule.key not in past.answered:
                continue
        elif (limit := rule.more_than) is not None:
            count = _count(rule, limit, agent, tool, arguments, past)
            if count is not None:
                counts.append(count)
            if not _is_reached(count, rule, past):
                continue
        if rule.observed:
            observed[effect].append(rule.key)
        else:
            in_force[effect].append(rule)
    return _judgement(in_force, observed, counts)


def _judgement(
    in_force: Mapping[catalog.Effect, Sequence[catalog.GateRule]],
    observed: Mapping[catalog.Effect, Sequence[str]],
    counts: Sequence[Count],
) -> Judgement:
    """Return what the rules that apply say together: those in force, and the keys of those that are only observed."""
    denies, asks, allows = (in_force[effect] for effect in catalog.EFFECTS)
    # What allows would have waived what is only observed, too.
    effects = ("deny",) if allows else catalog.EFFECTS
    would = tuple(key for effect in effects for key in observed[effect])
    if denies:
        return Judgement(denied_by=denies[0], would=would)
    if not (asks or would or counts):
        return NOTHING
    if allows:
        return Judgement(waived_by=allows[0] if asks else None, would=would, counts=_due(counts, asks))
    return Judgement(asked_by=tuple(asks), would=would, counts=tuple(counts))


def answered(judgement: Judgement, rules: Iterable[str]) -> tuple[Count, ...]:
    """Return the counts that a call belongs to after people have approved it: these rules do not limit it."""
    keys = set(rules)
    return _due(judgement.counts, [rule for rule in judgement.asked_by if rule.key in keys])


def _due(counts: Iterable[Count], answered: Iterable[catalog.GateRule]) -> tuple[Count, ...]:
    keys = {rule.key for rule in answered}
    return tuple(
        dataclasses.replace(count, is_limited=False) if count.rule.key in keys else count for count in counts
    )


def _applies_after(rule: catalog.GateRule, past: Past) -> bool:
    """Return whether a rule applies after what came before the call."""
    if not (rule.labels or rule.without or rule.more_than):
        return True
    if past.is_left_out:
        return False
    if not (rule.labels or rule.without):
        return True
    if past.labels is None:
        # Without a session, no one knows what it touched.
        return rule.effect != "allow"
    return past.labels.issuperset(rule.labels) and not (rule.without and past.labels.issuperset(rule.without))


def _count(
    rule: catalog.GateRule,
    limit: call_limits.CallLimit,
    agent: agents.Agent,
    tool: str,
    arguments: Mapping[str, Any],
    past: Past,
) -> Count | None:
    """Return the count of a rule that a call belongs to; None if its arguments have no digest."""
    match limit.of:
        case "agent":
            subject = agent.key
        case "session":
            subject = f"{agent.key} {past.session}".rstrip()
        case "tool":
            subject = tool
        case "identical":
            identity = past.identity(arguments)
            if not identity:
                return None
            subject = f"{agent.key} {tool} {identity}"
        case _:
            subject = ""
    return Count(rule=rule, limit=limit, subject=subject, is_limited=not rule.observed)


def _is_reached(count: Count | None, rule: catalog.GateRule, past: Past) -> bool:
    """Return whether no more calls may be counted; also if that is unknown, but of identical calls by default."""
    counted = None if count is None else past.count(count)
    if counted is None:
        return rule.effect != "allow" and rule is not past.breaker
    return count is not None and counted >= count.limit.calls


def breaker(calls: int) -> catalog.GateRule:
    """Return the rule on identical calls of a session that applies where no other one does."""
    limit = call_limits.CallLimit(calls=calls, per=BREAKER_PER, of="identical")
    return catalog.GateRule(key="identical-calls", effect="deny", more_than=limit)


def _replaces_breaker(
    stored: catalog.Catalog, rule: catalog.GateRule, agent: agents.Agent, subagent: str, at: datetime | None
) -> bool:
    return (
        rule.more_than is not None
        and rule.more_than.of == "identical"
        and rule.effect == "deny"
        and not (rule.observed or has_ended(rule, at))
        and concerns(stored, rule, agent, subagent)
    )


def _applies(rule: catalog.GateRule, evaluation: conditions.Evaluation) -> bool:
    """Return whether a rule applies: one that allows only if that is known, any other one also if it is unknown."""
    denies = rule.effect != "allow"
    if rule.when:
        fits = evaluation.fits(rule.when, certainly=not denies)
        if fits is False or (fits is None and not denies):
            return False
    if rule.unless:
        fits = evaluation.fits(rule.unless, certainly=denies)
        if fits is True or (fits is None and not denies):
            return False
    return True


def explain(
    stored: catalog.Catalog,
    agent: agents.Agent,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    subagent: str = "",
    past: Past = UNKNOWN,
    at: datetime | None = None,
) -> tuple[Step, ...]:
    """Return a step for each gate rule that concerns calls of this tool by this agent, with what it answers to these
    arguments after this past; without arguments or a session, what it depends on.
    """
    return tuple(
        _step(rule, agent, tool, arguments, past, at)
        for rule in of_tool(stored, tool)
        if concerns(stored, rule, agent, subagent)
    )


def _step(
    rule: catalog.GateRule,
    agent: agents.Agent,
    tool: str,
    arguments: Mapping[str, Any] | None,
    past: Past,
    at: datetime | None,
) -> Step:
    depends_on = fields(rule)
    if has_ended(rule, at):
        return Step(rule=rule, answer="does not apply", depends_on=depends_on, has_ended=True)
    answer: Answer
    if not rule.when and not rule.unless:
        answer = "applies"
    elif arguments is None:
        answer = "depends"
    else:
        answer = _answer(rule, arguments)
    if rule.labels or rule.without:
        depends_on = (*depends_on, "the session's labels")
        if answer != "does not apply" and past.labels is None:
            answer = "depends" if arguments is None else "unknown"
        elif answer != "does not apply" and not _applies_after(rule, past):
            answer = "does not apply"
    counted = None
    if rule.more_than is not None:
        depends_on = (*depends_on, "the number of calls")
        needs_arguments = rule.more_than.of == "identical" and arguments is None
        count = None if needs_arguments else _count(rule, rule.more_than, agent, tool, arguments or {}, past)
        counted = past.count(count) if count is not None else None
        if counted is None:
            answer = "depends" if answer == "applies" else answer
        elif counted < rule.more_than.calls:
            answer = "does not apply"
    return Step(rule=rule, answer=answer, depends_on=depends_on, counted=counted)


def _answer(rule: catalog.GateRule, arguments: Mapping[str, Any]) -> Answer:
    """Return what a rule answers, and whether that is known: unknown if it would not hold for its opposite reading."""
    evaluation = conditions.Evaluation(arguments)
    if rule.when:
        certainly = evaluation.fits(rule.when, certainly=True)
        possibly = evaluation.fits(rule.when, certainly=False)
        if possibly is False:
            return "does not apply"
        is_known = certainly is True
    else:
        is_known = True
    if rule.unless:
        certainly = evaluation.fits(rule.unless, certainly=True)
        possibly = evaluation.fits(rule.unless, certainly=False)
        if certainly is True:
            return "does not apply"
        is_known = is_known and possibly is False
    return "applies" if is_known else "unknown"


def fields(rule: catalog.GateRule) -> tuple[str, ...]:
    """Return the arguments that a rule reads, each once."""
    names: dict[str, None] = {}
    for text in (rule.when, rule.unless):
        names.update(dict.fromkeys(conditions.fields_of_text(text)))
    return tuple(names)


def has_ended(rule: catalog.GateRule, at: datetime | None) -> bool:
    """Return whether a rule has no effect any more at this time."""
    return rule.ends is not None and at is not None and rule.ends <= at


def next_end(stored: catalog.Catalog, tool: str, at: datetime) -> datetime | None:
    """Return when the next rule for calls of this tool ends; None if none will."""
    rules = of_tool(stored, tool) if stored.gate_rules else ()
    return min((rule.ends for rule in rules if rule.ends is not None and rule.ends > at), default=None)


def concerns(
    stored: catalog.Catalog, rule: catalog.GateRule, agent: agents.Agent, subagent: str = ""
) -> bool:
    """Return whether a rule concerns an agent's calls.

    A rule that denies to a kind of agent, or asks, concerns subagents of this kind, too. One that allows does not:
    which kind of subagent calls is what the agent says.
    """
    if not (rule.agents or rule.kinds or rule.sub_apps):
        return True
    if agent.key in rule.agents or agent.kind in rule.kinds:
        return True
    if subagent and rule.effect != "allow" and subagent in rule.kinds:
        return True
    return any(
        (sub_app := stored.sub_apps.get(key)) is not None and agent.key in sub_app.agents
        for key in rule.sub_apps
    )


@catalog.derived
def of_tool(stored: catalog.Catalog, tool: str) -> tuple[catalog.GateRule, ...]:
    """Return the gate rules for calls of this tool by any agent: those that deny, those that ask, those that allow."""
    definition = stored.tools.get(tool)
    if definition is None:
        return ()
    rules = [rule for rule in stored.gate_rules.values() if covers(stored, rule, definition)]
    return tuple(sorted(rules, key=lambda rule: catalog.EFFECTS.index(rule.effect)))


def covers(stored: catalog.Catalog, rule: catalog.GateRule, tool: catalog.Tool) -> bool:
    """Return whether a rule concerns calls of a tool."""
    if not (rule.tools or rule.toolkits or rule.plugins or rule.risks):
        return True
    return (
        any(loadouts.matches(pattern, tool.key) for pattern in rule.tools)
        or any(toolkit.key in rule.toolkits for toolkit in stored.toolkits_of.get(tool.key, ()))
        or (bool(tool.plugin) and tool.plugin in rule.plugins)
        or any(tool.key in risks.tools_with(stored, risk) for risk in rule.risks)
    )


def tools_of(stored: catalog.Catalog, rule: catalog.GateRule) -> Iterator[catalog.Tool]:
    """Yield the tools whose calls a rule concerns, by key. Prompts and resources are not called."""
    return (
        tool for _, tool in sorted(stored.tools.items()) if tool.kind == "tool" and covers(stored, rule, tool)
    )


def agents_of(
    stored: catalog.Catalog, rule: catalog.GateRule, among: Iterable[agents.Agent]
) -> Iterator[agents.Agent]:
    """Yield those of the agents whose calls a rule concerns."""
    return (agent for agent in among if concerns(stored, rule, agent))


def in_words(rule: catalog.GateRule) -> str:
    """Return what a rule does in a few words: ``denies when amount > 500``."""
    text = f"would {rule.effect}" if rule.observed else _VERBS[rule.effect]
    if rule.when:
        text += f" when {conditions.in_words(rule.when)}"
    if rule.unless:
        text += f" unless {conditions.in_words(rule.unless)}"
    if rule.labels:
        text += f", once the session has {' and '.join(rule.labels)}"
    if rule.without:
        text += f", until the session has {' and '.join(rule.without)}"
    if rule.more_than is not None:
        text += f", beyond {rule.more_than.words}"
    return text
