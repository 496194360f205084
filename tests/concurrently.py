"""Writes beside what a test watches: functions that start together, in a thread, or in another process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection

from toolbelt.core import errors

# A program that flips one switch as often as there are lines with true or false, and says when each is committed.
FLIPS = """
import json, sys
import django
django.setup()
from toolbelt.control import writing
from toolbelt.control.access import switches
write = writing.by("olive", via="command").replace(confirm=True)
for line in sys.stdin:
    switches.flip(write, "ada", "reading", json.loads(line))
    print(json.dumps({}), flush=True)
"""


def done(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """Do the acts in threads that begin together; give what each gave, or the product's error that it raised."""
    start = threading.Barrier(len(acts))
    came: list[Any] = [None] * len(acts)

    def run(number: int, act: Callable[[], Any]) -> None:
        try:
            start.wait()
            came[number] = act()
        except errors.ToolbeltError as error:
            came[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=one) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return came


async def do(act: Callable[[], object]) -> None:
    """Run the function in a thread, as Django does, while the event loop continues."""

    def acted() -> None:
        try:
            act()
        finally:
            connection.close()

    await asyncio.to_thread(acted)
