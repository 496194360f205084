"""Benchmark of surface requests over HTTP. (`make bench`)

Toolbelt runs as in production, with the documented server, its log, its metrics and its limits. A bare Starlette
application runs beside it with the same server and returns the same bytes. Both receive requests in turns, over
persistent connections; the results are the ratios of CPU time per request, because machines differ and are busy.
"""

from __future__ import annotations

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
ADMISSION = "admission"
PATH = "/api/v1/agents/ada/surface"
SERVER_S_OWN = frozenset({"connection", "content-length", "date", "server"})
SAID = {
    "304": "ETag matches (304)",
    "200": "surface unchanged (200)",
    "message": "with a message and triggers",
}
# An admission's CPU, against that of a question for a surface that is unchanged.
ADMISSION_GOAL = 2.0
CLIENT_TOOL = "bench_client_run"
# Against the bare application's CPU, for a surface that is unchanged.
GOALS = {"sqlite": 2.0, "postgresql": 3.0}


# By kind and application: what each round took, as in :class:`Taken`.
Rounds = dict[str, dict[str, list[list[float]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The figures of one round: CPU µs per request, requests per second, and response times in ms."""

    cpu: float
    rate: float
    p50: float
    p95: float


class Asking(asyncio.Protocol):
    """A connection that sends the same request repeatedly. All responses have the same length."""

    def __init__(self, requests: list[bytes], length: int, until: float, took: list[float]) -> None:
        self._requests, self._length, self._until, self._took = requests, length, until, took
        self._left = 0
        self._asked = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Send the next request once the response is complete."""
        self._left -= len(data)
        if self._left == 0:
            now = time.perf_counter()
            self._took.append(now - self._asked)
            if now < self._until:
                self._ask()
            else:
                self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Finish. An incomplete response, or one of another length, is an error."""
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
    """Measure every size, print the table, and list the missed goals."""
    doing = "asking over HTTP, with a catalog of {size:,} tools"
    return bench.run("scripts.bench_http", __doc__, measure, report, doing)


def measure(size: int) -> dict[str, Any]:
    """Fill a database with ``size`` tools, and request an agent's surface of 30 tools from both applications."""
    with bench.filled(size) as connection, tempfile.TemporaryDirectory() as scratch:
        from toolbelt.control import writing
        from toolbelt.control.catalog import entries
        from toolbelt.control.people import tokens

        bencher = writing.by("bench", via="command", reason="bench")
        token = tokens.issue(bencher, agent="ada").text
        own = entries.read("agent", "ada").get("tools", [])
        entries.create(bencher, "tool", {"key": CLIENT_TOOL, "description": "Runs in the agent's program."})
        entries.change(bencher.replace(confirm=True), "agent", "ada", {"tools": [*own, CLIENT_TOOL]})
        address, vendor = bench.address(connection), connection.vendor
        connection.close()
        with serving("toolbelt", scratch, database=address) as toolbelt:
            requests = prepared(toolbelt, token, Path(scratch))
            with serving("bare", scratch) as bare:
                rounds = _rounds({"toolbelt": toolbelt, "bare": bare}, requests)
                rounds[ADMISSION] = _admissions(toolbelt, requests["200"], _admission_requests(token))
                memory = {
                    name: used(port)["bytes"] for name, port in (("toolbelt", toolbelt), ("bare", bare))
                }
        kept = (Path(scratch) / "GET").stat().st_size
    return {"size": size, "vendor": vendor, "rounds": rounds, "memory": memory, "bytes": kept}


def prepared(port: int, token: str, where: Path) -> dict[str, list[bytes]]:
    """Write all requests of each kind, and store the responses for the bare application."""
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
        response_head, _, answer = once(port, made[kind][0]).partition(b"\r\n\r\n")
        pairs = [line.split(": ", 1) for line in response_head.decode().split("\r\n")[1:]]
        headers = {name: value for name, value in pairs if name not in SERVER_S_OWN}
        (where / method).write_bytes(answer)
        (where / f"{method}.headers").write_text(json.dumps(headers))
        if method == "GET":
            given = f"If-None-Match: {headers['etag']}\r\n\r\n".encode()
            made["304"] = [request.removesuffix(b"\r\n") + given for request in made["200"]]
    return made


@contextlib.contextmanager
def serving(name: str, scratch: str, database: str = "") -> Iterator[int]:
    """Run one of the applications in its own process. Yield its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "TOOLBELT_ENV": "production",
        "TOOLBELT_INSECURE_HTTP": "true",
        "TOOLBELT_API_PER_MINUTE": "100000000",
        # Nothing runs the sample tools.
        "TOOLBELT_RUNNING_SECONDS": "0",
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
    protocol = "toolbelt.front.protocol:Protocol" if name == "toolbelt" else "httptools"
    command += ["--loop", "uvloop", "--http", protocol, "--no-access-log"]
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
    """Return what a server's process has used so far."""
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
    """Send requests in turns, so that a busy moment of the machine affects both equally."""
    found: Rounds = {kind: {name: [] for name in ports} for kind in KINDS}
    lengths = {(kind, name): length(ports[name], requests[kind][0]) for kind in KINDS for name in ports}
    for turn in range(ROUNDS + 1):
        for kind in KINDS:
            for name, port in ports.items():
                taken = asked(port, requests[kind], lengths[kind, name])
                if turn:  # the first one warms up
                    found[kind][name].append([taken.cpu, taken.rate, taken.p50, taken.p95])
    return found


def _admission_requests(token: str) -> list[bytes]:
    """Return requests for the admission of a call, each of another request of the agent."""
    head = f"Host: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nAuthorization: Bearer {token}\r\n"
    made = []
    for number in range(REQUESTS):
        call = {"tool": CLIENT_TOOL, "arguments": {}}
        body = json.dumps({"session": "s1", "request_id": f"r{number:03}", "calls": [call]})
        about = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        path = PATH.replace("surface", "calls/admit")
        made.append(f"POST {path} HTTP/1.1\r\n{head}{about}\r\n{body}".encode())
    return made


def _admissions(port: int, questions: list[bytes], admissions: list[bytes]) -> dict[str, list[list[float]]]:
    """Ask for admissions and for an unchanged surface in turns, and return what each round took."""
    taken: dict[str, list[list[float]]] = {"surface": [], ADMISSION: []}
    lengths = {"surface": length(port, questions[0]), ADMISSION: length(port, admissions[0])}
    for turn in range(ROUNDS + 1):
        for name, requests in (("surface", questions), (ADMISSION, admissions)):
            took = asked(port, requests, lengths[name])
            if turn:  # the first one warms up
                taken[name].append([took.cpu, took.rate, took.p50, took.p95])
    return taken


def length(port: int, request: bytes) -> int:
    """Send requests until the server is warm. Return the length of a response with its head."""
    answers = [once(port, request) for _ in range(3)]
    if not answers[-1].startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")):
        raise SystemExit(f"an answer that was not expected: {answers[-1][:200]!r}")
    return len(answers[-1]) - len(b"connection: close\r\n")


def once(port: int, request: bytes) -> bytes:
    """Send one request. Return the response with its head."""
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        return b"".join(iter(lambda: opened.recv(1 << 16), b""))


def asked(port: int, requests: list[bytes], length: int, connections: int = CONNECTIONS) -> Taken:
    """Send requests for a while over several connections. All responses have the same length."""
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


def report_rounds(found: list[dict[str, Any]], kind: str) -> None:
    """Print the medians of the rounds of a kind for both applications, and their ratio."""
    for name in ("bare", "toolbelt"):
        for label, place, form in (
            ("CPU for a request, µs", 0, ",.0f"),
            ("requests a second", 1, ",.0f"),
            ("p50, ms", 2, ".2f"),
            ("p95, ms", 3, ".2f"),
        ):
            cells = [statistics.median(taken[place] for taken in one["rounds"][kind][name]) for one in found]
            print(f"  {name:10} {label:32} " + "".join(f"{cell:>20{form}}" for cell in cells))
    print(f"  {'CPU, toolbelt / bare':44}" + "".join(f"{ratio(one, kind):>18.2f} ×" for one in found))


def report(found: list[dict[str, Any]]) -> None:
    """Print the figures and ratios as a table, and which goals are met."""
    print(
        f"\nover HTTP, {found[0]['vendor']}, {CONNECTIONS} connections, medians of {ROUNDS} rounds of {SECONDS} s"
    )
    print(f"{'':46}" + "".join(f"{one['size']:>14,} tools" for one in found))
    for kind in KINDS:
        print(SAID[kind])
        report_rounds(found, kind)
    for name in ("bare", "toolbelt"):
        print(
            f"{f'memory, {name}, MB':46}" + "".join(f"{one['memory'][name] / 1e6:>20,.0f}" for one in found)
        )
    print("admission of a call that the agent's own program runs")
    for name in ("surface", ADMISSION):
        cells = [statistics.median(taken[0] for taken in one["rounds"][ADMISSION][name]) for one in found]
        print(f"  {name:10} {'CPU for a request, µs':32} " + "".join(f"{cell:>20,.0f}" for cell in cells))
    print(
        f"  {'CPU, admission / surface':44}" + "".join(f"{_admission_ratio(one):>18.2f} ×" for one in found)
    )
    goal = GOALS[found[0]["vendor"]]
    print("\ngoals")
    for kind in ("304", "200"):
        for one in found:
            met = "met   " if ratio(one, kind) <= goal else "MISSED"
            print(
                f"  {met} {SAID[kind]}, {one['size']:,} tools: at most {goal:g} × the bare application's CPU"
            )
    for one in found:
        met = "met   " if _admission_ratio(one) <= ADMISSION_GOAL else "MISSED"
        print(
            f"  {met} admission, {one['size']:,} tools: at most {ADMISSION_GOAL:g} × the CPU of an unchanged surface"
        )


def _admission_ratio(one: dict[str, Any]) -> float:
    """Return the median of the rounds' ratios of CPU per request, of an admission to an unchanged surface."""
    rounds = one["rounds"][ADMISSION]
    pairs = zip(rounds[ADMISSION], rounds["surface"], strict=True)
    return float(statistics.median([admission[0] / surface[0] for admission, surface in pairs]))


def ratio(one: dict[str, Any], kind: str) -> float:
    """Return the median of the rounds' ratios of CPU per request."""
    pairs = zip(one["rounds"][kind]["toolbelt"], one["rounds"][kind]["bare"], strict=True)
    return float(statistics.median([toolbelt[0] / bare[0] for toolbelt, bare in pairs]))


if __name__ == "__main__":
    sys.exit(main())
