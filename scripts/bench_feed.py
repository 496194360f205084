"""Benchmark of the change feed: how soon followers learn of a flip, and what many followers cost. (`make bench`)

Flips are made one after the other, in this process and in another. The time is from the commit until the follower runs.
Meanwhile, a second follower follows another agent, and must not be notified.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from scripts import bench

FLIPS = 1000
FOLLOWERS = 500
# The seconds without changes for which CPU is measured.
IDLE = 5.0
# p95 of the ms from the commit until the follower runs.
GOALS = {("here", "sqlite"): 100, ("here", "postgresql"): 100, ("elsewhere", "sqlite"): 300}
GOALS["elsewhere", "postgresql"] = 100
LABELS = {"here": "in the follower's process", "elsewhere": "in another process"}

# Flips once for each line of input, and prints the time of each commit.
_FLIPPER = """
import sys, time
import django
django.setup()
from scripts import bench_feed
flip = bench_feed.flipper()
for line in sys.stdin:
    print(flip(line.strip() == "true"), flush=True)
"""


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, help="measure with a catalog of this size and print it as JSON")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if options.size:
        print(json.dumps(measure(options.size)))
        return 0
    figures = bench.run_in_process(bench.SIZES[0], "scripts.bench_feed")
    print(json.dumps(figures, indent=2)) if options.json else report(figures)
    return 0


def measure(size: int) -> dict[str, Any]:
    """Measure on a database with ``size`` tools."""
    with bench.filled(size) as connection:
        from toolbelt import models

        models.Agent.objects.create(key="another")
        vendor, address = connection.vendor, bench.address(connection)
        connection.close()
        figures: dict[str, Any] = {"vendor": vendor}
        here = flipper()

        async def in_a_thread(on: bool) -> float:
            return await asyncio.to_thread(here, on)

        figures["here"] = asyncio.run(_followed(in_a_thread))
        with _another_process(address) as elsewhere:

            async def in_another(on: bool) -> float:
                return await asyncio.to_thread(elsewhere, on)

            figures["elsewhere"] = asyncio.run(_followed(in_another))
        figures["idle"] = {count: asyncio.run(_idle(count)) for count in (0, 1, FOLLOWERS)}
        figures["everyone"] = asyncio.run(_everyone(in_a_thread))
        return figures


def flipper() -> Callable[[bool], float]:
    """Return a function that sets the agent's switch and returns the time of the commit."""
    from django.db import connection

    from toolbelt.control import writing
    from toolbelt.control.access import switches
    from toolbelt.store import commits, snapshots

    committed: list[float] = []
    notify = commits.committed

    def record_and_notify() -> None:
        # Before the notification, because its receiver may run before this thread continues.
        committed.append(time.monotonic())
        notify()

    commits.committed = record_and_notify
    write = writing.by("bench", via="command")
    toolkit = sorted(snapshots.find("ada", None).catalog.toolkits)[0]
    switches.flip(write.replace(confirm=True), "ada", toolkit, False)
    connection.close()

    def flip(on: bool) -> float:
        try:
            switches.flip(write.replace(confirm=True), "ada", toolkit, on)
        finally:
            connection.close()
        return committed[-1]

    return flip


@contextlib.contextmanager
def _another_process(address: str) -> Iterator[Callable[[bool], float]]:
    running = subprocess.Popen(
        [sys.executable, "-c", _FLIPPER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DATABASE_URL": address},
    )
    to, back = running.stdin, running.stdout
    if to is None or back is None:
        raise SystemExit("the other process has no pipes")

    def flip(on: bool) -> float:
        to.write("true\n" if on else "false\n")
        to.flush()
        return float(back.readline())

    yield flip
    running.communicate()


async def _followed(flip: Callable[[bool], Awaitable[float]]) -> dict[str, Any]:
    """Flip repeatedly, each time after the follower was notified of the previous flip."""
    from toolbelt.runtime import feed

    times: list[float] = []
    others = 0

    async def follow_another(following: feed.Following) -> None:
        nonlocal others
        async for _ in following:
            others += 1

    async with feed.changes("ada") as ada, feed.changes("another") as another:
        beside = asyncio.create_task(follow_another(another))
        for number in range(FLIPS):
            turn = asyncio.ensure_future(_notification_time(ada))
            committed = await flip(number % 2 == 0)
            times.append(max(0.0, await turn - committed) * 1e3)
            # The intervals vary, so that they do not coincide with the polling.
            await asyncio.sleep(0.025 + number % 10 / 1000)
    another.close()
    await beside
    await feed.close()
    times.sort()
    return {
        "p50": statistics.median(times),
        "p95": times[int(len(times) * 0.95)],
        "max": times[-1],
        "notified": len(times),
        "others": others,
    }


async def _notification_time(following: Any) -> float:
    await anext(following)
    return time.monotonic()


async def _idle(followers: int) -> float:
    """Return the CPU time per second while nothing happens, in ms."""
    from toolbelt.runtime import feed

    async def follow(following: feed.Following) -> None:
        async with following:
            async for _ in following:
                pass

    following = [asyncio.create_task(follow(feed.changes("ada"))) for _ in range(followers)]
    await asyncio.sleep(1)
    before = time.process_time()
    await asyncio.sleep(IDLE)
    spent = time.process_time() - before
    await feed.close()
    await asyncio.gather(*following)
    return spent / IDLE * 1e3


async def _everyone(flip: Callable[[bool], Awaitable[float]]) -> float:
    """Return the median of the ms from a commit until the last of many followers is notified."""
    from toolbelt.runtime import feed

    times = []
    following = [feed.changes("ada") for _ in range(FOLLOWERS)]
    await asyncio.gather(*[anext(follower) for follower in following])
    for number in range(20):
        turns = [asyncio.ensure_future(_notification_time(follower)) for follower in following]
        committed = await flip(number % 2 == 0)
        times.append(max(await asyncio.gather(*turns)) - committed)
        await asyncio.sleep(0.1)
    await feed.close()
    return statistics.median(times) * 1e3


def report(figures: dict[str, Any]) -> None:
    """Print the figures, and which goals were missed."""
    vendor = figures["vendor"]
    print(f"the feed, {vendor}, {FLIPS:,} flips")
    print(f"{'from the commit until a follower runs':<52}{'p50, ms':>10}{'p95, ms':>10}{'max, ms':>10}")
    for where, word in LABELS.items():
        entry = figures[where]
        print(f"  flips {word:<44}{entry['p50']:>10.1f}{entry['p95']:>10.1f}{entry['max']:>10.1f}")
    print(f"  until the last of {FOLLOWERS} followers is notified    {figures['everyone']:>12.1f}")
    print("CPU without changes, ms per second")
    for count, spent in figures["idle"].items():
        print(f"  {count} followers{spent:>10.1f}")
    print("\ngoals")
    for where, word in LABELS.items():
        entry, goal = figures[where], GOALS[where, vendor]
        _print_goal(entry["p95"] <= goal, f"a follower is notified of a flip {word} within {goal} ms (p95)")
        result = f"{FLIPS:,} flips {word}: none missed, none sent to the followers of another agent"
        _print_goal(entry["notified"] == FLIPS and entry["others"] == 0, result)


def _print_goal(is_met: bool, goal: str) -> None:
    print(f"  {'met   ' if is_met else 'MISSED'} {goal}")


if __name__ == "__main__":
    sys.exit(main())
