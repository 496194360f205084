"""The current time, which tests can stop, and the generated history of a demo moves."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator

_stopped: dt.datetime | None = None


def now() -> dt.datetime:
    """Return the current time, in UTC."""
    return _stopped or dt.datetime.now(dt.UTC)


@contextlib.contextmanager
def stopped(at: dt.datetime) -> Iterator[None]:
    """Stop the clock at this time within the block, for all threads of the process. For tests, and for
    a generated history.
    """
    global _stopped
    before, _stopped = _stopped, at
    try:
        yield
    finally:
        _stopped = before
