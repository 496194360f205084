"""Checks of the configuration: whether it is as the belt that was applied last."""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt import conf
from toolbelt.control.config import drift
from toolbelt.control.doctor import findings


def examine() -> Iterator[findings.Finding]:
    """Yield a finding if the configuration differs from the belt applied last."""
    found = drift.find()
    if found is not None and found.differences:
        yield findings.Finding(
            code="belt-drift",
            message=found.message,
            way_out=f"See all with `{conf.COMMAND} belt drift`; then change the file as well, or apply it again.",
            level="note",
        )
