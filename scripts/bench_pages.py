"""Benchmark of the dashboard's pages. (`make bench`)

Django's test client requests every page of the demo with its generated month of activity, on a separate database. Times
are CPU times of this process, including the queries, so other load on the machine does not count. Every round requests
each page once, and a bare Django view, whose time shows how fast the machine is.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import io
import itertools
import json
import os
import re
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.http import HttpResponse
    from django.test import Client

ROUNDS = 15
# ms of CPU, and bytes after gzip.
MAX_MS, MAX_BYTES = 100, 60_000
BARE, FLIP = "a bare Django view", "A flip in the dashboard"
# An agent with exceptions, whose sections are open, and one that has nearly every tool.
AGENT, MAX_SIZE, SWITCH = "assistant", "omni", "research"
PAGES: dict[str, str] = {
    "Home": "/",
    "Agents": "/agents/",
    "Access, with exceptions": f"/agents/{AGENT}/",
    "Access, nearly everything on": f"/agents/{MAX_SIZE}/",
    "Access, filtered": f"/agents/{AGENT}/?q=issue",
    "Access, with a section open": f"/agents/{MAX_SIZE}/?open=toolkit-issues",
    "Preview": f"/agents/{AGENT}/preview/",
    "Preview, nearly everything on": f"/agents/{MAX_SIZE}/preview/",
    "Preview, JSON for a provider": f"/agents/{MAX_SIZE}/preview/?view=json&format=openai_chat",
    "Sessions": f"/agents/{AGENT}/sessions/",
    "History": f"/agents/{AGENT}/history/",
    "Connect": f"/agents/{AGENT}/connect/",
    "Settings": f"/agents/{AGENT}/settings/",
    "Search": "/search/?q=turn+off+slack+for+assistant",
    "People": "/people/",
    "Bulk, confirmation": f"/agents/{AGENT}/bulk/?q=git&set=tools-false",
    "Matrix": "/matrix/",
    "Compare": "/compare/?a=runner&b=release-captain",
    "Compare, with every tool": f"/compare/?a=loadout:minimal&b={MAX_SIZE}&show=all",
    "Compare, a loadout": f"/compare/?a=loadout:minimal&b={MAX_SIZE}",
    "Toolkits": "/toolkits/",
    "Toolkit": "/toolkits/issues/?message=please+file+a+bug",
    "Toolkit editor": "/toolkits/issues/edit/",
    "Tools": "/tools/",
    "Tool": "/tools/github__issue_write/",
    "Loadouts": "/loadouts/",
    "Loadout": "/loadouts/secure-review/",
    "Loadout editor": "/loadouts/secure-review/edit/",
    "Sub-apps": "/sub-apps/",
    "Sub-app": "/sub-apps/war-room/",
    "Plugins": "/plugins/",
    "Plugin": "/plugins/project_files/",
    "Review": "/review/",
    "Calls": "/calls/",
    "Calls, log": "/calls/?view=log",
    "Calls of an agent": f"/calls/?agent={AGENT}",
    "Audit log": "/audit/",
    "Import & export": "/belt/",
    "Tokens": "/tokens/",
    "Status": "/status/",
    "Account": "/account/",
    "Help": "/help/",
}


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="only pages whose names start with this text")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"how often each page is requested ({ROUNDS})"
    )
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    only = tuple(options.only)
    with tempfile.TemporaryDirectory() as scratch, _demo(scratch) as client:
        figures = measure(
            client, {name for name in (*PAGES, FLIP) if not only or name.startswith(only)}, options.rounds
        )
    print(json.dumps(figures, indent=2)) if options.json else report(figures)
    return 0


def measure(client: Client, selected: Container[str], rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Measure the selected pages. Return the figures by name."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    actions: dict[str, Callable[[], Any]] = {BARE: lambda: client.get("/bare")}
    actions |= {name: functools.partial(client.get, to) for name, to in PAGES.items() if name in selected}
    if FLIP in selected:
        actions[FLIP] = _flips(client)
    figures: dict[str, dict[str, float]] = {}
    for name, action in actions.items():
        action()  # fills the caches
        with CaptureQueriesContext(connection) as queries:
            response = action()
        if response.status_code != 200:
            raise SystemExit(f"{name} returned {response.status_code}")
        figures[name] = {
            "queries": len(queries),
            "bytes": len(response.content),
            "sent": len(gzip.compress(response.content, 6)),
        }
    times: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(rounds):
        for name, action in actions.items():
            started = time.process_time()
            _call(action, frames=10 * turn)
            times[name].append((time.process_time() - started) * 1e3)
    for name, page_times in times.items():
        figures[name] |= {"ms": statistics.median(page_times), "best_ms": min(page_times)}
    return figures


def _call(action: Callable[[], Any], frames: int) -> None:
    """Run an action with this many more frames on the stack.

    CPython 3.11 allocates frames in chunks of 16 KB. A loop whose calls cross the end of a chunk allocates and frees
    one for every call, and a page can take twice as long. The depth of the stack decides that, so rounds vary it.
    """
    if frames:
        _call(action, frames - 1)
    else:
        action()


def _flips(client: Client) -> Callable[[], HttpResponse]:
    """Return a function that flips a switch in the dashboard back and forth."""
    turns = itertools.cycle((("false", "true"), ("true", "false")))
    page = client.get(PAGES["Access, with exceptions"]).content.decode()
    parts = {
        "sections": " ".join(re.findall(r'data-section="([^"]+)"', page)),
        "tools": " ".join(re.findall(r'data-tool="([^"]+)"', page)),
    }

    def flip() -> HttpResponse:
        on, was = next(turns)
        response: Any = client.post(
            f"/agents/{AGENT}/switches/{SWITCH}/",
            {"on": on, "was": was, **parts},
            headers={"HX-Request": "true"},
        )
        return response  # type: ignore[no-any-return]

    return flip


@contextlib.contextmanager
def _demo(scratch: str) -> Iterator[Client]:
    """Fill a database as `make demo` does, with its settings: those of production, over plain HTTP. Yield a client that
    is logged in.
    """
    os.environ.update(
        DJANGO_SETTINGS_MODULE="toolbelt.settings",
        TOOLBELT_ENV="demo",
        TOOLBELT_ENV_FILE=os.devnull,
        TOOLBELT_LOG_LEVEL="ERROR",
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="testserver",
        DATABASE_URL=os.environ.get("BENCH_DATABASE_URL", f"sqlite:///{scratch}/pages.sqlite3"),
    )
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from scripts import sample_servers
    from toolbelt.control import writing
    from toolbelt.control.access import switches

    settings.ROOT_URLCONF = "scripts.bench_views"
    name = connection.creation.create_test_db(verbosity=0)
    try:
        call_command("loaddata", "demo", verbosity=0)
        call_command("demo_activity", stdout=io.StringIO())
        olive = writing.by("olive", via="screen")
        sample_servers.add_servers(olive)
        switches.flip(olive.replace(confirm=True), AGENT, SWITCH, True)
        client = Client()
        client.force_login(
            get_user_model().objects.create_superuser("olive"), "django.contrib.auth.backends.ModelBackend"
        )
        yield client
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def report(figures: Mapping[str, Mapping[str, float]]) -> None:
    """Print the figures as a table, and which goals are met."""
    bare = figures[BARE]["ms"]
    print(f"{'':36}{'CPU, ms':>9}{'quietest':>10}{'× bare':>8}{'queries':>9}{'KB':>8}{'KB sent':>9}")
    for name, entry in figures.items():
        print(
            f"{name:36}{entry['ms']:>9.1f}{entry['best_ms']:>10.1f}{entry['ms'] / bare:>8.0f}{entry['queries']:>9.0f}"
            f"{entry['bytes'] / 1e3:>8.0f}{entry['sent'] / 1e3:>9.1f}"
        )
    slow = [name for name, entry in figures.items() if entry["ms"] >= MAX_MS]
    large = [name for name, entry in figures.items() if entry["sent"] >= MAX_BYTES]
    print("\ngoals")
    for goal, missed in (
        (f"every page takes under {MAX_MS} ms", slow),
        (f"every page sends under {MAX_BYTES // 1000} KB", large),
    ):
        print(f"  MISSED {goal}: {', '.join(missed)}" if missed else f"  met    {goal}")


if __name__ == "__main__":
    sys.exit(main())
