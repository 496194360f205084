"""The last check of a call, directly before its tool runs, and what ends a call that runs.

What operators changed while the call waited applies to it. What it adds to the past, and the approval that it spends,
are stored with it: all of it once, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import db
from django.db import transaction

from toolbelt.core import (
    admitting,
    call_approvals,
    errors,
    gate_rules,
)
from toolbelt.core.rules import budgets
from toolbelt.runtime import counting
from toolbelt.runtime.calls import asking, gates
from toolbelt.store import clock, databases, holds, revisions


class DeniedError(Exception):
    """A call that was admitted has since been denied."""

    def __init__(self, refusal: admitting.Refusal, operator_reason: str) -> None:
        self.refusal, self.operator_reason = refusal, operator_reason
        super().__init__(operator_reason)


class UncheckedError(Exception):
    """The call cannot be checked again, because the database cannot be read."""


class UnauthorizedError(Exception):
    """The caller may no longer call; ``__cause__`` is the reason."""


def check_again(admitted: gates.Admitted) -> None:
    """Raise DeniedError or UnauthorizedError if the call may no longer run, and UncheckedError if that is unknown."""
    try:
        try:
            admitted.gate.caller.may_call()
        except db.Error:
            raise
        except Exception as error:
            raise UnauthorizedError from error
        if admitted.approval is None:
            denied = _denied(admitted) or _count(admitted)
        else:
            # Whatever an operator changes is changed before this, or after the approval is spent.
            with transaction.atomic():
                revisions.lock()
                denied = _denied(admitted) or _count(admitted)
        if denied is not None:
            raise denied
    except (errors.NotFound, errors.Archived) as error:
        raise DeniedError(admitting.unknown(admitted.tool), str(error)) from error
    except db.Error as error:
        raise UncheckedError(str(error)) from error
    finally:
        databases.release()


def _denied(admitted: gates.Admitted) -> DeniedError | None:
    """Return why the call may not run any more."""
    gate, recording = admitted.gate, admitted.gate.recording
    snapshot, state = gate.take()
    is_same = state == admitted.state and not (holds.any_held() or gate.has_rule_ended)
    if is_same and admitted.approval is None:
        return None
    sent = recording.arguments
    admission = gate.admit(budgets.resolve(snapshot), snapshot)
    if isinstance(admission, admitting.Refusal):
        reason = recording.reason_text or admission.without_values()
        return DeniedError(admission, f"Denied while it waited: {reason}")
    stored = snapshot.catalog.tools[admitted.tool]
    # What was just checked is not what would be sent, if the schema has other defaults now.
    is_refilled = stored.kind == "tool" and sent != admitting.filled(
        snapshot.catalog, admitted.tool, recording.arguments
    )
    is_changed = stored.plugin != admitted.plugin or admission.options != admitted.options or is_refilled
    if is_changed or _identity(admission.approval) != _identity(admitted.approval):
        return _changed(admitted)
    return None


def _identity(approval: call_approvals.Approval | None) -> tuple[str, Mapping[str, Any]] | None:
    return None if approval is None else (approval.key, approval.edited)


def _count(admitted: gates.Admitted) -> DeniedError | None:
    """Count a call, label its session and spend its approval: all of it once, or nothing. Return why it may not run,
    if a count is full by now, or the approval is spent.
    """
    gate = admitted.gate
    if not (gate.is_due or admitted.approval is not None):
        return None
    denied: DeniedError | None = None
    with transaction.atomic():
        if gate.is_due:
            full = counting.take(gate.call.key, admitted.tool, gate.counts, gate.brings)
            denied = None if full is None else _full(admitted, full)
        if denied is None and admitted.approval is not None:
            denied = _spend(admitted, admitted.approval)
        transaction.set_rollback(denied is not None)
    gate.is_counted = gate.is_counted or denied is None
    return denied


def _full(admitted: gates.Admitted, count: gate_rules.Count) -> DeniedError:
    """Return why a call may not run whose count other calls have filled since it was admitted."""
    if count.rule.effect != "deny":
        return _changed(admitted)
    judgement = gate_rules.Judgement(denied_by=count.rule)
    admitted.gate.recording.note_judgement(judgement)
    refusal = admitting.too_many_calls(admitted.tool, count.limit, judgement, clock.now())
    return DeniedError(refusal, refusal.without_values())


def _spend(admitted: gates.Admitted, approval: call_approvals.Approval) -> DeniedError | None:
    """Spend the approval of a call, once; return why it may not run, if that is not to be had any more."""
    if admitted.gate.spent:
        return None
    if not asking.spend(approval, admitted.gate.recording.arguments, admitted.call_id):
        return _changed(admitted)
    admitted.gate.spent = approval
    return None


def _changed(admitted: gates.Admitted) -> DeniedError:
    message = f"{admitted.tool} was changed while this call waited: call it again."
    return DeniedError(admitting.Refusal(code="tool-unavailable", message=message), message)


def blocked(admitted: gates.Admitted) -> DeniedError | None:
    """Return why a running call must end: its tool is blocked, or its agent is archived or deleted. Else None."""
    try:
        snapshot, _ = admitted.gate.take()
        resolved = budgets.resolve(snapshot)
        is_known = admitted.tool in snapshot.catalog.tools
        is_stopped = holds.is_stopped(snapshot.catalog, admitted.tool)
        if is_known and resolved.decision(admitted.tool).code != "blocked" and not is_stopped:
            return None
        admission = admitted.gate.admit(resolved, snapshot)
    except (errors.NotFound, errors.Archived) as error:
        return DeniedError(admitting.unknown(admitted.tool), str(error))
    finally:
        databases.release()
    if isinstance(admission, admitting.Refusal):
        reason = admitted.gate.recording.reason_text or admission.message
        return DeniedError(admission, f"Cancelled while it ran: {reason}")
    return None
