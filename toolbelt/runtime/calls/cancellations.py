"""Cancellation of calls across processes: any process requests it, and the one that runs the call polls for it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from toolbelt.store import cancellations, clock


def now() -> dt.datetime:
    """Return the current time, to record as the start of a call."""
    return clock.now()


def cancel(key: str) -> None:
    """Request the cancellation of the call with this key, in whichever process it runs."""
    cancellations.request(key)


def find_requested(started: Mapping[str, dt.datetime]) -> set[str]:
    """Return the keys of the running calls that should be cancelled. ``started`` is when each call began.

    Requests from before that time were for an earlier call under the same key. Uses one query.
    """
    return {key for key, at in cancellations.requested(started.keys()).items() if at >= started[key]}
