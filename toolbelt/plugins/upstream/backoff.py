"""Pauses before a server is contacted again that cannot be reached, or that announces changes again and again."""

from __future__ import annotations

import random
import time

from toolbelt.plugins.upstream import limits


class Backoff:
    """The pause after a failure to connect. It grows with each failure, and is random."""

    def __init__(self, bounds: limits.Limits) -> None:
        self._limits = bounds
        self._failures, self._not_before, self._failed_at = 0, 0.0, 0.0
        # Why the last attempt failed, and whether a sign-in is needed; several connections may share the pause.
        self.reason, self.is_sign_in_needed = "", False

    def left(self) -> float:
        """Return the remaining seconds of the pause."""
        return max(0.0, self._not_before - time.monotonic())

    def failed(self, reason: str = "", *, is_sign_in_needed: bool = False) -> None:
        """Begin the next pause."""
        self._failures += 1
        self.reason, self.is_sign_in_needed = reason, is_sign_in_needed
        self._failed_at = time.time()
        # Limits the exponent; the pause itself is limited anyway.
        longest = min(self._limits.longest_pause, self._limits.first_pause * 2 ** min(self._failures - 1, 30))
        # Random, so that not all clients of a server reconnect at the same moment.
        self._not_before = time.monotonic() + longest * random.uniform(0.5, 1.0)  # noqa: S311

    def answered_elsewhere(self, at: float) -> None:
        """End the pause if the server has answered another process since it began; ``at`` is in Unix time."""
        if at > self._failed_at:
            self.cut_short()

    def cut_short(self) -> None:
        """End the pause, for a request that does not wait for it."""
        self._not_before = 0.0

    def forget(self) -> None:
        """Reset the length of the pause, because the server has answered."""
        self._failures = 0


class RelistThrottle:
    """The pause before a list that the server itself causes. It grows until the server is quiet for a while."""

    def __init__(self, bounds: limits.Limits) -> None:
        self._limits = bounds
        self._count, self._last = 0, 0.0

    def listed(self) -> None:
        """Record that such a list has just ended."""
        self._last = time.monotonic()

    def next(self) -> float:
        """Return the pause before the next list, in seconds."""
        since = time.monotonic() - self._last
        longest = self._limits.longest_relist_pause
        if since >= longest:
            self._count = 0
        pause = 0.0
        if self._count:
            # Limits the exponent; the pause itself is limited anyway.
            pause = min(longest, self._limits.relist_pause * 2 ** min(self._count - 1, 30)) - since
        self._count += 1
        return pause
