"""How many calls of one plugin run at a time? Whoever finds no place waits in line, in a thread or in a loop."""

from __future__ import annotations

import concurrent.futures
import threading
from collections import Counter, defaultdict, deque

Ticket = concurrent.futures.Future[None]


class Places:
    """The places of each plugin in this process. A ticket is done once its holder has a place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()
        self._waiting: defaultdict[str, deque[Ticket]] = defaultdict(deque)

    def enter(self, plugin: str, most: int) -> Ticket:
        """Get in line for a place of the plugin, of which there are ``most``."""
        ticket: Ticket = concurrent.futures.Future()
        with self._lock:
            if self._taken[plugin] < most:
                self._taken[plugin] += 1
                ticket.set_result(None)
            else:
                self._waiting[plugin].append(ticket)
        return ticket

    def leave(self, plugin: str, ticket: Ticket) -> None:
        """Give the place back, or get out of the line."""
        if ticket.cancel():
            return
        with self._lock:
            waiting = self._waiting[plugin]
            while waiting:
                following = waiting.popleft()
                # False: that one has got out of the line.
                if following.set_running_or_notify_cancel():
                    following.set_result(None)
                    return
            self._taken[plugin] -= 1

    def waiting(self, plugin: str) -> int:
        """Return how many wait for a place of the plugin."""
        with self._lock:
            return sum(not ticket.cancelled() for ticket in self._waiting[plugin])
