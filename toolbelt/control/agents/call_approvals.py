"""Calls that wait for approval, for people: what is asked, what changed since the last time, and deciding about it.

Whoever may decide is up to the interface (`rights.may_decide`). A person decides about what they saw: an approval that
was edited since is refused. Which secrets a call has is not known here, so they can be neither seen nor edited.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.core import (
    call_approvals,
    catalog,
    declared_versions,
    errors,
    gate_rules,
    schema,
    secret_texts,
    strict_json,
)
from toolbelt.store import call_approvals as rows
from toolbelt.store import clock, operators, snapshots

Approval = call_approvals.Approval
STATES = call_approvals.STATES
# The most that a list has, the newest.
MAX_LISTED = 500
_MISSING = object()
# The key of an approval in the message of a call.
_KEY = re.compile(r"\b[Aa]pproval ([0-9A-Z]{8})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Calls of one tool that the same rules ask about, the one that expires first first."""

    rules: tuple[str, ...]
    tool: str
    approvals: tuple[Approval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a call: what it would be, what the last decided call of the tool had, and what was called.

    ``is_hidden``: not all of it is known here, so that it cannot be edited.
    """

    name: str
    value: Any
    before: Any = None
    is_new: bool = False
    is_changed: bool = False
    is_hidden: bool = False
    is_edited: bool = False
    called: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One approval, with its state now; ``before`` is the last decided one of the same agent and tool.

    ``removed`` are arguments that the last one had, and this one has not. ``is_editable``: Toolbelt runs the tool, with
    the arguments that people approve.
    """

    approval: Approval
    state: call_approvals.State
    arguments: tuple[Argument, ...]
    removed: tuple[str, ...]
    before: Approval | None
    rules: tuple[catalog.GateRule, ...]
    is_editable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How often a rule asked people, and what they said; ``median_wait`` is that of those that were decided.

    What still waits, or was withdrawn, is only asked.
    """

    asked: int
    approved: int
    rejected: int
    expired: int
    median_wait: dt.timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """How often a person decided about calls, on ``days`` days, and what they said; ``median_wait`` is how long the
    calls had waited.
    """

    name: str
    decided: int
    approved: int
    days: int
    median_wait: dt.timedelta

    @property
    def a_day(self) -> float:
        """Return how many calls they decided about on a day on which they decided."""
        return self.decided / self.days

    @property
    def share(self) -> float:
        """Return which part of them they approved."""
        return self.approved / self.decided


def pending(agents: Collection[str] | None = None) -> tuple[Group, ...]:
    """Return what waits for people, by rules and tool: of these agents or of all; the one that expires first first."""
    waiting = sorted(
        rows.listed(state="pending", agents=agents, maximum=MAX_LISTED), key=lambda each: each.expires
    )
    groups: dict[tuple[tuple[str, ...], str], list[Approval]] = {}
    for approval in waiting:
        groups.setdefault((approval.rules, approval.tool), []).append(approval)
    return tuple(
        Group(rules=rules, tool=tool, approvals=tuple(group)) for (rules, tool), group in groups.items()
    )


def listed(
    *, state: str = "", agents: Collection[str] | None = None, tool: str = "", maximum: int = 100
) -> Sequence[Approval]:
    """Return approvals in this state now, or in any, the newest first: of these agents or of all."""
    return rows.listed(state=state, agents=agents, tool=tool, maximum=min(maximum, MAX_LISTED))


def settled(agents: Collection[str] | None = None, *, maximum: int = 20) -> Sequence[Approval]:
    """Return what needs no decision any more, the newest first: of these agents or of all."""
    return rows.settled(agents, maximum)


def of_call(
    agent: str, tool: str, session: str, *, began: dt.datetime, ended: dt.datetime, error: str = ""
) -> Approval | None:
    """Return the approval that a recorded call waits for, or ran by; None if there is none, or several could be."""
    named = [found for key in _KEY.findall(error) if (found := rows.read(key)) is not None]
    ran = rows.listed(agents=[agent], tool=tool) if not named else []
    spent = [each for each in ran if each.spent is not None and began <= each.spent <= ended]
    own = [each for each in named or spent if (each.agent, each.tool, each.session) == (agent, tool, session)]
    return own[0] if len(own) == 1 else None


def figures(rule: str, days: int) -> Figures:
    """Return how people decided about what a rule asked in the last days. One query."""
    fates = rows.fates(rule, clock.now() - dt.timedelta(days=days))
    decided = [fate for fate in fates if fate.decided is not None]
    rejected = sum(fate.is_rejected for fate in decided)
    waits = [(fate.decided - fate.asked).total_seconds() for fate in fates if fate.decided is not None]
    return Figures(
        asked=len(fates),
        approved=len(decided) - rejected,
        rejected=rejected,
        expired=sum(fate.is_over and fate.decided is None for fate in fates),
        median_wait=dt.timedelta(seconds=statistics.median(waits)) if waits else None,
    )


def deciders(days: int, agents: Collection[str] | None = None) -> tuple[Decider, ...]:
    """Return how people decided in the last days, who decided most first: about calls of these agents or of all."""
    by_name: dict[str, list[rows.Decision]] = {}
    for decision in rows.decisions(clock.now() - dt.timedelta(days=days), agents):
        for name in decision.by:
            by_name.setdefault(name, []).append(decision)
    found = [
        Decider(
            name=name,
            decided=len(made),
            approved=sum(not each.is_rejected for each in made),
            days=len({each.decided.date() for each in made}),
            median_wait=dt.timedelta(
                seconds=statistics.median((each.decided - each.asked).total_seconds() for each in made)
            ),
        )
        for name, made in by_name.items()
    ]
    return tuple(sorted(found, key=lambda decider: (-decider.decided, decider.name)))


def counts(agents: Collection[str] | None = None) -> Mapping[str, int]:
    """Return how many calls wait for people by agent, of these agents or of all. One query."""
    return rows.counts(agents)


def find(key: str) -> Approval:
    """Return one approval, however its key is written; raise errors.NotFound."""
    found = rows.read(key.strip().upper()) if key.isascii() and key.isprintable() else None
    if found is None:
        raise errors.NotFound("approval", key)
    return found


def state_of(approval: Approval) -> call_approvals.State:
    """Return the state of an approval now."""
    return approval.state_at(clock.now())


def is_kept(approval: Approval) -> bool:
    """Return whether the approval holds for further calls now."""
    return approval.always is not None and approval.always > clock.now()


def left(approval: Approval) -> dt.timedelta:
    """Return how long the approval can be decided, or the decision holds; zero once it has expired."""
    return max(approval.expires - clock.now(), dt.timedelta(0))


def detail(key: str) -> Detail:
    """Return one approval with its arguments, and what changed since the last one. Raise errors.NotFound."""
    (found,) = details([find(key)])
    return found


def details(approvals: Sequence[Approval]) -> tuple[Detail, ...]:
    """Return approvals with their arguments, and what changed since the last one of each. At most two queries."""
    befores = rows.befores(approvals) if approvals else {}
    stored = snapshots.catalog()
    return tuple(_detail(approval, befores.get(approval.key), stored) for approval in approvals)


def _detail(approval: Approval, before: Approval | None, stored: catalog.Catalog) -> Detail:
    earlier = before.arguments if before is not None else None
    tool = stored.tools.get(approval.tool)
    return Detail(
        approval=approval,
        state=state_of(approval),
        arguments=tuple(_argument(approval, name, earlier) for name in approval.arguments),
        removed=tuple(name for name in earlier or () if name not in approval.arguments),
        before=before,
        rules=tuple(stored.gate_rules[rule] for rule in approval.rules if rule in stored.gate_rules),
        is_editable=tool is not None and stored.runner(tool) != "client",
    )


def _argument(approval: Approval, name: str, earlier: Mapping[str, Any] | None) -> Argument:
    value = approval.arguments[name]
    before = _MISSING if earlier is None else earlier.get(name, _MISSING)
    return Argument(
        name=name,
        value=value,
        before=None if before is _MISSING else before,
        is_new=earlier is not None and before is _MISSING,
        is_changed=before is not _MISSING and schema.comparable(before) != schema.comparable(value),
        is_hidden=name in approval.hidden,
        is_edited=name in approval.edited,
        called=approval.preview.get(name),
    )


def approve(write: writing.Write, key: str, shown: str, always: dt.timedelta | None = None) -> Approval:
    """Approve a call, as it was ``shown`` (Approval.shown); return the approval, which may need more people.

    ``always``: for how long the same call, in any session, is approved automatically. Raise errors.NotFound,
    errors.Stale if it was edited since, or errors.Refused.
    """

    def act(approval: Approval) -> Approval:
        _check_shown(write, approval, shown)
        # Who approved it before counts only while they may.
        lost = operators.no_longer_deciding(approval.approved_by, approval.agent)
        approved_by = tuple(name for name in approval.approved_by if name not in lost)
        approval = dataclasses.replace(approval, approved_by=approved_by)
        groups = operators.groups_of([*approved_by, write.actor.name])
        approved = call_approvals.approve(approval, write.actor.name, clock.now(), groups)
        if write.actor.name in operators.no_longer_deciding([write.actor.name], approval.agent):
            # A command asks for no permission.
            raise errors.Refused(
                f"The account {write.actor.name} may not decide about calls of {approval.agent}, so that what it"
                " approves would not run."
            )
        if always is None:
            return approved
        kept = call_approvals.keep(approved, clock.now(), always)
        if not rows.still_approved([kept]):
            raise errors.Refused(
                f"An approval for days holds while its person may decide, and no account named {write.actor.name} may"
                f" decide about calls of {kept.agent}: approve it once."
            )
        return kept

    return _decide(write, key, act, action="approval.approve")


def no_help(approvals: Collection[Approval], user: str) -> Mapping[str, str]:
    """Return by key why it would not help if this person approved a call; those without a reason are left out. A query,
    if a rule names groups.
    """
    wanting = [each for each in approvals if any(wanted["groups"] for wanted in each.wanted)]
    names = {user, *(name for each in wanting for name in each.approved_by)}
    groups = operators.groups_of(names) if wanting else {}
    reasons = {each.key: call_approvals.no_help(each, user, groups) for each in wanting}
    return {key: reason for key, reason in reasons.items() if reason}


def revoke(write: writing.Write, key: str) -> Approval:
    """End an approval that holds for a while; the same call is asked about again. What runs already is not ended.

    Raise errors.NotFound, or errors.Refused if it does not hold.
    """
    with writing.begin():
        revoked = _decide(
            write,
            key,
            lambda approval: call_approvals.revoke(approval, clock.now()),
            action="approval.revoke",
        )
        rows.withdraw_again(revoked.key)
    return revoked


def kept(agents: Collection[str] | None = None) -> Sequence[Approval]:
    """Return the approvals that hold for further calls, the newest first: of these agents or of all."""
    return rows.all_kept(agents)


def approve_all(
    write: writing.Write, shown: Mapping[str, str], always: dt.timedelta | None = None
) -> tuple[Approval, ...]:
    """Approve several calls, each as it was shown, by key: all of them, or none. Raise as :func:`approve` does."""
    write = write.in_batch()
    with writing.begin():
        return tuple(approve(write, key, digest, always) for key, digest in shown.items())


def reject(write: writing.Write, key: str, note: str = "") -> Approval:
    """Reject a call, with a note for the model; the same call gets the same answer for as long as it could be decided.

    Raise errors.NotFound, errors.Invalid or errors.Refused.
    """
    note = note.strip()
    if len(note) > call_approvals.MAX_NOTE or not strict_json.is_storable(note):
        message = f"A reason has {call_approvals.MAX_NOTE} characters at most, and no NUL."
        raise errors.Invalid([errors.Problem(path="note", message=message)])

    def act(approval: Approval) -> Approval:
        return call_approvals.reject(approval, write.actor.name, clock.now(), note)

    return _decide(write, key, act, action="approval.reject", note=note)


def reject_all(write: writing.Write, keys: Collection[str], note: str = "") -> tuple[Approval, ...]:
    """Reject several calls with one note: all of them, or none. Raise as :func:`reject` does."""
    write = write.in_batch()
    with writing.begin():
        return tuple(reject(write, key, note) for key in keys)


def edit(write: writing.Write, key: str, values: Mapping[str, Any], shown: str) -> Approval:
    """Replace arguments of a call by these; none: it is as it was called again. Nobody has approved it then.

    Raise errors.NotFound, errors.Invalid, errors.Stale if it was edited since it was ``shown``, or errors.Refused.
    """

    def act(approval: Approval) -> Approval:
        _check_shown(write, approval, shown)
        checked = _values(values)
        edited = call_approvals.edit(approval, write.actor.name, clock.now(), checked)
        _check_edited(approval, edited)
        return edited

    return _decide(write, key, act, action="approval.edit")


def edit_and_approve(write: writing.Write, key: str, values: Mapping[str, Any], shown: str) -> Approval:
    """Replace arguments of a call, and approve it with them. Raise as :func:`edit` and :func:`approve` do."""
    write = write.in_batch()
    with writing.begin():
        return approve(write, key, edit(write, key, values, shown).shown)


def _decide(
    write: writing.Write, key: str, change: Callable[[Approval], Approval], *, action: str, note: str = ""
) -> Approval:
    """Change an approval, in one transaction with its audit entry."""
    if write.actor.kind not in ("person", "token"):
        raise errors.Refused("Only people decide about calls that wait for approval.")
    with writing.begin():
        before = find(key)
        after = change(before)
        is_decided = after.state not in ("pending", before.state)
        columns: dict[str, Any] = {"decided": clock.now()} if is_decided else {}
        if not rows.move(before, after, **columns):
            raise errors.Refused(
                f"Approval {before.key} was decided, or edited, in the meantime: look again."
            )
        writing.record(
            write,
            "approval",
            before.key,
            action=action,
            key=before.tool,
            before={"state": before.state},
            after={
                "state": after.state,
                "agent": after.agent,
                "shown": after.shown,
                "edited": sorted(after.edited),
                "approved_by": list(after.approved_by),
                "note": note,
                **({} if after.always is None else {"always": after.always.isoformat()}),
            },
        )
    return after


def _check_shown(write: writing.Write, approval: Approval, shown: str) -> None:
    if shown != approval.shown:
        by: errors.Author = "you" if approval.edited_by == write.actor.name else "operator"
        raise errors.Stale(f"Approval {approval.key}", shown or None, approval.shown, by=by)


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of an operator's arguments; raise errors.Invalid if they are none, or hold a secret."""
    problems = []
    checked: dict[str, Any] = {}
    for name, value in values.items():
        try:
            checked[name] = strict_json.copied(value)
        except ValueError as error:
            problems.append(errors.Problem(path=name, message=f"This cannot be stored: {error}."))
            continue
        if next(iter(secret_texts.secrets_in({name: value})), None) is not None:
            message = "This looks like a secret, which Toolbelt does not store: reject the call instead."
            problems.append(errors.Problem(path=name, message=message))
    if not all(map(strict_json.is_storable, values)):
        problems.append(errors.Problem(path="", message="An argument's name is text that can be stored."))
    if len(schema.canonical(checked)) > call_approvals.MAX_PREVIEW:
        problems.append(
            errors.Problem(path="", message="The arguments are too long to be read and approved.")
        )
    if problems:
        raise errors.Invalid(problems)
    return checked


def _check_edited(before: Approval, after: Approval) -> None:
    """Raise errors.Invalid or errors.Refused if a call with the edited arguments would be refused anyway.

    That is checked again, with the complete arguments, directly before it runs.
    """
    state = snapshots.find(before.agent, None)
    stored, tool = state.catalog, state.catalog.tools.get(before.tool)
    if tool is None:
        raise errors.Refused(f"There is no tool {before.tool} any more: reject the call instead.")
    if stored.runner(tool) == "client":
        raise errors.Refused(
            f"The agent's own program runs {before.tool}, with arguments of its own: reject the call instead."
        )
    takes = declared_versions.offered(tool).input_schema
    known = {(each.path, each.message) for each in schema.violations(takes, before.preview)}
    found = [
        each for each in schema.violations(takes, after.arguments) if (each.path, each.message) not in known
    ]
    if found:
        raise errors.Invalid([errors.Problem(path=each.path, message=each.message) for each in found])
    # What was counted, and the labels of the session, are judged when it is made again.
    judgement = gate_rules.judge(
        stored,
        state.agent,
        before.tool,
        after.arguments,
        subagent=before.subagent,
        past=gate_rules.LEFT_OUT,
        at=clock.now(),
    )
    if judgement.denied_by is not None:
        raise errors.Refused(f"The rule {judgement.denied_by.key} denies the call with these arguments.")
    other = [rule.key for rule in judgement.asked_by if rule.key not in before.rules]
    if other:
        raise errors.Refused(
            f"With these arguments, the rule {other[0]} asks as well: reject the call instead."
        )
