"""Notification of the signals that stop a server, before the server announces its shutdown.

The server first waits for open connections, but streams stay open, so streams must react to the signal itself. The
server's own signal handler still runs afterwards.
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
def call_on_stop(act: Callable[[], Any]) -> Iterator[None]:
    """Within the block, run ``act`` on this event loop when the process receives a signal to stop.

    Enter it after the server has installed its signal handlers, as it has at its startup event. It has no effect
    without signal handlers, or outside the main thread.
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
            # Another handler may have been installed since.
            if signal.getsignal(number) is ours:
                signal.signal(number, before)


def _first(act: Callable[[], Any], loop: asyncio.AbstractEventLoop, before: _Handler) -> _Handler:
    def on_signal(number: int, frame: FrameType | None) -> None:
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(act)
        before(number, frame)

    return on_signal
