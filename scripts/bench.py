"""Benchmark of surface requests in process. (`make bench`)

Each size of catalog is measured in its own process, on its own database (SQLite, or a scratch database on the server of
BENCH_DATABASE_URL). It prints times and, because machines differ and are busy, ratios: against the smallest catalog,
and against a bare Django view that returns the same bytes in the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

HERE = Path(__file__).resolve().parent.parent
SIZES = (100, 1_000, 10_000)
ACTIVE = 30
MESSAGE = "please merge the release PR and tell the team"
ROUNDS, REPEATS = 7, 120


def main() -> int:
    """Measure every size, print the table, and list the missed goals."""
    return run("scripts.bench", __doc__, measure, report, "measuring a catalog of {size:,} tools")


def run(
    module: str,
    description: str | None,
    measure: Callable[[int], dict[str, Any]],
    report: Callable[[list[dict[str, Any]]], None],
    progress: str,
    sizes: Iterable[int] = SIZES,
) -> int:
    """Run a benchmark's command line: each size in its own process, then the report or the figures as JSON."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", type=int, help="measure only this size and print the figures as JSON")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if options.size:
        print(json.dumps(measure(options.size)))
        return 0
    figures = []
    for size in sizes:
        print(f"{progress.format(size=size)} …", file=sys.stderr, flush=True)
        figures.append(run_in_process(size, module))
    print(json.dumps(figures, indent=2)) if options.json else report(figures)
    return 0


def run_in_process(size: int, module: str) -> dict[str, Any]:
    """Run a benchmark of one size in its own process. Return its figures."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = {
            **os.environ,
            "TOOLBELT_ENV": "test",
            "TOOLBELT_ENV_FILE": os.devnull,
            "DATABASE_URL": os.environ.get("BENCH_DATABASE_URL", f"sqlite:///{scratch}/bench.sqlite3"),
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "PYTHONPATH": str(HERE),
        }
        completed = subprocess.run(
            [sys.executable, "-m", module, "--size", str(size)],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(completed.stdout)  # type: ignore[no-any-return]


@contextlib.contextmanager
def filled(size: int) -> Iterator[BaseDatabaseWrapper]:
    """Create a database with ``size`` real tools and an agent that has 30 of them. Return its connection."""
    import django

    django.setup()
    from django.db import connection
    from django.test.utils import setup_test_environment

    setup_test_environment()
    logging.disable(logging.INFO)
    name = connection.creation.create_test_db(verbosity=0)
    try:
        _fill(size)
        yield connection
    finally:
        connection.creation.destroy_test_db(
            ":memory:" if connection.vendor == "sqlite" else name, verbosity=0
        )


def address(connection: BaseDatabaseWrapper) -> str:
    """Return the address of the database, for another process."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    login = settings["USER"] + (f":{settings['PASSWORD']}" if settings["PASSWORD"] else "")
    credentials = f"{login}@" if login else ""
    return f"postgres://{credentials}{settings['HOST']}:{settings['PORT'] or 5432}/{settings['NAME']}"


def measure(size: int) -> dict[str, Any]:
    """Measure the surface requests of an agent that has 30 of ``size`` tools."""
    with filled(size) as connection:
        from django.conf import settings

        settings.ROOT_URLCONF = "scripts.bench_views"
        return {"size": size, "name": connection.vendor, **_figures()}


def _fill(size: int) -> None:
    from toolbelt import models

    real = [
        tool
        for file in sorted((HERE / "fixtures/demo/catalogs").glob("*.json"))
        for tool in json.loads(file.read_text())["tools"]
    ]
    plugins = [
        models.Plugin(name=f"plugin{n}", namespace=f"ns{n}", position=n, in_code=True) for n in range(20)
    ]
    models.Plugin.objects.bulk_create(plugins)
    tools = [
        models.Tool(
            key=f"ns{n % 20}__tool{n}",
            plugin=plugins[n % 20],
            # Each is different, because equal texts would be stored only once.
            description=f"{real[n % len(real)].get('description') or ''} ({n})",
            input_schema={
                **(real[n % len(real)].get("inputSchema") or {"type": "object"}),
                "$comment": str(n),
            },
            annotations=real[n % len(real)].get("annotations") or {},
            tokens=300,
        )
        for n in range(size)
    ]
    models.Tool.objects.bulk_create(tools, batch_size=500)
    toolkits = [
        models.Toolkit(
            key=f"toolkit{n}",
            position=n,
            policy="Work with care. Tools: {active_tools}.",
            triggers=[
                {"name": "merge", "all": [["merge", "ship"], ["release", "pr"]]},
                {"name": "ask", "any": ["who"]},
            ],
        )
        for n in range(size // 10)
    ]
    models.Toolkit.objects.bulk_create(toolkits, batch_size=500)
    models.Member.objects.bulk_create(
        [
            models.Member(toolkit=toolkits[n // 10], tool=tool, position=n % 10)
            for n, tool in enumerate(tools[: len(toolkits) * 10])
        ],
        batch_size=500,
    )
    agent = models.Agent.objects.create(key="ada")
    other = models.Agent.objects.create(key="bob")
    for toolkit in toolkits[: ACTIVE // 10]:
        models.ToolkitSwitch.objects.create(agent=agent, toolkit=toolkit, on=True)
        models.ToolkitSwitch.objects.create(agent=other, toolkit=toolkit, on=True)


def _figures() -> dict[str, Any]:
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from toolbelt.control import writing
    from toolbelt.control.access import switches
    from toolbelt.core import request_key, surface
    from toolbelt.core.rules import budgets
    from toolbelt.runtime import surfaces
    from toolbelt.runtime.surfaces import snapshots
    from toolbelt.store import catalog

    write = writing.by("bench", via="command")
    gc.collect()
    tracemalloc.start()
    compiled = catalog.load(1, "bench")
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    started = time.perf_counter()
    catalog.load(1, "bench")
    compile_seconds = time.perf_counter() - started
    del compiled

    built = surfaces.ask("ada")
    if len(built.tools) != ACTIVE:
        raise SystemExit(f"the bench agent has {len(built.tools)} active tools, not {ACTIVE}")
    with CaptureQueriesContext(connection) as queries:
        surfaces.ask("ada", session="s", request_id="r")
    snapshot, _ = snapshots.take(request_key.RequestKey("ada", "s", "r"))
    figures: dict[str, Any] = {
        "compile_ms": compile_seconds * 1e3,
        "catalog_mb": memory / 1e6,
        "queries": len(queries),
        "resolve_us": _times(lambda: surface.build(snapshot)),
        "resolve_message_us": _times(lambda: surface.of(budgets.resolve(snapshot), snapshot, MESSAGE)),
        "ask_us": _times(lambda: surfaces.ask("ada", session="s", request_id="r")),
        "ask_message_us": _times(lambda: surfaces.ask("ada", session="s", request_id="r", message=MESSAGE)),
    }
    figures |= _of_calls(snapshot)
    # After a flip for one agent, its next request is resolved again, but the catalog is not compiled again.
    flips = []
    with mock.patch.object(catalog, "load", wraps=catalog.load) as load:
        for turn in range(40):
            started = time.perf_counter()
            switches.flip(write.replace(confirm=True), "bob", "toolkit0", bool(turn % 2))
            surfaces.ask("bob")
            flips.append((time.perf_counter() - started) * 1e6)
    figures["flip_us"] = [statistics.median(flips), sorted(flips)[int(len(flips) * 0.95)]]
    figures["compiled_again"] = load.call_count

    client = Client()
    response = client.get("/surface")
    if response.status_code != 200:
        raise SystemExit(f"the benchmark's view returned {response.status_code}")
    body = response.content
    client.post("/keep", data=body, content_type="application/json")
    figures["bytes"] = len(body)
    # Measured in turns, so that a busy moment of the machine affects all equally.
    bare, full, with_message = [], [], []
    for _ in range(ROUNDS):
        bare.append(_times(lambda: client.get("/bare"), rounds=1, repeats=30))
        full.append(_times(lambda: client.get("/surface"), rounds=1, repeats=30))
        with_message.append(
            _times(lambda: client.get("/surface", {"message": MESSAGE}), rounds=1, repeats=30)
        )
    for name, times in (("bare_us", bare), ("view_us", full), ("view_message_us", with_message)):
        figures[name] = [statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)]
    return figures


def _of_calls(snapshot: Any) -> dict[str, Any]:
    """Return the times to admit one call: without gate rules, with one for another tool, and with one for the tool."""
    import dataclasses

    from toolbelt.core import admitting, call_limits, catalog, request_key
    from toolbelt.core.rules import budgets

    tool = min(budgets.resolve(snapshot).active)
    when = '{"amount":{"exclusiveMinimum":500}}'
    limit = call_limits.CallLimit(calls=1_000, per="hour")
    rules = {
        "admit_us": (),
        "admit_limit_us": (catalog.GateRule(key="r", effect="deny", tools=(tool,), more_than=limit),),
        "admit_labels_us": (catalog.GateRule(key="r", effect="deny", tools=(tool,), labels=("private",)),),
        "admit_identical_us": (),
        "admit_other_rule_us": (catalog.GateRule(key="r", effect="deny", tools=("other",), when=when),),
        "admit_rule_us": (catalog.GateRule(key="r", effect="deny", tools=(tool,), when=when),),
    }
    figures = {}
    for name, gate_rules in rules.items():
        stored = catalog.replace(snapshot.catalog, gate_rules=gate_rules)
        resolved = budgets.resolve(dataclasses.replace(snapshot, catalog=stored))
        key = request_key.RequestKey("ada", "s")
        # As each call does. The database is not read.
        admit = functools.partial(_admit, resolved, tool, key, has_breaker=name == "admit_identical_us")
        if not isinstance(admit(), admitting.Admission):
            raise SystemExit("the call of the benchmark is refused")
        figures[name] = _times(admit)
    return figures


def _admit(resolved: Any, tool: str, key: Any, *, has_breaker: bool) -> Any:
    import dataclasses

    from toolbelt.core import admitting, gate_rules, schema
    from toolbelt.runtime import counting
    from toolbelt.store import clock

    past = gate_rules.UNKNOWN
    if resolved.context.catalog.gate_rules or has_breaker:
        past = counting.past(key, None, tool=tool, at=clock.now())
        past = dataclasses.replace(past, count=lambda count: 0, breaker=past.breaker if has_breaker else None)
    return admitting.admit(resolved, tool, {"amount": 500}, past=past, input_schema=schema.EMPTY_TEXT)


def _times(operation: Callable[[], object], rounds: int = ROUNDS, repeats: int = REPEATS) -> list[float]:
    """Return p50 and p95 of one operation in µs, from the best of several rounds."""
    operation()
    best: list[float] | None = None
    for _ in range(rounds):
        times = []
        for _ in range(repeats):
            started = time.perf_counter()
            operation()
            times.append((time.perf_counter() - started) * 1e6)
        times.sort()
        current = [statistics.median(times), times[int(len(times) * 0.95)]]
        best = current if best is None or current[0] < best[0] else best
    return best or [0.0, 0.0]


def report(figures: list[dict[str, Any]]) -> None:
    """Print the figures as a table, and which goals are met."""
    rows = [
        ("compile the catalog, ms", "compile_ms"),
        ("compiled catalog, MB", "catalog_mb"),
        ("queries per surface", "queries"),
        ("resolve alone, µs", "resolve_us"),
        ("resolve with a message, µs", "resolve_message_us"),
        ("surface in process, µs", "ask_us"),
        ("… with a message, µs", "ask_message_us"),
        ("flip, then surface, µs", "flip_us"),
        ("catalog compiled by 40 flips", "compiled_again"),
        ("admit a call, no rule, µs", "admit_us"),
        ("… a rule for another tool", "admit_other_rule_us"),
        ("… one rule for the tool", "admit_rule_us"),
        ("… one rule with a limit", "admit_limit_us"),
        ("… one rule with labels", "admit_labels_us"),
        ("… the limit on identical calls", "admit_identical_us"),
        ("response, bytes", "bytes"),
        ("bare Django view, µs", "bare_us"),
        ("surface through Django, µs", "view_us"),
        ("… with a message, µs", "view_message_us"),
    ]
    print(f"{'':32}" + "".join(f"{entry['size']:>20,} tools" for entry in figures))
    for label, key in rows:
        print(f"{label:32}" + "".join(f"{_cell(entry[key]):>26}" for entry in figures))
    first, last = figures[0], figures[-1]
    print("\nratios, p50")
    for label, key in (
        ("in process", "ask_us"),
        ("… with a message", "ask_message_us"),
        ("through Django", "view_us"),
    ):
        print(
            f"  {label:28} {last['size']:,} to {first['size']:,} tools: {last[key][0] / first[key][0]:.2f} ×"
        )
    for entry in figures:
        ratio = entry["view_us"][0] / entry["bare_us"][0]
        print(f"  {'against the bare view':28} {entry['size']:>6,} tools: {ratio:.2f} ×")
    goals = {
        f"{last['size']:,} tools cost at most 1.2 × what {first['size']:,} cost": last["ask_us"][0]
        <= 1.2 * first["ask_us"][0],
        "a surface takes under 150 µs beyond its queries": last["resolve_us"][0] < 150,
        "a compiled catalog is under 60 MB": last["catalog_mb"] < 60,
        "the catalog compiles in under 1 s": last["compile_ms"] < 1_000,
        "one gate rule takes under 50 µs of a call": last["admit_rule_us"][0] - last["admit_us"][0] < 50,
        "so does one with a limit, or with labels, and the limit on identical calls": max(
            last[key][0] for key in ("admit_limit_us", "admit_labels_us", "admit_identical_us")
        )
        - last["admit_us"][0]
        < 50,
        "a flip for one agent does not compile the catalog again": last["compiled_again"] == 0,
    }
    print("\ngoals")
    for goal, met in goals.items():
        print(f"  {'met   ' if met else 'MISSED'} {goal}")


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return f"p50 {value[0]:,.0f} · p95 {value[1]:,.0f}"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    sys.exit(main())
