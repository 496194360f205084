"""Measure what a proof takes: what a change would have done to 100,000 recorded calls. (`make bench`)

The database is the demo's: its month of calls, multiplied with other sessions.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from scripts import bench

RECORDS, ROUNDS = 100_000, 5
# How often the configuration of a large installation is changed in the month.
CHANGES = 300
# The goal for one proof, in seconds of CPU, which a busy machine changes least.
SECONDS = 0.5


def main() -> int:
    """Measure, print the table, and say which goals are missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--size", type=int, help="measure in this process, with this many records, and print JSON"
    )
    parser.add_argument(
        "--large",
        type=int,
        metavar="RECORDS",
        help="measure on both bases with this many records of 1,000 agents and 10,000 tools, and print a table",
    )
    options = parser.parse_args()
    if options.large:
        return large(options.large)
    if options.size:
        print(json.dumps(measure(options.size)))
        return 0
    print(f"proving changes by {RECORDS:,} recorded calls …", file=sys.stderr, flush=True)
    figures = bench.run_in_process(RECORDS, "scripts.bench_proofs")
    for name, figure in figures.items():
        missed = "" if figure["seconds"] <= SECONDS else f"  more than {SECONDS} s"
        print(
            f"{name:24} {figure['seconds']:6.2f} s CPU  {figure['calls']:,} calls, {figure['rows']} rows{missed}"
        )
    return 0


def large(records: int) -> int:
    """Measure one change that reaches far and one that does not, as everything is configured now, and was then."""
    from scripts import bench_thousand

    with (
        tempfile.TemporaryDirectory() as scratch,
        bench_thousand.installation(scratch, agents=1_000, tools=10_000),
    ):
        _live(records)
        from toolbelt.control import proofs

        for name, act in _large_changes().items():
            for basis in proofs.BASES:
                begun, started = time.process_time(), time.perf_counter()
                proof = proofs.prove(act, basis=basis)
                seconds, elapsed = time.process_time() - begun, time.perf_counter() - started
                differ = sum(row.calls for row in proof.rows)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                print(
                    f"{name:28} {basis:5} {seconds:6.1f} s CPU in {elapsed:6.1f} s  {proof.calls:,} calls in reach,"
                    f" {differ:,} differ, at most {peak:,} MiB",
                    flush=True,
                )
    return 0


def _live(records: int) -> None:
    """Change the configuration in :data:`CHANGES` steps through a month, and record calls between them."""
    import datetime as dt

    from toolbelt import conf, models
    from toolbelt.control import writing
    from toolbelt.control.access import switches
    from toolbelt.control.catalog import blocking, entries
    from toolbelt.core import errors, tool_versions
    from toolbelt.core.rules import inventory
    from toolbelt.store import clock, revisions, snapshots

    dice = random.Random(7)  # noqa: S311 - not used for security
    write = writing.by("bench", via="command").replace(confirm=True)
    stored = snapshots.catalog()
    present = [one.agent for one in snapshots.present()]
    toolkits, begin = list(stored.toolkits), clock.now() - dt.timedelta(days=29)
    had = {
        agent.key: sorted(inventory.take(stored, agent, conf.KIND_LOADOUTS).active)[:200] for agent in present
    }
    versions = {
        key: tool_versions.short(tool_versions.version(stored.tools[key]))
        for key in {key for active in had.values() for key in active}
    }
    for number in range(CHANGES):
        at = begin + dt.timedelta(days=28) * (number / CHANGES)
        with writing.at(at), contextlib.suppress(errors.ToolbeltError):
            if number % 10:
                switches.flip(write, dice.choice(present).key, dice.choice(toolkits), dice.random() < 0.5)
            elif number % 20:
                blocking.set_blocked(write, "toolkit", dice.choice(toolkits), dice.random() < 0.3)
            else:
                key = dice.choice(toolkits)
                members = [member.tool for member in stored.toolkits[key].members]
                entries.change(write, "toolkit", key, {"members": members[: dice.randrange(1, 20)]})
        revision, rows = revisions.number(), []
        for _ in range(records // CHANGES):
            agent = dice.choice(present).key
            tool = dice.choice(had[agent] or ["nothing"])
            rows.append(
                models.CallRecord(
                    at=at,
                    agent=agent,
                    tool=tool,
                    session=f"s{dice.randrange(2000)}",
                    outcome="ok",
                    duration_ms=5,
                    state="",
                    subagent="",
                    dispatched=False,
                    revision=revision,
                    definition=versions.get(tool, ""),
                )
            )
        models.CallRecord.objects.bulk_create(rows, batch_size=2000)
    print(
        f"{models.CallRecord.objects.count():,} records, {models.AuditEntry.objects.count():,} changes",
        file=sys.stderr,
        flush=True,
    )


def _large_changes() -> dict[str, Callable[[], object]]:
    from toolbelt.control import writing
    from toolbelt.control.access import switches
    from toolbelt.control.catalog import blocking, entries
    from toolbelt.store import snapshots

    write = writing.by("bench", via="command").replace(confirm=True)
    stored = snapshots.catalog()
    plugin = max(stored.tools_of_plugin, key=lambda name: len(stored.tools_of_plugin[name]))
    agents = [one.agent.key for one in snapshots.present()][:10]
    toolkit = next(iter(stored.toolkits))

    def off() -> None:
        for agent in agents:
            switches.flip(write, agent, toolkit, False)

    return {
        "a toolkit off for ten agents": off,
        "a block of a toolkit": lambda: blocking.set_blocked(write, "toolkit", toolkit, True),
        "the largest plugin off": lambda: entries.change(write, "plugin", plugin, {"active": False}),
        "a loadout without plugins": lambda: entries.change(write, "loadout", "house-05", {"plugins": []}),
        "a gate rule for all": lambda: entries.create(write, "gate_rule", {"key": "no", "effect": "deny"}),
    }


def measure(size: int) -> dict[str, Any]:
    """Return the median CPU time of each proof, with the calls in its reach and the rows of its table."""
    with tempfile.TemporaryDirectory() as repository:
        # The demo's calls of today run its tools.
        plugins_file = bench.HERE / "fixtures/demo/plugins.yaml"
        os.environ.update(TOOLBELT_PLUGINS_FILE=str(plugins_file), DEMO_REPOSITORY=repository)
        return _measure(size)


def _measure(size: int) -> dict[str, Any]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.test.utils import setup_test_environment

    setup_test_environment()
    logging.disable(logging.WARNING)
    name = connection.creation.create_test_db(verbosity=0)
    try:
        call_command("loaddata", "demo", verbosity=0)
        with open(os.devnull, "w") as quiet:
            call_command("demo_activity", stdout=quiet)
        _multiply(size)
        return {name: _figure(act) for name, act in _changes().items()}
    finally:
        connection.creation.destroy_test_db(
            ":memory:" if connection.vendor == "sqlite" else name, verbosity=0
        )


def _multiply(size: int) -> None:
    """Copy the records until there are ``size``, each time in other sessions."""
    from toolbelt import models

    rows = list(models.CallRecord.objects.all())
    copies = []
    for number in range(size - len(rows)):
        row = rows[number % len(rows)]
        values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
        session = f"{row.session}-{number // len(rows)}" if row.session else ""
        copies.append(models.CallRecord(**{**values, "id": None, "call_id": None, "session": session}))
    models.CallRecord.objects.bulk_create(copies, batch_size=2000)


def _changes() -> dict[str, Callable[[], object]]:
    from toolbelt.control import writing
    from toolbelt.control.access import switches
    from toolbelt.control.catalog import blocking, entries
    from toolbelt.store import snapshots

    write = writing.by("bench", via="command").replace(confirm=True)
    stored = snapshots.catalog()
    agent = max(snapshots.present(), key=lambda present: len(present.agent.allowed_toolkits)).agent.key
    return {
        "a switch": lambda: switches.flip(write, agent, next(iter(stored.toolkits)), False),
        "a block of a toolkit": lambda: blocking.set_blocked(
            write, "toolkit", next(iter(stored.toolkits)), True
        ),
        "a gate rule for all": lambda: entries.create(write, "gate_rule", {"key": "no", "effect": "deny"}),
        "a rule on arguments": lambda: entries.create(
            write, "gate_rule", {"key": "no", "effect": "deny", "when": {"path": {"type": "string"}}}
        ),
    }


def _figure(act: Callable[[], object]) -> dict[str, Any]:
    from toolbelt.control import proofs

    durations = []
    proof = proofs.prove(act)
    for _ in range(ROUNDS):
        begun = time.process_time()
        proofs.prove(act)
        durations.append(time.process_time() - begun)
    return {"seconds": statistics.median(durations), "calls": proof.calls, "rows": len(proof.rows)}


if __name__ == "__main__":
    sys.exit(main())
