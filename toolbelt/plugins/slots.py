"""The limit on concurrent calls of one plugin: further calls wait in a queue, in a thread or on a loop."""

from __future__ import annotations

import concurrent.futures
import threading
from collections import Counter, defaultdict, deque

Ticket = concurrent.futures.Future[None]


class CallSlots:
    """The slots of each plugin in this process. A ticket is done once its holder has a slot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: Counter[str] = Counter()
        self._waiting: defaultdict[str, deque[Ticket]] = defaultdict(deque)

    def enter(self, plugin: str, limit: int) -> Ticket:
        """Queue for one of the plugin's ``limit`` slots. Return the ticket."""
        ticket: Ticket = concurrent.futures.Future()
        with self._lock:
            if self._used[plugin] < limit:
                self._used[plugin] += 1
                ticket.set_result(None)
            else:
                self._waiting[plugin].append(ticket)
        return ticket

    def leave(self, plugin: str, ticket: Ticket) -> None:
        """Release the slot and pass it on, or leave the queue."""
        if ticket.cancel():
            return
        with self._lock:
            waiting = self._waiting[plugin]
            while waiting:
                next_ticket = waiting.popleft()
                # False if its caller has left the queue.
                if next_ticket.set_running_or_notify_cancel():
                    next_ticket.set_result(None)
                    return
            self._used[plugin] -= 1

    def waiting(self, plugin: str) -> int:
        """Return the number of calls that wait for a slot of the plugin."""
        with self._lock:
            return sum(not ticket.cancelled() for ticket in self._waiting[plugin])
