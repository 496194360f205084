"""How much may a server take of us: of memory, of time, of patience?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much it may list (``bytes`` as canonical JSON); how long it is left alone after a first failure, and at most;
    how long it is not listed anew after it told of a change (``relist_pause``, growing with each that follows), and at
    most; how many answers that do not come in time, one after the other, end a connection (``late``); and how long its
    end may take; and for how long its first list waits until a subscription to changes stands. All times in seconds.
    """

    pages: int = 100
    tools: int = 5_000
    bytes: int = 16 * 1024 * 1024
    first_pause: float = 0.5
    longest_pause: float = 60.0
    relist_pause: float = 0.5
    longest_relist_pause: float = 60.0
    late: int = 3
    close: float = 8.0
    subscribe: float = 2.0
