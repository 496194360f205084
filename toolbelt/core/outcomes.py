"""The outcomes of calls: that of one that ran, and the codes of those that were refused or failed."""

from __future__ import annotations

# A person may approve a call with this refusal.
PENDING = "approval-pending"
# The refusals of calls about which rules ask.
ASKED = (PENDING, "approval-rejected", "approval-expired", "too-many-approvals")
# Of a call that the agent's own program runs, and of one whose outcome the program did not report in time.
ADMITTED, UNREPORTED = "admitted", "unreported"
STORED = (
    "ok",
    "unknown-tool",
    "tool-withdrawn",
    "tool-not-active",
    "tool-denied",
    "tool-unavailable",
    "sign-in-needed",
    "invalid-arguments",
    "denied-by-rule",
    "quota-reached",
    *ASKED,
    "timed-out",
    "tool-failed",
    "cancelled",
    "run-by-client",
    "run-by-toolbelt",
    ADMITTED,
)
REFUSALS = tuple(outcome for outcome in STORED if outcome not in ("ok", "cancelled", ADMITTED))
# The refusals of arguments, which say nothing about the tool's state.
OF_ARGUMENTS = frozenset({"invalid-arguments", "denied-by-rule", "quota-reached", *ASKED})
