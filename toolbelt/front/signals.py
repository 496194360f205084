"""When does a server begin to end? Before it says so: it waits for open connections first, and streams stay open.

So whoever streams has to hear of the signal itself. The server's own answer to it stays what it is, and comes second.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

ENDING = (signal.SIGTERM, signal.SIGINT)

_Handler = Callable[[int, FrameType | None], Any]


@contextlib.contextmanager
def heard(act: Callable[[], Any]) -> Iterator[None]:
    """Let ``act`` run on this event loop when the process is told to end within the block.

    To be entered once the server hears the signals, as it does when it says that it starts up. Nothing where nobody
    hears them, or where they are not to be heard: in another thread than the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    put: dict[signal.Signals, tuple[_Handler, _Handler]] = {}
    for number in ENDING:
        before = signal.getsignal(number)
        if callable(before):
            put[number] = before, _first(act, loop, before)
            signal.signal(number, put[number][1])
    try:
        yield
    finally:
        for number, (before, ours) in put.items():
            # Somebody else may have put theirs in its place.
            if signal.getsignal(number) is ours:
                signal.signal(number, before)


def _first(act: Callable[[], Any], loop: asyncio.AbstractEventLoop, before: _Handler) -> _Handler:
    def hear(number: int, frame: FrameType | None) -> None:
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(act)
        before(number, frame)

    return hear
