"""A call that waits for people, or that they decided about: what it would do, what changed, and who may decide."""

from __future__ import annotations

import datetime as dt
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from toolbelt.control.agents import call_approvals
from toolbelt.control.reports import usage
from toolbelt.core import call_approvals as values
from toolbelt.core import catalog, gate_rules
from toolbelt.web.kit import call_outcomes, pieces, texts, words

# With less time than this, a request is marked.
URGENT = dt.timedelta(minutes=5)
# Longer texts are shown without their differences, which would take long to find.
MAX_COMPARED = 20_000
MAX_RULE_REASON = 300


class Argument(pieces.View):
    """One argument: its value, or what changed in it since the last call that was decided about."""

    def __init__(self, argument: call_approvals.Argument) -> None:
        value, before = printed(argument.value), printed(argument.before)
        is_compared = argument.is_changed and len(value) + len(before) <= MAX_COMPARED
        self.name = texts.visible(argument.name)
        self.is_new, self.is_changed = argument.is_new, argument.is_changed
        self.is_hidden, self.is_edited = argument.is_hidden, argument.is_edited
        self.text = texts.text(value)
        self.difference = texts.difference(_lines(before, value)) if is_compared else None
        self.called = texts.text(printed(argument.called)) if argument.is_edited else None


def printed(value: Any) -> str:
    """Return a value as people read it: a text as it is, unless it could be read as something else; JSON otherwise."""
    if isinstance(value, str) and not _is_json(value):
        return value
    return json.dumps(
        value, indent=2 if value and isinstance(value, list | dict) else None, ensure_ascii=False
    )


def _is_json(text: str) -> bool:
    """Return whether a text would be read as JSON, such as ``700``, or as nothing."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return not text.strip()
    return True


def _lines(before: str, after: str) -> Iterable[str]:
    """Return a difference without the names of files."""
    return [*difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1)][2:]


class Fate(pieces.View):
    """What became of a request, in words, beside what it was about."""

    def __init__(self, approval: call_approvals.Approval) -> None:
        state = call_approvals.state_of(approval)
        self.approval = approval
        self.state = state
        self.shape, self.words = _fate(approval, state)
        self.is_noted = bool(approval.rejected_by and approval.note)


def _fate(approval: call_approvals.Approval, state: str) -> tuple[str, str]:
    approved = f"approved by {words.listing(approval.approved_by)}"
    if approval.always_of:
        approved += " for a while"
    edited = ", with changes" if approval.edited else ""
    is_approved = len(approval.approved_by) >= approval.needed
    match state:
        case "pending":
            return "discoverable", "waits for approval"
        case "approved":
            return "active", f"{approved}{edited}; runs when the agent calls again"
        case "spent":
            return "unavailable", f"{approved}{edited}; it may have run"
        case "done":
            shape, outcome = call_outcomes.of(approval.outcome)
            return shape, f"{approved}{edited}; the call {outcome}"
        case _ if approval.rejected_by:
            return "denied", f"rejected by {approval.rejected_by}"
        case "expired" if is_approved:
            return "dormant", f"{approved}{edited}, but not called again in time"
        case "expired":
            return "dormant", "expired: no one decided in time"
    return "dormant", "withdrawn: its rules or its agent changed"


def of_call(record: usage.Call) -> Fate | None:
    """Return what became of the request about a recorded call; None if it is not known which it was."""
    found = call_approvals.of_call(
        record.agent,
        record.tool,
        record.session,
        began=record.at,
        # Durations are rounded.
        ended=record.at + dt.timedelta(milliseconds=record.duration_ms + 1),
        error=record.error,
    )
    return None if found is None else Fate(found)


class AskedCall(pieces.View):
    """One request, for this user: ``refusal`` is why they may not decide, ``no_yes`` why they may not approve."""

    def __init__(self, detail: call_approvals.Detail, user: str, no_help: str = "") -> None:
        approval = detail.approval
        is_pending = detail.state == "pending"
        self.approval = approval
        self.value = f"{approval.key}={approval.shown}"
        self.is_pending = is_pending
        self.is_urgent = is_pending and approval.expires - timezone.now() < URGENT
        self.arguments = tuple(map(Argument, detail.arguments))
        self.removed = tuple(map(texts.visible, detail.removed))
        self.before = Fate(detail.before) if detail.before is not None else None
        self.people = _people(approval)
        self.refusal = self.no_yes = ""
        if approval.asked_by == user:
            self.refusal = "It was called with a token or a client of yours: another person has to decide."
        elif user in approval.approved_by:
            self.no_yes = "You have approved it: another person has to approve it, too."
        else:
            self.no_yes = no_help
        self.may_approve = is_pending and not self.refusal and not self.no_yes
        self.may_keep = self.may_approve and not values.no_keeping(approval)
        self.may_reject = is_pending and not self.refusal
        self.may_edit = self.may_approve and detail.is_editable


def _people(approval: call_approvals.Approval) -> str:
    """Return how many people have to approve a call, and who has; empty if one is enough."""
    if approval.needed < 2:
        return ""
    count = f"{len(approval.approved_by)} of {approval.needed} approved"
    return f"{count}: {words.listing(approval.approved_by)}" if approval.approved_by else count


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that asks: what it does, and why. Without words, it is there no more."""

    key: str
    words: str = ""
    reason: str = ""


def rules(keys: Sequence[str], found: Iterable[catalog.GateRule]) -> tuple[Rule, ...]:
    """Return the rules with these keys in words."""
    stored = {rule.key: rule for rule in found}
    return tuple(
        Rule(
            key=key,
            words=texts.visible(gate_rules.in_words(stored[key])),
            reason=texts.visible(words.cut(stored[key].reason, MAX_RULE_REASON)),
        )
        if key in stored
        else Rule(key=key)
        for key in keys
    )


class Group(pieces.View):
    """The requests of one tool about which the same rules ask; ``values`` are those that the user may approve."""

    def __init__(
        self, details: Sequence[call_approvals.Detail], user: str, no_help: Mapping[str, str]
    ) -> None:
        first = details[0].approval
        self.tool = first.tool
        self.id = f"{first.tool}:{','.join(first.rules)}"
        self.rules = rules(first.rules, details[0].rules)
        self.calls = tuple(
            AskedCall(detail, user, no_help.get(detail.approval.key, "")) for detail in details
        )
        self.values = tuple(call.value for call in self.calls if call.may_approve)
        self.rejectable = tuple(call.value for call in self.calls if call.may_reject)
