"""Helpers of tests of approvals: requests as calls leave them."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

from toolbelt.core import call_approvals, catalog, request_key
from toolbelt.store import call_approvals as rows
from toolbelt.store import clock

RULE: dict[str, Any] = {
    "key": "over-500",
    "effect": "ask",
    "tools": ["papers"],
    "when": {"amount": {"exclusiveMinimum": 500}},
    "reason": "Refunds above 500 EUR need a person.",
}
_numbers = itertools.count()


def ask(
    arguments: dict[str, Any],
    *,
    agent: str = "ada",
    tool: str = "papers",
    rule: str = "over-500",
    ago: float = 0,
    approvals: int = 1,
    approvers: tuple[str, ...] = (),
    **more: Any,
) -> call_approvals.Approval:
    """Store a request about a call with these arguments, made ``ago`` seconds ago; return it."""
    asking = catalog.GateRule(key=rule, effect="ask", approvals=approvals, approvers=approvers)
    at = clock.now() - dt.timedelta(seconds=ago)
    request = call_approvals.request(request_key.RequestKey(agent), tool, [asking], arguments, at, **more)
    number = str(next(_numbers))
    added = rows.add(request, f"binding {number}", f"digest {number}")
    assert added is not None
    return added
