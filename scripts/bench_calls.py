"""Measure the cost of a call of an upstream tool through Toolbelt, compared with a direct call. (`make bench`)

A separate MCP server is called directly, through Toolbelt, and through FastMCP's proxy if its environment exists
(`make interop ONLY=fastmcp` creates it). Each is called in turns over 1 and 8 connections. The CPU time is that of all
server processes that handle a call.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts import bench, bench_http

CONNECTIONS = (1, 8)
ROUNDS = 5
SECONDS = 2.0
# The goals: how much CPU a call through Toolbelt may take, compared with a direct one, and how much longer it may take.
CPU_RATIO, TIME_MS = 4.0, 5.0
FASTMCP = bench.HERE / ".interop/fastmcp/bin/python"

UPSTREAM = """
import sys, uvicorn
from mcp.server.mcpserver import MCPServer
server = MCPServer("upstream", version="1", log_level="CRITICAL")
@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
uvicorn.run(server.streamable_http_app(), port=int(sys.argv[1]), log_level="critical")
"""
PROXY = """
import sys
from fastmcp.server import create_proxy
create_proxy(sys.argv[2]).run(transport="http", port=int(sys.argv[1]), show_banner=False, log_level="critical")
"""


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route to the tool: its address and headers, and the processes whose CPU time it uses."""

    name: str
    port: int
    path: str
    tool: str
    pids: Sequence[int]
    token: str = ""


def main() -> int:
    """Measure every route, print the table, and list the missed goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, help="measure in this process, whatever the size, and print JSON")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if options.size:
        print(json.dumps(measure()))
        return 0
    print("calling an upstream tool directly and through Toolbelt …", file=sys.stderr, flush=True)
    figures = bench.run_in_process(1, "scripts.bench_calls")
    print(json.dumps(figures, indent=2)) if options.json else report(figures)
    return 0


def measure() -> dict[str, Any]:
    """Fill a database with a hundred tools and one upstream server, and call its tool over every route."""
    with (
        bench.filled(100) as connection,
        tempfile.TemporaryDirectory() as scratch,
        running([sys.executable, "-c", UPSTREAM]) as upstream,
    ):
        from toolbelt.control import writing
        from toolbelt.control.config import belts
        from toolbelt.control.people import tokens
        from toolbelt.control.servers import upstream_servers
        from toolbelt.runtime.upstream import process_connections, server_lists

        write = writing.by("bench", via="command")
        url = f"http://127.0.0.1:{upstream[0]}/mcp"
        upstream_servers.add(write, "up", {"url": url}, trusted=True)
        server_lists.refresh(["up"], lambda name, response: upstream_servers.record(write, name, response))
        belts.import_(write, {"agents": [{"key": "caller", "tools": ["up__add"]}]})
        process_connections.stop()
        token = tokens.issue(write, agent="caller").text
        address, vendor = bench.address(connection), connection.vendor
        connection.close()
        routes = [Route(name="direct", port=upstream[0], path="/mcp", tool="add", pids=[upstream[1]])]
        with contextlib.ExitStack() as stack:
            toolbelt = stack.enter_context(bench_http.serving("toolbelt", scratch, database=address))
            pid = listener(toolbelt)
            routes.append(
                Route(
                    name="toolbelt",
                    port=toolbelt,
                    path="/mcp/caller",
                    tool="up__add",
                    pids=[upstream[1], pid],
                    token=token,
                )
            )
            if FASTMCP.exists():
                proxy = stack.enter_context(running([str(FASTMCP), "-c", PROXY], url))
                pids = [upstream[1], proxy[1]]
                routes.append(Route(name="fastmcp", port=proxy[0], path="/mcp", tool="add", pids=pids))
            return {"vendor": vendor, "rounds": rounds(routes)}


def rounds(routes: Sequence[Route]) -> dict[str, dict[str, list[list[float]]]]:
    """Call over every route in turns, so that a busy moment of the machine affects all equally."""
    figures: dict[str, dict[str, list[list[float]]]] = {
        str(many): {route.name: [] for route in routes} for many in CONNECTIONS
    }
    for turn in range(ROUNDS + 1):
        for many in CONNECTIONS:
            for route in routes:
                measured = measure_calls(route, many)
                if turn:  # the first one warms up
                    figures[str(many)][route.name].append(measured)
    return figures


def measure_calls(route: Route, connections: int) -> list[float]:
    """Call for a while over several connections. Return CPU ms per call, calls per second, and p50 and p95 in ms."""
    times: list[float] = []
    clients = [Client(route) for _ in range(connections)]
    before, started = cpu(route.pids), time.perf_counter()
    threads = [
        threading.Thread(target=client.call_until, args=(started + SECONDS, times)) for client in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed, spent = time.perf_counter() - started, cpu(route.pids) - before
    times.sort()
    return [
        spent / len(times) * 1e3,
        len(times) / elapsed,
        statistics.median(times) * 1e3,
        times[int(len(times) * 0.95)] * 1e3,
    ]


class Client:
    """One connection of a client of 2025-11-25, after its handshake."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._connection = http.client.HTTPConnection("127.0.0.1", route.port, timeout=60)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        if route.token:
            self._headers["Authorization"] = f"Bearer {route.token}"
        client_info = {"name": "bench", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info}
        _, headers = self._send({"id": 0, "method": "initialize", "params": params})
        if session := headers.get("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        self._send({"method": "notifications/initialized"})

    def call_until(self, end: float, times: list[float]) -> None:
        """Call repeatedly."""
        number = 0
        while (started := time.perf_counter()) < end:
            number += 1
            params = {"name": self._route.tool, "arguments": {"a": number, "b": 1}}
            response, _ = self._send({"id": number, "method": "tools/call", "params": params})
            if str(number + 1).encode() not in response or b'"isError":true' in response:
                raise SystemExit(f"unexpected response: {response[:300]!r}")
            times.append(time.perf_counter() - started)

    def _send(self, message: dict[str, Any]) -> tuple[bytes, Any]:
        body = json.dumps({"jsonrpc": "2.0", **message})
        self._connection.request("POST", self._route.path, body, self._headers)
        response = self._connection.getresponse()
        return response.read(), response.headers


@contextlib.contextmanager
def running(command: Sequence[str], *more: str) -> Iterator[tuple[int, int]]:
    """Run a server that takes its port as an argument; yield port and process id once it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([*command, str(port), *more], stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            if process.poll() is not None:
                raise SystemExit(f"{command[0]} ended with {process.returncode}")
            time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def listener(port: int) -> int:
    """Return the id of the child process that listens on this port."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"--port\0{port}\0".encode() in (entry / "cmdline").read_bytes():
                return int(entry.name)
    raise SystemExit(f"no process listens on {port}")


def cpu(pids: Sequence[int]) -> float:
    """Return the seconds of CPU that these processes have used."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def report(figures: dict[str, Any]) -> None:
    """Print the figures as a table, the overhead of Toolbelt, and which goals are met."""
    print(f"\ncalls of an upstream tool, {figures['vendor']}, medians of {ROUNDS} rounds of {SECONDS:g} s")
    print(f"{'':28}{'CPU, ms':>10}{'calls/s':>10}{'p50, ms':>10}{'p95, ms':>10}")
    goals = []
    for many, routes in figures["rounds"].items():
        medians_by_route = {
            name: [statistics.median(column) for column in zip(*measured, strict=True)]
            for name, measured in routes.items()
        }
        for name, medians in medians_by_route.items():
            cells = "".join(f"{figure:>10.2f}" for figure in medians)
            print(f"{f'{many} connection(s), {name}':28}{cells}")
        direct, through = medians_by_route["direct"], medians_by_route["toolbelt"]
        goals.append(
            (through[0] <= CPU_RATIO * direct[0], f"{many} connection(s): at most {CPU_RATIO:g} × the CPU")
        )
        if many == "1":
            goals.append(
                (through[2] - direct[2] <= TIME_MS, f"{many} connection: at most {TIME_MS:g} additional ms")
            )
    print("\ngoals")
    for met, goal in goals:
        print(f"  {'met   ' if met else 'MISSED'} {goal}")


if __name__ == "__main__":
    sys.exit(main())
