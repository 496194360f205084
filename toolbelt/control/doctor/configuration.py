"""Checks of the configuration: whether it is as the belt that was applied last, and its past is rebuilt right."""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt import conf
from toolbelt.control import self_checks
from toolbelt.control.config import drift
from toolbelt.control.doctor import findings
from toolbelt.store import audit, retention


def examine() -> Iterator[findings.Finding]:
    """Yield a finding if the configuration differs from the belt applied last, or replays from the past."""
    found = drift.find()
    if found is not None and found.differences:
        yield findings.Finding(
            code="belt-drift",
            message=found.message,
            way_out=f"See all with `{conf.COMMAND} belt drift`; then change the file as well, or apply it again.",
            level="note",
        )
    checked = self_checks.latest() or self_checks.check()
    if checked.mismatches:
        calls = ", ".join(map(str, checked.mismatches))
        yield findings.Finding(
            code="replays",
            message=f"{checked.sentence} Proofs may be wrong for calls like these.",
            way_out=f"Report it as an error of Toolbelt, with the calls {calls}.",
            level="note",
        )
    first, oldest = audit.first(), retention.calls().oldest
    if first is not None and oldest is not None and first.number > 1 and oldest < first.at:
        yield findings.Finding(
            code="log-younger",
            message=f"Entries of the audit log before {first.at:%Y-%m-%d} were deleted, and calls of"
            f" {oldest:%Y-%m-%d} are recorded: they cannot be decided again as everything was configured then.",
            way_out="Keep the audit log for as long as the calls, or delete these calls with"
            f" `{conf.COMMAND} prune_calls`.",
            level="note",
        )


def replays() -> str:
    """Return how many recorded verdicts replays reproduce, in a sentence."""
    return (self_checks.latest() or self_checks.check()).sentence
