"""Checks of the configuration: whether it is as the belt that was applied last, and its past is rebuilt right."""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt import conf
from toolbelt.control import self_checks
from toolbelt.control.config import drift
from toolbelt.control.doctor import findings
from toolbelt.store import retention


def examine(checked: self_checks.SelfCheck) -> Iterator[findings.Finding]:
    """Yield a finding if the configuration differs from the belt applied last, or what was replayed from the past."""
    found = drift.find()
    if found is not None and found.differences:
        yield findings.Finding(
            code="belt-drift",
            message=found.message,
            way_out=f"See all with `{conf.COMMAND} belt drift`; then change the file as well, or apply it again.",
            level="note",
        )
    if checked.mismatches:
        calls = ", ".join(map(str, checked.mismatches))
        yield findings.Finding(
            code="replays",
            message=f"{checked.sentence} Proofs may be wrong for calls like these.",
            way_out=f"Report it as an error of Toolbelt, with the calls {calls}.",
            level="note",
        )
    begun, oldest = retention.changes().oldest, retention.calls().oldest
    if begun is not None and oldest is not None and oldest < begun:
        yield findings.Finding(
            code="log-younger",
            message=f"The audit log begins on {begun:%Y-%m-%d}, and calls of {oldest:%Y-%m-%d} are recorded: they are"
            " decided again as everything was configured when the log begins.",
            way_out="Keep the audit log for as long as the calls, or delete these calls with"
            f" `{conf.COMMAND} prune_calls`.",
            level="note",
        )
