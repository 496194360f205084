"""Benchmark of the dashboard's pages with a thousand agents and ten thousand tools. (`make bench`)

Django's test client requests every page of the installation of :mod:`scripts.large_installation`, on a separate
database (SQLite, or a scratch database on the server of BENCH_DATABASE_URL). For each page, it prints the time (of the
fastest round), its CPU time, its queries and its bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import resource
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.test import Client

from scripts import bench_apps

AGENTS, TOOLS, ROUNDS = 1_000, 10_000, 3
# ms of CPU, and queries.
MAX_MS, MAX_QUERIES = 300, 20


def pages() -> dict[str, str]:
    """Return the address of every page by name."""
    from scripts import large_installation as large

    agent, largest, kit, tool = large.AGENT, large.MAX_SIZE, large.TOOLKIT, large.tool_name(5)
    addresses = {
        "Home": "/",
        "Agents": "/agents/",
        "Agents, most tools first": "/agents/?sort=-tools",
        "Agents, filtered": "/agents/?q=agent-05&loadout=house-05",
        "Agents, archived": "/agents/?archived=on",
        "Access": f"/agents/{agent}/",
        "Access, nearly everything on": f"/agents/{largest}/",
        "Access, only active": f"/agents/{agent}/?show=active",
        "Access, filtered": f"/agents/{agent}/?q=issue",
        "Access, with a section open": f"/agents/{largest}/?open=toolkit-{kit}",
        "Effect of a switch": f"/agents/{agent}/effect/{kit}/",
        "Effect of a tool": f"/agents/{agent}/effect/{tool}/",
        "Preview": f"/agents/{agent}/preview/",
        "Preview, nearly everything on": f"/agents/{largest}/preview/",
        "Preview, policy": f"/agents/{agent}/preview/?view=policy",
        "Preview, JSON for a provider": f"/agents/{agent}/preview/?view=json&format=openai_chat",
        "Preview, why": f"/agents/{agent}/preview/?view=why&tool={tool}",
        "Sessions": f"/agents/{agent}/sessions/",
        "History": f"/agents/{agent}/history/",
        "Connect": f"/agents/{agent}/connect/",
        "Settings": f"/agents/{agent}/settings/",
        "Search": f"/search/?q=turn+off+tool+for+{agent}",
        "People": "/people/",
        "Bulk, confirmation": f"/agents/{agent}/bulk/?q=issue&set=tools-false",
        "Bulk, for a toolkit": f"/bulk/toolkits/{kit}/?set=toolkits-true",
        "Bulk, for agents": f"/bulk/agents/?q=agent-00&key={kit}&set=toolkits-true",
        "Bulk, for tools": f"/bulk/tools/?q=issue&every=yes&also_off=yes&for={agent}&set=tools-false",
        "Matrix": "/matrix/",
        "Matrix, with one agent": f"/matrix/?agent={agent}",
        "Matrix, filtered": "/matrix/?q=kit-1",
        "Compare, empty": "/compare/",
        "Compare": f"/compare/?a={agent}&b=agent-0008",
        "Compare, a loadout": f"/compare/?a=loadout:minimal&b={largest}",
        "Compare, with every tool": f"/compare/?a=loadout:minimal&b={largest}&show=all",
        "Toolkits": "/toolkits/",
        "Toolkits, not in use": "/toolkits/?show=unused",
        "Toolkits, most agents first": "/toolkits/?sort=-users",
        "Toolkit": f"/toolkits/{kit}/",
        "Toolkit, with a message": f"/toolkits/{kit}/?message=merge+the+release",
        "Toolkit editor": f"/toolkits/{kit}/edit/",
        "New agent": "/new/agent/",
        "New toolkit": "/new/toolkit/",
        "Review": "/review/",
        "Tools": "/tools/",
        "Tools, filtered": "/tools/?q=issue&state=unseen",
        "Tools, most tokens first": "/tools/?sort=-tokens",
        "Tools, a later page": "/tools/?offset=5000",
        "Tool": f"/tools/{tool}/",
        "Loadouts": "/loadouts/",
        "Loadout": f"/loadouts/{large.LOADOUT}/",
        "Loadout, full": "/loadouts/full/",
        "Loadout editor": f"/loadouts/{large.LOADOUT}/edit/",
        "New loadout": "/new/loadout/",
        "Sub-apps": "/sub-apps/",
        "Sub-app": f"/sub-apps/{large.SUB_APP}/",
        "Sub-app editor": f"/sub-apps/{large.SUB_APP}/edit/",
        "New sub-app": "/new/sub-app/",
        "Plugins": "/plugins/",
        "Plugin": "/plugins/server000/",
        "Add a server": "/plugins/add/",
        "Calls": "/calls/",
        "Calls of an agent": f"/calls/?agent={agent}",
        "Calls, unused": "/calls/?view=unused",
        "Audit log": "/audit/",
        "Audit log of a person": "/audit/?person=olive",
        "Import & export": "/belt/",
        "Tokens": "/tokens/",
        "Status": "/status/",
        "Account": "/account/",
        "Help": "/help/",
        "Admin": "/admin/",
    }
    from django.contrib import admin

    for model in admin.site._registry:
        name = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        addresses[f"Admin, {model._meta.verbose_name_plural}"] = name
    return addresses


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="only pages whose names start with this text")
    parser.add_argument("--agents", type=int, default=AGENTS, help=f"how many agents ({AGENTS})")
    parser.add_argument("--tools", type=int, default=TOOLS, help=f"how many tools ({TOOLS})")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"how often each page is requested ({ROUNDS})"
    )
    parser.add_argument("--keep", default="", metavar="FILE", help="fill this file once, and reuse it")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as scratch,
        installation(scratch, options.agents, options.tools, options.keep) as client,
    ):
        figures = measure(client, tuple(options.only), options.rounds)
        if not options.only:
            figures |= measure_operations(client)
    memory = bench_apps._memory()
    print(json.dumps(figures, indent=2)) if options.json else report(figures, memory)
    return 0


@contextlib.contextmanager
def installation(scratch: str, agents: int, tools: int, file: str = "") -> Iterator[Client]:
    """Fill a database, with production settings over plain HTTP. Yield a client that is logged in.

    ``file`` is an SQLite file that is filled once and reused.
    """
    is_filled = bool(file) and Path(file).exists()
    os.environ.update(
        DJANGO_SETTINGS_MODULE="toolbelt.settings",
        TOOLBELT_ENV="demo",
        TOOLBELT_ENV_FILE=os.devnull,
        TOOLBELT_LOG_LEVEL="ERROR",
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="testserver",
        DATABASE_URL=f"sqlite:///{file}"
        if file
        else os.environ.get("BENCH_DATABASE_URL", f"sqlite:///{scratch}/thousand.sqlite3"),
    )
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from scripts import large_installation

    name = "" if file else connection.creation.create_test_db(verbosity=0)
    if file and not is_filled:
        call_command("migrate", verbosity=0)
    try:
        if not is_filled:
            started = time.perf_counter()
            large_installation.fill(agents=agents, tools=tools)
            print(f"filled in {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        client = Client()
        client.force_login(
            get_user_model().objects.get(username="olive"), "django.contrib.auth.backends.ModelBackend"
        )
        yield client
    finally:
        if name:
            connection.creation.destroy_test_db(name, verbosity=0)


def measure(client: Client, only: tuple[str, ...], rounds: int) -> dict[str, dict[str, float]]:
    """Request the pages. Return the figures by name."""
    from toolbelt.core.search import current

    figures: dict[str, dict[str, float]] = {}
    # The index of the search is built in the background, whose CPU time would count as that of the first pages.
    client.get("/search/?q=issue")
    current.wait()
    for name, to in pages().items():
        if not only or name.startswith(only):
            figures[name] = _measure_page(lambda to=to: client.get(to), rounds)  # type: ignore[misc]
            if not figures[name].pop("status") == 200:
                raise SystemExit(f"{name} ({to}) did not return 200")
            print(f"{name}: {figures[name]['ms']:.0f} ms", file=sys.stderr, flush=True)
    return figures


def _measure_page(action: Callable[[], Any], rounds: int) -> dict[str, float]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    started = time.perf_counter()
    response = action()  # also fills the caches
    first = (time.perf_counter() - started) * 1e3
    with CaptureQueriesContext(connection) as queries:
        response = action()
    query_count = len(queries)  # later requests clear them
    times = []
    for _ in range(rounds if first < 2_000 else 1):
        gc.collect()
        started, cpu = time.perf_counter(), time.process_time()
        action()
        times.append(((time.perf_counter() - started) * 1e3, (time.process_time() - cpu) * 1e3))
    ms, cpu_ms = min(times)
    return {
        "status": response.status_code,
        "first_ms": first,
        "ms": ms,
        "cpu_ms": cpu_ms,
        "queries": query_count,
        "bytes": len(response.content),
    }


def measure_operations(client: Client) -> dict[str, dict[str, float]]:
    """Measure operations: changing a toolkit's title, flipping a switch, and an agent's first request."""
    from django.db import connection

    from scripts import large_installation as large
    from toolbelt.control import writing
    from toolbelt.control.access import switches
    from toolbelt.control.catalog import entries
    from toolbelt.core import errors
    from toolbelt.runtime import surfaces
    from toolbelt.store import agents

    olive = writing.by("olive", via="command")
    figures: dict[str, dict[str, float]] = {}

    def timed(name: str, action: Callable[[], Any]) -> None:
        from django.test.utils import CaptureQueriesContext

        gc.collect()
        with CaptureQueriesContext(connection) as queries:
            started, cpu = time.perf_counter(), time.process_time()
            action()
            figures[name] = {
                "ms": (time.perf_counter() - started) * 1e3,
                "cpu_ms": (time.process_time() - cpu) * 1e3,
                "queries": len(queries),
                "first_ms": 0,
            }

    timed(
        "Change a toolkit's title",
        lambda: entries.change(
            olive.replace(confirm=True), "toolkit", large.TOOLKIT, {"title": secrets.token_hex(4)}
        ),
    )
    timed("First page afterwards", lambda: client.get("/agents/"))

    def flip() -> None:
        with contextlib.suppress(errors.Refused):
            switches.flip(olive.replace(confirm=True), large.AGENT, large.TOOLKIT, True)

    timed("Flip a switch", flip)
    timed("First page after a flip", lambda: client.get("/agents/"))
    keys = agents.keys()
    started = time.perf_counter()
    times = []
    for key in keys:
        request_started = time.perf_counter()
        surfaces.ask(key)
        times.append((time.perf_counter() - request_started) * 1e3)
    figures["First request of an agent"] = {
        "ms": sorted(times)[len(times) // 2],
        "cpu_ms": (time.perf_counter() - started) * 1e3 / len(keys),
        "queries": 0,
        "first_ms": max(times),
    }
    return figures


def report(figures: Mapping[str, Mapping[str, float]], memory: int) -> None:
    """Print the figures as a table, and which goals are met."""
    print(f"{'':40}{'ms':>9}{'CPU, ms':>9}{'first, ms':>11}{'queries':>9}{'KB':>9}")
    for name, entry in figures.items():
        print(
            f"{name:40}{entry['ms']:>9.0f}{entry['cpu_ms']:>9.0f}{entry['first_ms']:>11.0f}{entry['queries']:>9.0f}"
            f"{entry.get('bytes', 0) / 1e3:>9.0f}"
        )
    maximum = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"\nmemory of the process: {memory / 1e6:,.0f} MB now, {maximum / 1e6:,.0f} MB at its maximum")
    # Goals apply to CPU time, which does not contain other load on the machine.
    slow = [name for name, entry in figures.items() if entry["cpu_ms"] >= MAX_MS and "bytes" in entry]
    many = [name for name, entry in figures.items() if entry["queries"] > MAX_QUERIES and "bytes" in entry]
    print("\ngoals")
    for goal, missed in (
        (f"every page takes under {MAX_MS} ms of CPU", slow),
        (f"every page takes at most {MAX_QUERIES} queries", many),
    ):
        print(f"  MISSED {goal}: {', '.join(missed)}" if missed else f"  met    {goal}")


if __name__ == "__main__":
    sys.exit(main())
