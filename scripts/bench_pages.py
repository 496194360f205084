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
# ms of CPU, and bytes as gzip sends them.
MAX_MS, MAX_BYTES = 100, 60_000
BARE, FLIP = "a bare Django view", "A flip on the screen"
# An agent with exceptions, whose sections stand open, and one that has nearly everything.
AGENT, MAX_SIZE, SWITCH = "assistant", "omni", "research"
PAGES: dict[str, str] = {
    "Home": "/",
    "Agents": "/agents/",
    "Access, with exceptions": f"/agents/{AGENT}/",
    "Access, nearly everything on": f"/agents/{MAX_SIZE}/",
    "Access, filtered": f"/agents/{AGENT}/?q=issue",
    "Access, a section is opened": f"/agents/{MAX_SIZE}/?open=toolkit-issues",
    "Preview": f"/agents/{AGENT}/preview/",
    "Preview, nearly everything on": f"/agents/{MAX_SIZE}/preview/",
    "Preview, JSON for a provider": f"/agents/{MAX_SIZE}/preview/?view=json&format=openai_chat",
    "Sessions": f"/agents/{AGENT}/sessions/",
    "History": f"/agents/{AGENT}/history/",
    "Connect": f"/agents/{AGENT}/connect/",
    "Settings": f"/agents/{AGENT}/settings/",
    "Search": "/search/?q=turn+off+slack+for+assistant",
    "People": "/people/",
    "Bulk, before it is done": f"/agents/{AGENT}/bulk/?q=git&set=tools-false",
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
    parser.add_argument("only", nargs="*", help="only the pages whose names begin so")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each is asked for ({ROUNDS})")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    only = tuple(options.only)
    with tempfile.TemporaryDirectory() as scratch, _demo(scratch) as client:
        found = measure(
            client, {name for name in (*PAGES, FLIP) if not only or name.startswith(only)}, options.rounds
        )
    print(json.dumps(found, indent=2)) if options.json else report(found)
    return 0


def measure(client: Client, wanted: Container[str], rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Measure the selected pages. Return the figures by name."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    acts: dict[str, Callable[[], Any]] = {BARE: lambda: client.get("/bare")}
    acts |= {name: functools.partial(client.get, to) for name, to in PAGES.items() if name in wanted}
    if FLIP in wanted:
        acts[FLIP] = _flips(client)
    found: dict[str, dict[str, float]] = {}
    for name, act in acts.items():
        act()  # once for what is made at the first time
        with CaptureQueriesContext(connection) as queries:
            answer = act()
        if answer.status_code != 200:
            raise SystemExit(f"{name} answers {answer.status_code}")
        found[name] = {
            "queries": len(queries),
            "bytes": len(answer.content),
            "sent": len(gzip.compress(answer.content, 6)),
        }
    taken: dict[str, list[float]] = {name: [] for name in acts}
    for turn in range(rounds):
        for name, act in acts.items():
            begun = time.process_time()
            _call(act, frames=10 * turn)
            taken[name].append((time.process_time() - begun) * 1e3)
    for name, times in taken.items():
        found[name] |= {"ms": statistics.median(times), "best_ms": min(times)}
    return found


def _call(act: Callable[[], Any], frames: int) -> None:
    """Call it with this many more frames on the stack.

    CPython 3.11 allocates frames in chunks of 16 KB. A loop whose calls cross the end of a chunk allocates and frees
    one for every call, and a page can take twice as long. The depth of the stack decides that, so rounds vary it.
    """
    if frames:
        _call(act, frames - 1)
    else:
        act()


def _flips(client: Client) -> Callable[[], HttpResponse]:
    """Return a function that flips a switch in the dashboard back and forth."""
    turns = itertools.cycle((("false", "true"), ("true", "false")))
    shown = client.get(PAGES["Access, with exceptions"]).content.decode()
    parts = {
        "sections": " ".join(re.findall(r'data-section="([^"]+)"', shown)),
        "tools": " ".join(re.findall(r'data-tool="([^"]+)"', shown)),
    }

    def flip() -> HttpResponse:
        on, was = next(turns)
        answer: Any = client.post(
            f"/agents/{AGENT}/switches/{SWITCH}/",
            {"on": on, "was": was, **parts},
            headers={"HX-Request": "true"},
        )
        return answer  # type: ignore[no-any-return]

    return flip


@contextlib.contextmanager
def _demo(scratch: str) -> Iterator[Client]:
    """Fill a database as `make demo` does, under its settings, which are those of production over plain HTTP; give a
    browser that is logged in.
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
        sample_servers.let_answer(olive)
        switches.flip(olive.replace(confirm=True), AGENT, SWITCH, True)
        client = Client()
        client.force_login(
            get_user_model().objects.create_superuser("olive"), "django.contrib.auth.backends.ModelBackend"
        )
        yield client
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def report(found: Mapping[str, Mapping[str, float]]) -> None:
    """Print the figures as a table, and which goals are met."""
    bare = found[BARE]["ms"]
    print(f"{'':36}{'CPU, ms':>9}{'quietest':>10}{'× bare':>8}{'queries':>9}{'KB':>8}{'KB sent':>9}")
    for name, one in found.items():
        print(
            f"{name:36}{one['ms']:>9.1f}{one['best_ms']:>10.1f}{one['ms'] / bare:>8.0f}{one['queries']:>9.0f}"
            f"{one['bytes'] / 1e3:>8.0f}{one['sent'] / 1e3:>9.1f}"
        )
    slow = [name for name, one in found.items() if one["ms"] >= MAX_MS]
    large = [name for name, one in found.items() if one["sent"] >= MAX_BYTES]
    print("\ngoals")
    for goal, missed in (
        (f"every page takes under {MAX_MS} ms", slow),
        (f"every page sends under {MAX_BYTES // 1000} KB", large),
    ):
        print(f"  MISSED {goal}: {', '.join(missed)}" if missed else f"  met    {goal}")


if __name__ == "__main__":
    sys.exit(main())
