"""The outcomes of calls in words."""

from __future__ import annotations

from collections.abc import Mapping

# The shape beside each, and its words.
OUTCOMES: Mapping[str, tuple[str, str]] = {
    "ok": ("active", "succeeded"),
    "unknown-tool": ("denied", "no such tool"),
    "tool-withdrawn": ("denied", "withdrawn"),
    "tool-not-active": ("denied", "not available"),
    "tool-denied": ("denied", "refused"),
    "invalid-arguments": ("denied", "invalid arguments"),
    "denied-by-rule": ("denied", "denied by a rule"),
    "quota-reached": ("denied", "too many calls"),
    "approval-pending": ("discoverable", "waits for approval"),
    "approval-rejected": ("denied", "rejected by a person"),
    "approval-expired": ("denied", "not approved in time"),
    "too-many-approvals": ("denied", "too many wait for approval"),
    "tool-unavailable": ("unavailable", "unavailable"),
    "sign-in-needed": ("unavailable", "needs a sign-in"),
    "timed-out": ("unavailable", "timed out"),
    "tool-failed": ("unavailable", "failed"),
    "cancelled": ("dormant", "cancelled"),
    "admitted": ("active", "running in the agent's program"),
    "unreported": ("unavailable", "unreported"),
    "run-by-client": ("denied", "run by the agent's program"),
    "run-by-toolbelt": ("denied", "run by Toolbelt"),
}


def of(outcome: str) -> tuple[str, str]:
    """Return the shape and the words of an outcome."""
    return OUTCOMES.get(outcome, ("dormant", outcome))
