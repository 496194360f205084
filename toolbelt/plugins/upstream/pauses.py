"""How long is a server left alone: one that cannot be reached, and one that tells of changes again and again?"""

from __future__ import annotations

import random
import time

from toolbelt.plugins.upstream import limits


class Away:
    """The pause after a failure to connect: it grows with each, and is never twice the same."""

    def __init__(self, bounds: limits.Limits) -> None:
        self._limits = bounds
        self._failures, self._not_before, self._failed_at = 0, 0.0, 0.0

    def left(self) -> float:
        """Say how many seconds of it are left."""
        return max(0.0, self._not_before - time.monotonic())

    def failed(self) -> None:
        """Begin the next one."""
        self._failures += 1
        self._failed_at = time.time()
        longest = min(self._limits.longest_pause, self._limits.first_pause * 2 ** (self._failures - 1))
        # Not all that lost the same server come back at the same moment.
        self._not_before = time.monotonic() + longest * random.uniform(0.5, 1.0)  # noqa: S311

    def answered_elsewhere(self, at: float) -> None:
        """Let it be over if the server has answered another process since; ``at`` as the clock on the wall has it."""
        if at > self._failed_at:
            self.cut_short()

    def cut_short(self) -> None:
        """Let it be over: somebody asks who does not wait."""
        self._not_before = 0.0

    def forget(self) -> None:
        """Let the next one be as short as the first: the server has answered."""
        self._failures = 0


class Relists:
    """The pause before a list that the server itself brings about: it grows until the server is quiet for a while."""

    def __init__(self, bounds: limits.Limits) -> None:
        self._limits = bounds
        self._count, self._last = 0, 0.0

    def listed(self) -> None:
        """Remember that such a list has just come to its end."""
        self._last = time.monotonic()

    def next(self) -> float:
        """Say how long the next list has to wait for those before it."""
        since = time.monotonic() - self._last
        longest = self._limits.longest_relist_pause
        if since >= longest:
            self._count = 0
        pause = 0.0
        if self._count:
            # Past 2**30 no pause grows any more.
            pause = min(longest, self._limits.relist_pause * 2 ** min(self._count - 1, 30)) - since
        self._count += 1
        return pause
