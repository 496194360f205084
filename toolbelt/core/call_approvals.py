"""Approvals: requests to people to approve one call each (docs/semantics.md: Approvals).

The states, and what leads from one to another::

    pending   → approved    as many people approved it as it needs
              → rejected    one of them rejected it
              → expired     no one decided in time, and the call was made again
              → withdrawn   the same call is judged otherwise now, or its agent was removed
    approved  → spent       directly before the tool runs, once
              → expired     the call was not made again in time
              → withdrawn
    rejected  → expired     until then, the same call gets the same answer
              → withdrawn
    spent     → done        the tool ran, with this outcome; until then, it may have run

An approval may be given for a while, "always": until then, the same call is approved again automatically, each time as
a request of its own.

Silence denies: a request that is past its time is expired, whatever is stored. An approval is for one binding: the
caller, the tool and its version, the exact arguments, and the rules that ask. Whatever else is called is another one.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from toolbelt.core import catalog, errors, request_key, schema, secret_texts, strict_json, texts

State = Literal["pending", "approved", "rejected", "expired", "withdrawn", "spent", "done"]
STATES: tuple[State, ...] = get_args(State)
# In one of these, it answers for its binding; there is one at most.
OPEN: tuple[State, ...] = ("pending", "approved", "rejected")
NEXT: Mapping[State, tuple[State, ...]] = {
    "pending": ("approved", "rejected", "expired", "withdrawn"),
    "approved": ("spent", "expired", "withdrawn"),
    "rejected": ("expired", "withdrawn"),
    "expired": (),
    "withdrawn": (),
    "spent": ("done",),
    "done": (),
}
# What a call gets: it is asked about, waits, may run, is refused by a person, or by silence.
Answer = Literal["ask", "pending", "run", "rejected", "expired"]

# How many may be pending at a time, so that a person can read them.
MAX_OF_SESSION = 10
MAX_OF_AGENT = 50
# How many people a rule may want, and for how long, in seconds.
MAX_APPROVALS = 10
MAX_SECONDS = 30 * 24 * 3600
DEFAULT_SECONDS = 3600
# Everything that is approved can be read: larger arguments are not asked about. As JSON, in characters.
MAX_PREVIEW = 100_000
MAX_NOTE = 500
# How long a call can be approved again automatically.
MAX_ALWAYS = timedelta(days=30)
_SEVERAL = "Several people have to approve this call each time: approve it once."
# The longest value, as JSON, that the model is told of an edited argument.
MAX_NOTICED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A request to approve one call.

    ``key`` is what people and models call it. ``preview`` are the call's arguments without secrets, and ``edited`` the
    arguments that an operator replaced. ``needed`` people have to approve it; ``approved_by`` are those who did.
    ``wanted`` are the ``approvals`` that each rule needs, and of which ``groups`` (empty: all who may decide).
    ``asked_by`` is the user whose token or client made the call; empty if an agent's token did. ``note`` is what the
    model reads if it is rejected. ``always`` is until when the same call is approved automatically, in any session;
    ``always_of`` is the approval by which this one was. ``version`` counts what was done to it.
    """

    key: str
    agent: str
    tool: str
    rules: tuple[str, ...]
    state: State
    asked: datetime
    expires: datetime
    preview: Mapping[str, Any]
    session: str = ""
    subagent: str = ""
    asked_by: str = ""
    needed: int = 1
    wanted: tuple[Mapping[str, Any], ...] = ()
    edited: Mapping[str, Any] = field(default_factory=dict)
    edited_by: str = ""
    approved_by: tuple[str, ...] = ()
    rejected_by: str = ""
    note: str = ""
    spent: datetime | None = None
    outcome: str = ""
    always: datetime | None = None
    always_of: str = ""
    version: int = 0

    def state_at(self, at: datetime) -> State:
        """Return the state at this time."""
        return "expired" if self.state in OPEN and self.expires <= at else self.state

    @property
    def hidden(self) -> frozenset[str]:
        """Return the arguments that are not shown completely."""
        return frozenset(self.preview) - frozenset(shown(self.preview))

    @property
    def shown(self) -> str:
        """Return a digest of what a person decides about: the arguments as they are shown, and what was edited."""
        text = schema.canonical([self.preview, self.edited])
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments without secrets that the tool would get."""
        return {**self.preview, **self.edited}

    @property
    def notice(self) -> str:
        """Return what the model has to know beside the result: what an operator changed; empty for nothing."""
        changes = [_change(self.preview, name, value) for name, value in sorted(self.edited.items())]
        return f"An operator changed this call before it ran: {'; '.join(changes)}." if changes else ""


def request(
    key: request_key.RequestKey,
    tool: str,
    rules: Collection[catalog.GateRule],
    preview: Mapping[str, Any],
    at: datetime,
    *,
    asked_by: str = "",
    seconds: int = DEFAULT_SECONDS,
) -> Approval:
    """Return the request about a call, without its key: all rules that ask have to be satisfied, in the time of the one
    with the least. ``seconds`` is the time of a rule that says none.
    """
    return Approval(
        key="",
        agent=key.agent,
        session=key.session or "",
        subagent=key.subagent or "",
        asked_by=asked_by,
        tool=tool,
        rules=tuple(sorted(rule.key for rule in rules)),
        needed=max(rule.approvals for rule in rules),
        wanted=tuple(
            {"groups": list(groups), "approvals": approvals}
            for groups, approvals in sorted({(rule.approvers, rule.approvals) for rule in rules})
        ),
        state="pending",
        asked=at,
        expires=at + timedelta(seconds=min(rule.expires or seconds for rule in rules)),
        preview=preview,
    )


def is_full(pending: Iterable[Approval], another: Approval) -> bool:
    """Return whether another request may not be added to those that are pending."""
    of_agent = [each for each in pending if each.agent == another.agent]
    of_session = [each for each in of_agent if another.session and each.session == another.session]
    return len(of_agent) >= MAX_OF_AGENT or len(of_session) >= MAX_OF_SESSION


def answer(found: Approval | None, at: datetime) -> Answer:
    """Return what a call gets that rules ask about, given the open request for its binding."""
    if found is None or found.state not in OPEN:
        return "ask"
    if found.expires > at:
        answers: Mapping[State, Answer] = {"pending": "pending", "approved": "run", "rejected": "rejected"}
        return answers[found.state]
    # A rejection that has passed is no answer: it is asked about again.
    return "ask" if found.state == "rejected" else "expired"


def moved(approval: Approval, state: State, **changes: Any) -> Approval:
    """Return the approval in its next state. Raise errors.Refused if it does not come next."""
    if state not in NEXT[approval.state]:
        raise errors.Refused(f"Approval {approval.key} is {approval.state}: it cannot be {state} any more.")
    return dataclasses.replace(approval, state=state, version=approval.version + 1, **changes)


def approve(
    approval: Approval, by: str, at: datetime, groups: Mapping[str, Collection[str]] | None = None
) -> Approval:
    """Return the approval with one more person who approves it. Raise errors.Refused if they may not, or too late.

    ``groups`` are those of this person, and of those who approved it, by name; None: everyone is in each group.
    """
    _check(approval, by, at)
    if by in approval.approved_by:
        raise errors.Refused(
            f"You have approved {approval.key} already: another person has to approve it, too."
        )
    if refusal := no_help(approval, by, groups):
        raise errors.Refused(refusal)
    approved_by = (*approval.approved_by, by)
    if missing(approval, approved_by, groups):
        return dataclasses.replace(approval, approved_by=approved_by, version=approval.version + 1)
    return moved(approval, "approved", approved_by=approved_by, expires=_again(approval, at))


def missing(
    approval: Approval, approved_by: Collection[str], groups: Mapping[str, Collection[str]] | None = None
) -> list[Mapping[str, Any]]:
    """Return what is wanted, and not yet given by those who approved it; ``groups`` are as in :func:`approve`."""
    every = approval.wanted or ({"groups": [], "approvals": approval.needed},)
    return [
        wanted
        for wanted in every
        if sum(_is_of(wanted, name, groups) for name in approved_by) < wanted["approvals"]
    ]


def no_help(approval: Approval, by: str, groups: Mapping[str, Collection[str]] | None) -> str:
    """Return why it would not help if this person approved it: people of other groups have to. Empty if it would."""
    wanted = missing(approval, approval.approved_by, groups)
    if any(_is_of(each, by, groups) for each in wanted):
        return ""
    names = texts.listing(sorted({name for each in wanted for name in each["groups"]}))
    return f"A member of {names} has to approve this call."


def _is_of(wanted: Mapping[str, Any], name: str, groups: Mapping[str, Collection[str]] | None) -> bool:
    return not wanted["groups"] or groups is None or bool({*wanted["groups"]} & {*groups.get(name, ())})


def keep(approval: Approval, at: datetime, time: timedelta) -> Approval:
    """Return an approved approval that holds for the same call again, for this time. Raise errors.Refused if it cannot.

    Whoever says always has seen all that runs, and what runs is what was called.
    """
    if not timedelta(0) < time <= MAX_ALWAYS:
        raise errors.Refused(f"A call can be approved for {MAX_ALWAYS.days} days at most.")
    if refusal := no_keeping(approval) or ("" if approval.state == "approved" else _SEVERAL):
        raise errors.Refused(refusal)
    return dataclasses.replace(approval, always=at + time)


def no_keeping(approval: Approval) -> str:
    """Return why an approval cannot hold for the same call again. Empty if it can."""
    # Members of two groups, one each, are several people, too.
    if approval.needed > 1 or len(approval.wanted) > 1:
        return _SEVERAL
    if approval.edited:
        return "Its arguments were edited, and the agent will call with others: approve it once."
    return "Not all of its arguments are shown: approve it once." if approval.hidden else ""


def again(kept: Approval, request: Approval) -> Approval:
    """Return the request about a call, approved by the approval that was given for a while."""
    return dataclasses.replace(request, state="approved", approved_by=kept.approved_by, always_of=kept.key)


def revoke(approval: Approval, at: datetime) -> Approval:
    """Return the approval, which holds for no further call. Raise errors.Refused if it does not hold for any."""
    if approval.always is None or approval.always <= at:
        raise errors.Refused(
            f"Approval {approval.key} holds for no further call: there is nothing to revoke."
        )
    return dataclasses.replace(approval, always=None, version=approval.version + 1)


def reject(approval: Approval, by: str, at: datetime, note: str = "") -> Approval:
    """Return the approval, rejected with a note for the model. Raise errors.Refused if they may not, or too late."""
    _check(approval, by, at)
    return moved(approval, "rejected", rejected_by=by, note=note, expires=_again(approval, at))


def edit(approval: Approval, by: str, at: datetime, values: Mapping[str, Any]) -> Approval:
    """Return the approval of other arguments: these instead of the call's. Who approved it before has to do so again.

    Raise errors.Refused if they may not, or too late, and errors.Invalid for an argument that is not shown completely.
    """
    _check(approval, by, at)
    hidden = sorted(approval.hidden & values.keys())
    if hidden:
        message = (
            "Toolbelt does not store all of it, so that it cannot be changed here: reject the call instead."
        )
        raise errors.Invalid([errors.Problem(path=name, message=message) for name in hidden])
    return dataclasses.replace(
        approval, edited=dict(values), edited_by=by, approved_by=(), version=approval.version + 1
    )


def _check(approval: Approval, by: str, at: datetime) -> None:
    """Raise errors.Refused unless this person may decide about the approval now."""
    state = approval.state_at(at)
    if state != "pending":
        raise errors.Refused(f"Approval {approval.key} is {state}: there is nothing left to decide.")
    if by == approval.asked_by:
        raise errors.Refused(
            "The call was made with a token or a client of yours: another person has to decide about it."
        )


def _again(approval: Approval, at: datetime) -> datetime:
    """Return until when a decision holds: as long again as there was time for it."""
    return at + (approval.expires - approval.asked)


def _change(preview: Mapping[str, Any], name: str, value: Any) -> str:
    """Return how an argument was edited, with its values unless they are long."""
    after = schema.canonical(value)
    before = schema.canonical(preview[name]) if name in preview else ""
    if max(len(before), len(after)) > MAX_NOTICED:
        return f"{name} is another one"
    return f"{name} is {after} instead of {before}" if before else f"{name} is {after}"


def shown(preview: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a preview that have nothing withheld."""
    return {name: value for name, value in preview.items() if not _withholds(name, value)}


def _withholds(*values: Any) -> bool:
    waiting = list(values)
    while waiting:
        match waiting.pop():
            case str() as text if secret_texts.WITHHELD in text or "\N{REPLACEMENT CHARACTER}" in text:
                return True
            case Mapping() as inner:
                waiting += [*inner, *inner.values()]
            case list() as inner:
                waiting += inner
    return False


def binding(
    key: request_key.RequestKey,
    asked_by: str,
    tool: catalog.Tool,
    version: str,
    options: Mapping[str, Any] | None,
    arguments: Any,
    rules: Iterable[catalog.GateRule],
) -> str:
    """Return what an approval is for, as a text that differs for any other call: of another caller, of another tool or
    version of it, with other arguments or options, or asked about by other rules, or by the same ones before they were
    changed.

    1 is 1.0, and the order of names does not matter: they are the same JSON. Raise ValueError, TypeError or
    RecursionError for arguments that are not JSON.
    """
    identity = [key.agent, key.session, key.subagent, asked_by, tool.key, tool.plugin, version]
    asking = [[str(getattr(rule, field.name)) for field in dataclasses.fields(rule)] for rule in rules]
    return schema.comparable([identity, sorted(asking), options, strict_json.copied(arguments)])
