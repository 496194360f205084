"""Asking people to approve a call, and finding what they decided (docs/semantics.md: Approvals).

A call finds its request by what it is: the caller, the tool, the arguments and the rules that ask. It needs no id, and
may be made again by any process. The arguments are not stored, only a digest of them and what can be shown.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt import conf
from toolbelt.core import (
    admitting,
    call_approvals,
    catalog,
    declared_versions,
    gate_rules,
    request_key,
    schema,
    tool_versions,
)
from toolbelt.runtime.records import recordings
from toolbelt.store import call_approvals as rows
from toolbelt.store import clock

Approval = call_approvals.Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """A call that rules ask about: everything that its approval is for. ``version`` is the one that is called, empty
    for the one that agents have. ``asked_by`` is the user whose token or client makes it.
    """

    key: request_key.RequestKey
    asked_by: str
    tool: catalog.Tool
    version: str
    options: Mapping[str, Any] | None
    arguments: Any
    judgement: gate_rules.Judgement

    @property
    def binding(self) -> str:
        """Return the digest of all of it. Raise ValueError, TypeError or RecursionError if it is not JSON."""
        return self._bound_to(self.key)

    @property
    def again(self) -> str:
        """Return the digest of all of it but its session, by which an approval for a while finds it."""
        return self._bound_to(self.key._replace(session=None))

    def _bound_to(self, key: request_key.RequestKey) -> str:
        version = self.version or tool_versions.version(declared_versions.offered(self.tool))
        return _digest(
            call_approvals.binding(
                key,
                self.asked_by,
                self.tool,
                version,
                self.options,
                self.arguments,
                self.judgement.asked_by,
            )
        )

    @property
    def digest(self) -> str:
        """Return the digest of the call alone, whatever version, options and rules it has."""
        tool = catalog.Tool(key=self.tool.key)
        return _digest(call_approvals.binding(self.key, self.asked_by, tool, "", None, self.arguments, ()))


def answer(held: HeldCall, *, may_ask: bool, spent: str = "") -> Approval | admitting.Refusal:
    """Return the approval of a call, or why it may not run yet; ask people, if they were not and ``may_ask``.

    Without ``may_ask``, nothing is written.

    ``spent`` is the key of the approval that this call has spent, if it is checked again: before a second attempt, if
    the first did not reach its server, or before the server gets the answers to its questions.
    """
    judgement, now = held.judgement, clock.now()
    try:
        binding = held.binding
    except (TypeError, ValueError, RecursionError):
        violation = schema.Violation(
            path="", keyword="", message="they are not JSON, so that no person can approve them"
        )
        return admitting.invalid(held.tool.key, (violation,))
    if spent and (own := rows.spent(spent, binding)) is not None:
        return own
    found = rows.find(binding)
    match call_approvals.answer(found, now), found:
        case "run", Approval() if _is_still_approved(found, held):
            return found
        case "run", Approval() if may_ask:
            # Whoever approved it may not any more.
            rows.move(found, call_approvals.moved(found, "withdrawn"))
        case "pending", Approval() if rows.kept(held.again) is None:
            return admitting.pending(found, judgement)
        case "pending", Approval() if may_ask:
            # The same call of another session was approved for a while.
            rows.move(found, call_approvals.moved(found, "withdrawn"))
        case "rejected", Approval():
            return admitting.rejected(found, judgement)
        case "expired", Approval():
            # Of several calls, one is told. The others ask again.
            if not may_ask or rows.move(found, call_approvals.moved(found, "expired")):
                return admitting.expired(found, judgement)
        case "ask", Approval() if may_ask:
            rows.move(found, call_approvals.moved(found, "expired"))
    if may_ask:
        return _ask(held, binding, now)
    return rows.kept(held.again) or admitting.asked_about(held.tool.key, judgement)


def _is_still_approved(found: Approval, held: HeldCall) -> bool:
    """Return whether a call may still run by the approval found for it."""
    return rows.kept(held.again) is not None if found.always_of else rows.has_its_people(found)


def spent(held: HeldCall) -> Approval | None:
    """Return the approval with which a call runs, by what it is alone, for all rules that ask; None if it has none."""
    keys = {rule.key for rule in held.judgement.asked_by}
    return next((each for each in rows.running(held.digest) if keys.issubset(each.rules)), None)


def _ask(held: HeldCall, binding: str, now: dt.datetime) -> Approval | admitting.Refusal:
    """Ask people about a call that they were not asked about."""
    tool, rules = held.tool.key, held.judgement.asked_by
    preview = recordings.masked(held.arguments)
    if len(schema.canonical(preview)) > call_approvals.MAX_PREVIEW:
        violation = schema.Violation(
            path="", keyword="", message="they are too long for a person to read and approve"
        )
        return admitting.invalid(tool, (violation,))
    request = call_approvals.request(
        held.key,
        tool,
        rules,
        preview,
        now,
        asked_by=held.asked_by,
        seconds=conf.APPROVAL_EXPIRES,
    )
    added = rows.add(request, binding, held.digest, held.again)
    if added is None:
        return admitting.too_many_approvals(tool, held.judgement)
    if added.state == "approved":
        # It was approved for a while, or another process asked, and a person was quick.
        return added
    return admitting.pending(added, held.judgement)


def withdraw(approval: Approval) -> None:
    """Withdraw an approval whose arguments, as an operator edited them, may not be called with."""
    rows.move(approval, call_approvals.moved(approval, "withdrawn"))


def spend(approval: Approval, arguments: Any, call_id: str = "") -> bool:
    """Spend an approval, in the transaction that ends directly before the tool runs; return False if it is not to be
    had any more.

    ``arguments`` are those that the tool gets, and ``call_id`` is the key of the admission that spends it.
    """
    now = clock.now()
    if approval.state_at(now) != "approved":
        return False
    edited = _digest(schema.comparable(arguments)) if approval.edited else ""
    spent = call_approvals.moved(approval, "spent", spent=now)
    return rows.move(approval, spent, edited_digest=edited, call_id=call_id)


finish = rows.finish


def _digest(text: str) -> str:
    return recordings.keyed_digest("approvals", text.encode(errors="surrogatepass"), 32)
