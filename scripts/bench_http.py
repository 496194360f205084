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
# Each surface is requested with another request id, as agents do.
REQUESTS = 1000
KINDS = ("304", "200", "message")
COMPARED = {
    "admission": "admission of a call that the agent's own program runs",
    "conversation": "surface of a conversation, with nothing to append",
    "append": "surface of a conversation, with a tool to withdraw",
}
PATH = "/api/v1/agents/ada/surface"
SERVER_HEADERS = frozenset({"connection", "content-length", "date", "server"})
LABELS = {
    "304": "ETag matches (304)",
    "200": "surface unchanged (200)",
    "message": "with a message and triggers",
}
CONVERSATION = {"format": "anthropic", "model": "claude-opus-5-5"}
# The CPU of what is compared with a request for a surface that is unchanged.
COMPARED_GOALS = {"admission": 2.0, "conversation": 3.0}
CLIENT_TOOL = "bench_client_run"
# Against the bare application's CPU, for a surface that is unchanged.
GOALS = {"sqlite": 2.0, "postgresql": 3.0}


# The figures of each round, as in :class:`Measurement`, by kind and application.
Rounds = dict[str, dict[str, list[list[float]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The figures of one round: CPU µs per request, requests per second, and response times in ms."""

    cpu: float
    rate: float
    p50: float
    p95: float


class LoadConnection(asyncio.Protocol):
    """A connection that sends the same request repeatedly. All responses have the same length."""

    def __init__(self, requests: list[bytes], length: int, until: float, times: list[float]) -> None:
        self._requests, self._length, self._until, self._times = requests, length, until, times
        self._missing = 0
        self._sent_at = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def data_received(self, data: bytes) -> None:
        """Send the next request once the response is complete."""
        self._missing -= len(data)
        if self._missing == 0:
            now = time.perf_counter()
            self._times.append(now - self._sent_at)
            if now < self._until:
                self._send()
            else:
                self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Finish. An incomplete response, or one of another length, is an error."""
        if not self.done.done():
            if self._missing:
                self.done.set_exception(
                    error or RuntimeError(f"a response has another length ({self._missing})")
                )
            else:
                self.done.set_result(None)

    def _send(self) -> None:
        self._missing = self._length
        self._sent_at = time.perf_counter()
        self._transport.write(self._requests[len(self._times) % REQUESTS])


def main() -> int:
    """Measure every size, print the table, and list the missed goals."""
    progress = "requesting surfaces over HTTP, with a catalog of {size:,} tools"
    return bench.run("scripts.bench_http", __doc__, measure, report, progress)


def measure(size: int) -> dict[str, Any]:
    """Fill a database with ``size`` tools, and request an agent's surface of 30 tools from both applications."""
    with bench.filled(size) as connection, tempfile.TemporaryDirectory() as scratch:
        from toolbelt.control import writing
        from toolbelt.control.access import switches
        from toolbelt.control.catalog import entries
        from toolbelt.control.people import tokens
        from toolbelt.runtime import surfaces

        bencher = writing.by("bench", via="command", reason="bench")
        token = tokens.issue(bencher, agent="ada").text
        tools = entries.read("agent", "ada").get("tools", [])
        entries.create(bencher, "tool", {"key": CLIENT_TOOL, "description": "Runs in the agent's program."})
        entries.change(bencher.replace(confirm=True), "agent", "ada", {"tools": [*tools, CLIENT_TOOL]})
        granted = surfaces.ask("ada").tools[-1].name
        address, vendor = bench.address(connection), connection.vendor
        connection.close()
        with serving("toolbelt", scratch, database=address) as toolbelt:
            begun = _begin_conversation(toolbelt, token)
            switches.override(bencher.replace(confirm=True), "ada", granted, False)
            told = {"conversation": _begin_conversation(toolbelt, token), "append": begun}
            compared = {
                kind: _post_requests(token, "surface", {**CONVERSATION, "conversation": {"token": known}})
                for kind, known in told.items()
            }
            call = {"tool": CLIENT_TOOL, "arguments": {}}
            compared["admission"] = _post_requests(token, "calls/admit", {"calls": [call]})
            requests = prepare_requests(toolbelt, token, Path(scratch))
            with serving("bare", scratch) as bare:
                rounds = _rounds({"toolbelt": toolbelt, "bare": bare}, requests)
                rounds["compared"] = _compared(toolbelt, {"surface": requests["200"], **compared})
                memory = {
                    name: resource_usage(port)["bytes"]
                    for name, port in (("toolbelt", toolbelt), ("bare", bare))
                }
        length = (Path(scratch) / "GET").stat().st_size
    return {"size": size, "vendor": vendor, "rounds": rounds, "memory": memory, "bytes": length}


def prepare_requests(port: int, token: str, directory: Path) -> dict[str, list[bytes]]:
    """Return all requests of each kind, and store the responses for the bare application."""
    head = f"Host: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nAuthorization: Bearer {token}\r\n"
    requests: dict[str, list[bytes]] = {"200": [], "message": []}
    for number in range(REQUESTS):
        parameters = {"session": "s1", "request_id": f"r{number:03}"}
        query = urllib.parse.urlencode(parameters)
        requests["200"].append(f"GET {PATH}?{query} HTTP/1.1\r\n{head}\r\n".encode())
        body = json.dumps({**parameters, "message": bench.MESSAGE})
        content_headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        requests["message"].append(f"POST {PATH} HTTP/1.1\r\n{head}{content_headers}\r\n{body}".encode())
    for method, kind in (("GET", "200"), ("POST", "message")):
        response_head, _, content = once(port, requests[kind][0]).partition(b"\r\n\r\n")
        pairs = [line.split(": ", 1) for line in response_head.decode().split("\r\n")[1:]]
        headers = {name: value for name, value in pairs if name not in SERVER_HEADERS}
        (directory / method).write_bytes(content)
        (directory / f"{method}.headers").write_text(json.dumps(headers))
        if method == "GET":
            condition = f"If-None-Match: {headers['etag']}\r\n\r\n".encode()
            requests["304"] = [request.removesuffix(b"\r\n") + condition for request in requests["200"]]
    return requests


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
        # It counts them, and refuses none.
        "TOOLBELT_IDENTICAL_CALLS": "1000000000",
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
    # As in production, the log is written to a pipe or a file, not to a terminal.
    with (Path(scratch) / f"{name}.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, cwd=bench.HERE, stdout=log, stderr=log)
        try:
            _wait_for(port, running)
            yield port
        finally:
            running.terminate()
            running.wait()


def resource_usage(port: int) -> dict[str, float]:
    """Return the CPU seconds and memory that a server's process has used so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{bench_apps.USAGE_PATH}") as response:
        return json.load(response)  # type: ignore[no-any-return]


def _wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if running.poll() is not None:
            raise SystemExit(f"{running.args!r} ended with {running.returncode}")
        with contextlib.suppress(urllib.error.URLError):
            resource_usage(port)
            return
        time.sleep(0.1)
    raise SystemExit(f"{running.args!r} does not respond")


def _rounds(ports: dict[str, int], requests: dict[str, list[bytes]]) -> Rounds:
    """Send requests in turns, so that a busy moment of the machine affects both equally."""
    figures: Rounds = {kind: {name: [] for name in ports} for kind in KINDS}
    lengths = {(kind, name): length(ports[name], requests[kind][0]) for kind in KINDS for name in ports}
    for turn in range(ROUNDS + 1):
        for kind in KINDS:
            for name, port in ports.items():
                measured = measure_load(port, requests[kind], lengths[kind, name])
                if turn:  # the first one warms up
                    figures[kind][name].append([measured.cpu, measured.rate, measured.p50, measured.p95])
    return figures


def _post_requests(token: str, path: str, fields: dict[str, Any]) -> list[bytes]:
    """Return requests with these fields, each with another request id."""
    head = f"Host: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nAuthorization: Bearer {token}\r\n"
    requests = []
    for number in range(REQUESTS):
        body = json.dumps({"session": "s1", "request_id": f"r{number:03}", **fields})
        content_headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        address = PATH.replace("surface", path)
        requests.append(f"POST {address} HTTP/1.1\r\n{head}{content_headers}\r\n{body}".encode())
    return requests


def _begin_conversation(port: int, token: str) -> str:
    """Begin a conversation, and return its token."""
    request = _post_requests(token, "surface", {**CONVERSATION, "conversation": {}})[0]
    _, _, content = once(port, request).partition(b"\r\n\r\n")
    told: str = json.loads(content)["append"]["token"]
    return told


def _compared(port: int, requests: dict[str, list[bytes]]) -> dict[str, list[list[float]]]:
    """Send requests of each kind in turns, and return the figures of each round."""
    figures: dict[str, list[list[float]]] = {kind: [] for kind in requests}
    lengths = {kind: length(port, sent[0]) for kind, sent in requests.items()}
    for turn in range(ROUNDS + 1):
        for kind, sent in requests.items():
            measured = measure_load(port, sent, lengths[kind])
            if turn:  # the first one warms up
                figures[kind].append([measured.cpu, measured.rate, measured.p50, measured.p95])
    return figures


def length(port: int, request: bytes) -> int:
    """Send requests until the server is warm. Return the length of a response with its head."""
    responses = [once(port, request) for _ in range(3)]
    if not responses[-1].startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")):
        raise SystemExit(f"unexpected response: {responses[-1][:200]!r}")
    return len(responses[-1]) - len(b"connection: close\r\n")


def once(port: int, request: bytes) -> bytes:
    """Send one request. Return the response with its head."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def measure_load(
    port: int, requests: list[bytes], length: int, connections: int = CONNECTIONS
) -> Measurement:
    """Send requests for a while over several connections. All responses have the same length."""
    times: list[float] = []
    before, started = resource_usage(port)["seconds"], time.perf_counter()
    uvloop.run(_ask(port, requests, length, started + SECONDS, times, connections))
    elapsed = time.perf_counter() - started
    spent = resource_usage(port)["seconds"] - before
    times.sort()
    return Measurement(
        cpu=spent / len(times) * 1e6,
        rate=len(times) / elapsed,
        p50=statistics.median(times) * 1e3,
        p95=times[int(len(times) * 0.95)] * 1e3,
    )


async def _ask(
    port: int, requests: list[bytes], length: int, until: float, times: list[float], connections: int
) -> None:
    loop = asyncio.get_running_loop()
    connected = [
        await loop.create_connection(
            lambda: LoadConnection(requests, length, until, times), "127.0.0.1", port
        )
        for _ in range(connections)
    ]
    await asyncio.gather(*(protocol.done for _, protocol in connected))


def report_rounds(figures: list[dict[str, Any]], kind: str) -> None:
    """Print the medians of the rounds of a kind for both applications, and their ratio."""
    for name in ("bare", "toolbelt"):
        for label, column, form in (
            ("CPU for a request, µs", 0, ",.0f"),
            ("requests a second", 1, ",.0f"),
            ("p50, ms", 2, ".2f"),
            ("p95, ms", 3, ".2f"),
        ):
            cells = [
                statistics.median(measured[column] for measured in entry["rounds"][kind][name])
                for entry in figures
            ]
            print(f"  {name:10} {label:32} " + "".join(f"{cell:>20{form}}" for cell in cells))
    print(f"  {'CPU, toolbelt / bare':44}" + "".join(f"{ratio(entry, kind):>18.2f} ×" for entry in figures))


def report(figures: list[dict[str, Any]]) -> None:
    """Print the figures and ratios as a table, and which goals are met."""
    print(
        f"\nover HTTP, {figures[0]['vendor']}, {CONNECTIONS} connections, medians of {ROUNDS} rounds of {SECONDS} s"
    )
    print(f"{'':46}" + "".join(f"{entry['size']:>14,} tools" for entry in figures))
    for kind in KINDS:
        print(LABELS[kind])
        report_rounds(figures, kind)
    for name in ("bare", "toolbelt"):
        print(
            f"{f'memory, {name}, MB':46}"
            + "".join(f"{entry['memory'][name] / 1e6:>20,.0f}" for entry in figures)
        )
    for kind, label in COMPARED.items():
        print(label)
        for name in ("surface", kind):
            cells = [
                statistics.median(measured[0] for measured in entry["rounds"]["compared"][name])
                for entry in figures
            ]
            print(f"  {name:12} {'CPU for a request, µs':30} " + "".join(f"{cell:>20,.0f}" for cell in cells))
        ratios = "".join(f"{_compared_ratio(entry, kind):>18.2f} ×" for entry in figures)
        print(f"  {f'CPU, {kind} / surface':44}" + ratios)
    goal = GOALS[figures[0]["vendor"]]
    print("\ngoals")
    for kind in ("304", "200"):
        for entry in figures:
            met = "met   " if ratio(entry, kind) <= goal else "MISSED"
            print(
                f"  {met} {LABELS[kind]}, {entry['size']:,} tools: at most {goal:g} × the bare application's CPU"
            )
    for kind, most in COMPARED_GOALS.items():
        for entry in figures:
            met = "met   " if _compared_ratio(entry, kind) <= most else "MISSED"
            print(
                f"  {met} {kind}, {entry['size']:,} tools: at most {most:g} × the CPU of an unchanged surface"
            )


def _compared_ratio(entry: dict[str, Any], kind: str) -> float:
    """Return the median of the rounds' ratios of CPU per request, to an unchanged surface."""
    rounds = entry["rounds"]["compared"]
    pairs = zip(rounds[kind], rounds["surface"], strict=True)
    return float(statistics.median([measured[0] / surface[0] for measured, surface in pairs]))


def ratio(entry: dict[str, Any], kind: str) -> float:
    """Return the median of the rounds' ratios of CPU per request."""
    pairs = zip(entry["rounds"][kind]["toolbelt"], entry["rounds"][kind]["bare"], strict=True)
    return float(statistics.median([toolbelt[0] / bare[0] for toolbelt, bare in pairs]))


if __name__ == "__main__":
    sys.exit(main())
