"""Slots for calls, and for the threads of plain functions: a limited number run at a time, and further ones wait.

What runs cannot be taken away from one agent when another needs its slot. Therefore an agent gets a slot only while it
has fewer than are free: alone it has at most half, and an agent that has none waits only if several others have
them all.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections import Counter, defaultdict


def has_room(own: int, used: int, limit: int) -> bool:
    """Return whether an agent that has ``own`` of the ``used`` slots may have another."""
    return own < limit - used


class Ticket(concurrent.futures.Future[None]):
    """A place in the queue for one of a plugin's ``limit`` slots; done once its holder has a slot."""

    def __init__(self, plugin: str, agent: str, limit: int) -> None:
        super().__init__()
        self.plugin, self.agent, self.limit = plugin, agent, limit


class Slots:
    """The slots of each plugin in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: defaultdict[str, Counter[str]] = defaultdict(Counter)
        # In the order in which they came.
        self._waiting: defaultdict[str, dict[Ticket, None]] = defaultdict(dict)

    def enter(self, plugin: str, agent: str, limit: int) -> Ticket:
        """Queue for one of the plugin's ``limit`` slots. Return the ticket."""
        ticket = Ticket(plugin, agent, limit)
        with self._lock:
            self._waiting[plugin][ticket] = None
            self._pass_on(plugin, limit)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Release the slot and pass it on, or leave the queue."""
        ticket.cancel()
        with self._lock:
            self._waiting[ticket.plugin].pop(ticket, None)
            if not ticket.cancelled():
                self._used[ticket.plugin][ticket.agent] -= 1
                self._used[ticket.plugin] += Counter()  # without zeros
                self._pass_on(ticket.plugin, ticket.limit)

    def waiting(self, plugin: str) -> int:
        """Return the number of calls that wait for a slot of the plugin."""
        with self._lock:
            return len(self._waiting[plugin])

    def waiting_of(self, agent: str) -> int:
        """Return the number of this agent's calls that wait for a slot of any plugin."""
        with self._lock:
            return sum(ticket.agent == agent for queue in self._waiting.values() for ticket in queue)

    def _pass_on(self, plugin: str, limit: int) -> None:
        """Assign the free slots to those that waited longest, of the agents that may have another."""
        used, waiting = self._used[plugin], self._waiting[plugin]
        total = used.total()
        has_its_share: set[str] = set()
        for ticket in [*waiting]:
            if total >= limit:
                return
            if ticket.agent in has_its_share:
                continue
            if not has_room(used[ticket.agent], total, limit):
                has_its_share.add(ticket.agent)
                continue
            del waiting[ticket]
            # False if its caller has stopped waiting.
            if ticket.set_running_or_notify_cancel():
                used[ticket.agent] += 1
                total += 1
                ticket.set_result(None)
