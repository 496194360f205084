"""The limits on what a server may use: memory, time, and attempts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a server's lists: ``pages``, ``tools``, ``non_tools`` (of each kind), ``bytes`` as canonical JSON.

    All times are in seconds. ``first_pause`` and ``longest_pause`` are those after a failure to connect;
    ``relist_pause`` and ``longest_relist_pause`` are those between lists that the server's notifications cause.
    ``probe`` is how long the server may take to say that it speaks the stateless revision, ``close`` how long closing
    a connection may take, ``subscribe`` how long the first list waits for a subscription to changes, ``listing`` how
    long other kinds than tools may be listed, and ``update_pause`` the minimum time between
    two notifications of an updated resource. ``late`` is how many consecutive answers may time out before a connection
    is closed.
    """

    pages: int = 100
    tools: int = 5_000
    non_tools: int = 1_000
    bytes: int = 16 * 1024 * 1024
    first_pause: float = 0.5
    longest_pause: float = 60.0
    relist_pause: float = 0.5
    longest_relist_pause: float = 60.0
    late: int = 3
    close: float = 8.0
    probe: float = 5.0
    subscribe: float = 2.0
    listing: float = 10.0
    update_pause: float = 1.0
