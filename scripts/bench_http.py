"""What does a question cost over HTTP? (`make bench`)

Toolbelt runs as in production, under the server that the docs name, with its log, its counters and its limits. A bare
Starlette application runs beside it under the same server and answers the same bytes. Both are asked in turns, over
connections that stay open; what counts are the ratios of CPU per request, since machines differ and are busy.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import uvloop

from scripts import bench, bench_apps

CONNECTIONS = 8
SECONDS, ROUNDS = 0.6, 7
# Each question is of another request, as those of agents are.
REQUESTS = 1000
KINDS = ("304", "200", "message")
PATH = "/api/v1/agents/ada/surface"
SERVER_S_OWN = frozenset({"connection", "content-length", "date", "server"})
SAID = {
    "304": "ETag matches (304)",
    "200": "surface unchanged (200)",
    "message": "with a message and triggers",
}
# Against the bare application's CPU, for a surface that is unchanged.
GOALS = {"sqlite": 2.0, "postgresql": 3.0}


# By kind and application: what each round took, as in :class:`Taken`.
Rounds = dict[str, dict[str, list[list[float]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one round took: µs of the server's CPU for a request, requests a second, and ms until an answer."""

    cpu: float
    rate: float
    p50: float
    p95: float


class Asking(asyncio.Protocol):
    """One connection that asks again and again; all answers have one length."""

    def __init__(self, requests: list[bytes], length: int, until: float, took: list[float]) -> None:
        self._requests, self._length, self._until, self._took = requests, length, until, took
        self._left = 0
        self._asked = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Ask again, once the answer is there."""
        self._left -= len(data)
        if self._left == 0:
            now = time.perf_counter()
            self._took.append(now - self._asked)
            if now < self._until:
                self._ask()
            else:
                self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Be done; an answer that is not whole, or longer than it was, is an error."""
        if not self.done.done():
            if self._left:
                self.done.set_exception(error or RuntimeError(f"an answer of another length ({self._left})"))
            else:
                self.done.set_result(None)

    def _ask(self) -> None:
        self._left = self._length
        self._asked = time.perf_counter()
        self._transport.write(self._requests[len(self._took) % REQUESTS])


def main() -> int:
    """Measure every size, print the table, and name the goals that were missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, help="measure this size alone and print it as JSON")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return 0
    found = []
    for size in bench.SIZES:
        print(f"asking over HTTP, with a catalog of {size:,} tools …", file=sys.stderr, flush=True)
        found.append(bench.in_a_process(size, "scripts.bench_http"))
    print(json.dumps(found, indent=2)) if options.json else report(found)
    return 0


def measure(size: int) -> dict[str, Any]:
    """Fill a database with ``size`` tools, and ask both applications for the surface of an agent that has 30."""
    with bench.filled(size) as connection, tempfile.TemporaryDirectory() as scratch:
        from toolbelt.control import actors, tokens

        token = tokens.issue(actors.Actor(name="bench", via="command"), agent="ada").text
        address, vendor = bench.address(connection), connection.vendor
        connection.close()
        with serving("toolbelt", scratch, database=address) as toolbelt:
            requests = prepared(toolbelt, token, Path(scratch))
            with serving("bare", scratch) as bare:
                rounds = _rounds({"toolbelt": toolbelt, "bare": bare}, requests)
                memory = {
                    name: used(port)["bytes"] for name, port in (("toolbelt", toolbelt), ("bare", bare))
                }
        kept = (Path(scratch) / "GET").stat().st_size
    return {"size": size, "vendor": vendor, "rounds": rounds, "memory": memory, "bytes": kept}


def prepared(port: int, token: str, where: Path) -> dict[str, list[bytes]]:
    """Write all requests of each kind; keep the answers for the bare application."""
    head = f"Host: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nAuthorization: Bearer {token}\r\n"
    made: dict[str, list[bytes]] = {"200": [], "message": []}
    for number in range(REQUESTS):
        asked = {"session": "s1", "request_id": f"r{number:03}"}
        query = urllib.parse.urlencode(asked)
        made["200"].append(f"GET {PATH}?{query} HTTP/1.1\r\n{head}\r\n".encode())
        body = json.dumps({**asked, "message": bench.MESSAGE})
        about = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        made["message"].append(f"POST {PATH} HTTP/1.1\r\n{head}{about}\r\n{body}".encode())
    for method, kind in (("GET", "200"), ("POST", "message")):
        told, _, answer = once(port, made[kind][0]).partition(b"\r\n\r\n")
        pairs = [line.split(": ", 1) for line in told.decode().split("\r\n")[1:]]
        headers = {name: value for name, value in pairs if name not in SERVER_S_OWN}
        (where / method).write_bytes(answer)
        (where / f"{method}.headers").write_text(json.dumps(headers))
        if method == "GET":
            given = f"If-None-Match: {headers['etag']}\r\n\r\n".encode()
            made["304"] = [request.removesuffix(b"\r\n") + given for request in made["200"]]
    return made


@contextlib.contextmanager
def serving(name: str, scratch: str, database: str = "") -> Iterator[int]:
    """Run one of the applications in a process of its own; give its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "TOOLBELT_ENV": "production",
        "TOOLBELT_INSECURE_HTTP": "true",
        "TOOLBELT_API_PER_MINUTE": "100000000",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ALLOWED_HOSTS": "127.0.0.1",
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
        "BENCH_ANSWERS": scratch,
        "PYTHONWARNINGS": "ignore",
    }
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        f"scripts.bench_apps:{name}",
        "--factory",
        "--port",
        str(port),
    ]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log"]
    # The log goes where one goes in production: through a pipe or into a file, not onto a screen.
    with (Path(scratch) / f"{name}.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, cwd=bench.HERE, stdout=log, stderr=log)
        try:
            _wait_for(port, running)
            yield port
        finally:
            running.terminate()
            running.wait()


def used(port: int) -> dict[str, float]:
    """Ask a server what its process has used so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{bench_apps.USED}") as answer:
        return json.load(answer)  # type: ignore[no-any-return]


def _wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if running.poll() is not None:
            raise SystemExit(f"{running.args!r} ended with {running.returncode}")
        with contextlib.suppress(urllib.error.URLError):
            used(port)
            return
        time.sleep(0.1)
    raise SystemExit(f"{running.args!r} does not answer")


def _rounds(ports: dict[str, int], requests: dict[str, list[bytes]]) -> Rounds:
    """Ask in turns, so that a busy moment of the machine meets both alike."""
    found: Rounds = {kind: {name: [] for name in ports} for kind in KINDS}
    lengths = {(kind, name): length(ports[name], requests[kind][0]) for kind in KINDS for name in ports}
    for turn in range(ROUNDS + 1):
        for kind in KINDS:
            for name, port in ports.items():
                taken = asked(port, requests[kind], lengths[kind, name])
                if turn:  # the first one warms up
                    found[kind][name].append([taken.cpu, taken.rate, taken.p50, taken.p95])
    return found


def length(port: int, request: bytes) -> int:
    """Ask until it is as ready as it will be; give the length of an answer with its head."""
    answers = [once(port, request) for _ in range(3)]
    if not answers[-1].startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")):
        raise SystemExit(f"an answer that was not expected: {answers[-1][:200]!r}")
    return len(answers[-1]) - len(b"connection: close\r\n")


def once(port: int, request: bytes) -> bytes:
    """Ask once; give the answer with its head."""
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        return b"".join(iter(lambda: opened.recv(1 << 16), b""))


def asked(port: int, requests: list[bytes], length: int, connections: int = CONNECTIONS) -> Taken:
    """Ask for a while over so many connections; all answers have the one length."""
    took: list[float] = []
    before, begun = used(port)["seconds"], time.perf_counter()
    uvloop.run(_ask(port, requests, length, begun + SECONDS, took, connections))
    passed = time.perf_counter() - begun
    spent = used(port)["seconds"] - before
    took.sort()
    return Taken(
        cpu=spent / len(took) * 1e6,
        rate=len(took) / passed,
        p50=statistics.median(took) * 1e3,
        p95=took[int(len(took) * 0.95)] * 1e3,
    )


async def _ask(
    port: int, requests: list[bytes], length: int, until: float, took: list[float], connections: int
) -> None:
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda: Asking(requests, length, until, took), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.gather(*(asking.done for _, asking in opened))


def report(found: list[dict[str, Any]]) -> None:
    """Print the figures as a table, the ratios, and whether the goals are met."""
    print(
        f"\nover HTTP, {found[0]['vendor']}, {CONNECTIONS} connections, medians of {ROUNDS} rounds of {SECONDS} s"
    )
    print(f"{'':46}" + "".join(f"{one['size']:>14,} tools" for one in found))
    for kind in KINDS:
        print(SAID[kind])
        for name in ("bare", "toolbelt"):
            for label, place, form in (
                ("CPU for a request, µs", 0, ",.0f"),
                ("requests a second", 1, ",.0f"),
                ("p50, ms", 2, ".2f"),
                ("p95, ms", 3, ".2f"),
            ):
                cells = [
                    statistics.median(taken[place] for taken in one["rounds"][kind][name]) for one in found
                ]
                print(f"  {name:10} {label:32} " + "".join(f"{cell:>20{form}}" for cell in cells))
        print(f"  {'CPU, toolbelt / bare':44}" + "".join(f"{_ratio(one, kind):>18.2f} ×" for one in found))
    for name in ("bare", "toolbelt"):
        print(
            f"{f'memory, {name}, MB':46}" + "".join(f"{one['memory'][name] / 1e6:>20,.0f}" for one in found)
        )
    goal = GOALS[found[0]["vendor"]]
    print("\ngoals")
    for kind in ("304", "200"):
        for one in found:
            met = "met   " if _ratio(one, kind) <= goal else "MISSED"
            print(
                f"  {met} {SAID[kind]}, {one['size']:,} tools: at most {goal:g} × the bare application's CPU"
            )


def _ratio(one: dict[str, Any], kind: str) -> float:
    """Give the median of the rounds' ratios of CPU per request."""
    pairs = zip(one["rounds"][kind]["toolbelt"], one["rounds"][kind]["bare"], strict=True)
    return float(statistics.median([toolbelt[0] / bare[0] for toolbelt, bare in pairs]))


if __name__ == "__main__":
    sys.exit(main())
