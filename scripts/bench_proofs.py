"""Measure what a proof takes: what a change would have done to 100,000 recorded calls. (`make bench`)

The database is the demo's: its month of calls, multiplied with other sessions.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from scripts import bench

RECORDS, ROUNDS = 100_000, 5
# The goal for one proof, in seconds of CPU, which a busy machine changes least.
SECONDS = 0.5


def main() -> int:
    """Measure, print the table, and say which goals are missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--size", type=int, help="measure in this process, with this many records, and print JSON"
    )
    options = parser.parse_args()
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


def measure(size: int) -> dict[str, Any]:
    """Return the median CPU time of each proof, with the calls in its reach and the rows of its table."""
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
