"""Measure what a call of an upstream tool costs through Toolbelt, beside a direct connection. (`make bench`)

An MCP server in a process of its own is called directly, through Toolbelt, and through FastMCP's proxy where its
environment is there (`make interop ONLY=fastmcp` makes it). Each is asked in turns over 1 and 8 connections in one run.
CPU is that of all server processes on the way.
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
# What Toolbelt may add to a direct call.
CPU_MS, TIME_MS, THROUGHPUT = 3.0, 5.0, 0.6
FASTMCP = bench.HERE / ".interop/fastmcp/bin/python"

UPSTREAM = """
import sys, uvicorn
from mcp.server.mcpserver import MCPServer
server = MCPServer("upstream", version="1", log_level="CRITICAL")
@server.tool()
def add(one: int, other: int) -> int:
    "Add two numbers."
    return one + other
uvicorn.run(server.streamable_http_app(), port=int(sys.argv[1]), log_level="critical")
"""
PROXY = """
import sys
from fastmcp.server import create_proxy
create_proxy(sys.argv[2]).run(transport="http", port=int(sys.argv[1]), show_banner=False, log_level="critical")
"""


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to call the tool: its address and headers, and the processes whose CPU time it uses."""

    name: str
    port: int
    path: str
    tool: str
    pids: Sequence[int]
    token: str = ""


def main() -> int:
    """Measure every way, print the table, and list the missed goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, help="measure here and print the figures as JSON")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure()))
        return 0
    print("calling an upstream tool directly and through Toolbelt …", file=sys.stderr, flush=True)
    found = bench.in_a_process(1, "scripts.bench_calls")
    print(json.dumps(found, indent=2)) if options.json else report(found)
    return 0


def measure() -> dict[str, Any]:
    """Fill a database with a hundred tools and one upstream server, and call its tool in every way."""
    with (
        bench.filled(100) as connection,
        tempfile.TemporaryDirectory() as scratch,
        running([sys.executable, "-c", UPSTREAM]) as upstream,
    ):
        from toolbelt.control import writing
        from toolbelt.control.config import belts
        from toolbelt.control.people import tokens
        from toolbelt.control.servers import upstream_servers
        from toolbelt.runtime import upstream_connections, upstream_listing

        write = writing.by("bench", via="command")
        url = f"http://127.0.0.1:{upstream[0]}/mcp"
        upstream_servers.add(write, "up", {"url": url}, trusted=True)
        upstream_listing.refresh(["up"], lambda name, answer: upstream_servers.record(write, name, answer))
        belts.import_(write, {"agents": [{"key": "caller", "tools": ["up__add"]}]})
        upstream_connections.stop()
        token = tokens.issue(write, agent="caller").text
        address, vendor = bench.address(connection), connection.vendor
        connection.close()
        ways = [Way(name="direct", port=upstream[0], path="/mcp", tool="add", pids=[upstream[1]])]
        with contextlib.ExitStack() as stack:
            toolbelt = stack.enter_context(bench_http.serving("toolbelt", scratch, database=address))
            pid = listener(toolbelt)
            ways.append(
                Way(
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
                ways.append(Way(name="fastmcp", port=proxy[0], path="/mcp", tool="add", pids=pids))
            return {"vendor": vendor, "rounds": rounds(ways)}


def rounds(ways: Sequence[Way]) -> dict[str, dict[str, list[list[float]]]]:
    """Call in every way in turns, so that a busy moment of the machine affects all equally."""
    found: dict[str, dict[str, list[list[float]]]] = {
        str(many): {way.name: [] for way in ways} for many in CONNECTIONS
    }
    for turn in range(ROUNDS + 1):
        for many in CONNECTIONS:
            for way in ways:
                taken = called(way, many)
                if turn:  # the first one warms up
                    found[str(many)][way.name].append(taken)
    return found


def called(way: Way, connections: int) -> list[float]:
    """Call for a while over several connections. Return CPU ms per call, calls per second, and p50 and p95 in ms."""
    took: list[float] = []
    clients = [Client(way) for _ in range(connections)]
    before, begun = cpu(way.pids), time.perf_counter()
    threads = [threading.Thread(target=client.call_until, args=(begun + SECONDS, took)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed, spent = time.perf_counter() - begun, cpu(way.pids) - before
    took.sort()
    return [
        spent / len(took) * 1e3,
        len(took) / passed,
        statistics.median(took) * 1e3,
        took[int(len(took) * 0.95)] * 1e3,
    ]


class Client:
    """One connection of a client of 2025-11-25, after its handshake."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._connection = http.client.HTTPConnection("127.0.0.1", way.port, timeout=60)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        if way.token:
            self._headers["Authorization"] = f"Bearer {way.token}"
        about = {"name": "bench", "version": "1"}
        asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        _, headers = self._send({"id": 0, "method": "initialize", "params": asked})
        if session := headers.get("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        self._send({"method": "notifications/initialized"})

    def call_until(self, end: float, took: list[float]) -> None:
        """Call repeatedly."""
        number = 0
        while (begun := time.perf_counter()) < end:
            number += 1
            asked = {"name": self._way.tool, "arguments": {"one": number, "other": 1}}
            said, _ = self._send({"id": number, "method": "tools/call", "params": asked})
            if str(number + 1).encode() not in said or b'"isError":true' in said:
                raise SystemExit(f"an answer that was not expected: {said[:300]!r}")
            took.append(time.perf_counter() - begun)

    def _send(self, message: dict[str, Any]) -> tuple[bytes, Any]:
        body = json.dumps({"jsonrpc": "2.0", **message})
        self._connection.request("POST", self._way.path, body, self._headers)
        answer = self._connection.getresponse()
        return answer.read(), answer.headers


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


def report(found: dict[str, Any]) -> None:
    """Print the figures as a table, the overhead of Toolbelt, and which goals are met."""
    print(f"\ncalls of an upstream tool, {found['vendor']}, medians of {ROUNDS} rounds of {SECONDS:g} s")
    print(f"{'':28}{'CPU, ms':>10}{'calls/s':>10}{'p50, ms':>10}{'p95, ms':>10}")
    goals = []
    for many, ways in found["rounds"].items():
        middle = {
            name: [statistics.median(column) for column in zip(*taken, strict=True)]
            for name, taken in ways.items()
        }
        for name, figures in middle.items():
            cells = "".join(f"{figure:>10.2f}" for figure in figures)
            print(f"{f'{many} connection(s), {name}':28}{cells}")
        direct, through = middle["direct"], middle["toolbelt"]
        goals += [
            (through[0] - direct[0] <= CPU_MS, f"{many} connection(s): at most {CPU_MS:g} ms CPU on top"),
        ]
        if many == "1":
            goals.append(
                (through[2] - direct[2] <= TIME_MS, f"{many} connection: at most {TIME_MS:g} ms on top")
            )
        else:
            said = f"{many} connections: at least {THROUGHPUT:.0%} of direct throughput"
            goals.append((through[1] >= THROUGHPUT * direct[1], said))
    print("\ngoals")
    for met, said in goals:
        print(f"  {'met   ' if met else 'MISSED'} {said}")


if __name__ == "__main__":
    sys.exit(main())
