"""Run functions concurrently with a test: together in threads, or in another process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection

from toolbelt.core import errors

# A program that sets a switch to true or false for each line, and prints a line after each commit.
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
    """Run functions in threads that start together. Return the result of each, or the ToolbeltError that it raised."""
    start = threading.Barrier(len(acts))
    results: list[Any] = [None] * len(acts)

    def run(number: int, act: Callable[[], Any]) -> None:
        try:
            start.wait()
            results[number] = act()
        except errors.ToolbeltError as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=numbered) for numbered in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


async def do(act: Callable[[], object]) -> None:
    """Run a function in a thread, as Django does, without blocking the event loop."""

    def act_and_close() -> None:
        try:
            act()
        finally:
            connection.close()

    await asyncio.to_thread(act_and_close)
