"""Benchmark of MCP: the cost of a list, and how soon a flip reaches clients. (`make bench`)

It uses the same server as `scripts.bench_http`, beside a bare Starlette application that returns the same bytes. Flips
are made by another process, as by another worker. They are timed from their start until the list has changed, and until
the notification arrives.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scripts import bench, bench_http

SIZES = (100, 1_000)
CONNECTIONS = (1, 8)
FLIPS = 60
PATH = "/mcp/ada"
VERSIONS = ("2025-11-25", "2026-07-28")
# Against the bare application's CPU.
GOAL = 2.0
# From a flip until the notification, p95 in ms, across processes.
GOAL_MS = 300.0


def main() -> int:
    """Measure every size, print the table, and list the missed goals."""
    progress = "listing {size:,} tools for MCP clients"
    return bench.run("scripts.bench_mcp", __doc__, measure, report, progress, SIZES)


def measure(size: int) -> dict[str, Any]:
    """Fill a database with ``size`` tools, grant all to one agent, and list them."""
    with bench.filled(size) as connection, tempfile.TemporaryDirectory() as scratch:
        from toolbelt.control import writing
        from toolbelt.control.access import switches
        from toolbelt.control.people import tokens

        write = writing.by("bench", via="command")
        for number in range(size // 10):
            switches.flip(write.replace(confirm=True), "ada", f"toolkit{number}", True)
        token = tokens.issue(write, agent="ada").text
        address, vendor = bench.address(connection), connection.vendor
        connection.close()
        with bench_http.serving("toolbelt", scratch, database=address) as toolbelt:
            flips = _flips(toolbelt, token, write)
            requests_by_version = {version: prepare_requests(token, version) for version in VERSIONS}
            rounds: dict[str, Any] = {}
            length = 0
            for version, requests in requests_by_version.items():
                length = store_response(toolbelt, requests[0], Path(scratch))
                with bench_http.serving("bare_mcp", scratch) as bare:
                    for many in CONNECTIONS:
                        ports = {"toolbelt": toolbelt, "bare": bare}
                        rounds[f"{version}, {many}"] = _rounds(ports, requests, many)
    return {"size": size, "vendor": vendor, "rounds": rounds, "bytes": length, "flips": flips}


def prepare_requests(token: str, version: str) -> list[bytes]:
    """Return requests for the first page, each with its own id."""
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAuthorization: Bearer {token}\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        f"MCP-Protocol-Version: {version}\r\n"
    )
    params: dict[str, Any] = {}
    if version == VERSIONS[1]:
        head += "Mcp-Method: tools/list\r\n"
        prefix = "io.modelcontextprotocol/"
        client = {"name": "bench", "version": "1"}
        params["_meta"] = {
            f"{prefix}protocolVersion": version,
            f"{prefix}clientInfo": client,
            f"{prefix}clientCapabilities": {},
        }
    requests = []
    for number in range(bench_http.REQUESTS):
        message = {"jsonrpc": "2.0", "id": 1000 + number, "method": "tools/list", "params": params}
        body = json.dumps(message)
        requests.append(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return requests


def store_response(port: int, request: bytes, directory: Path) -> int:
    """Store a response for the bare application, with its headers. Return its length."""
    bench_http.length(port, request)
    response_head, _, body = bench_http.once(port, request).partition(b"\r\n\r\n")
    pairs = [line.split(": ", 1) for line in response_head.decode().split("\r\n")[1:]]
    headers = {name: value for name, value in pairs if name not in bench_http.SERVER_HEADERS}
    (directory / "POST").write_bytes(body)
    (directory / "POST.headers").write_text(json.dumps(headers))
    return len(body)


def _rounds(ports: dict[str, int], requests: list[bytes], connections: int) -> dict[str, list[list[float]]]:
    """Send requests in turns, so that a busy moment of the machine affects both equally."""
    figures: dict[str, list[list[float]]] = {name: [] for name in ports}
    lengths = {name: bench_http.length(port, requests[0]) for name, port in ports.items()}
    for turn in range(bench_http.ROUNDS + 1):
        for name, port in ports.items():
            measured = bench_http.measure_load(port, requests, lengths[name], connections)
            if turn:  # the first one warms up
                figures[name].append([measured.cpu, measured.rate, measured.p50, measured.p95])
    return figures


def _flips(port: int, token: str, write: Any) -> dict[str, list[float]]:
    """Flip a toolkit off and on. Return the ms until the list has changed, and until the client is notified."""
    from toolbelt.control.access import switches

    request = prepare_requests(token, VERSIONS[0])[0]
    bench_http.once(port, request)
    stream = socket.create_connection(("127.0.0.1", port))
    stream.sendall(
        f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Accept: text/event-stream\r\nMCP-Protocol-Version: {VERSIONS[0]}\r\n\r\n".encode()
    )
    time.sleep(0.5)
    stream.recv(1 << 16)
    times: dict[str, list[float]] = {"listed": [], "notified": []}
    for number in range(FLIPS):
        on = bool(number % 2)
        started = time.perf_counter()
        switches.flip(write.replace(confirm=True), "ada", "toolkit0", on)
        while (b'"ns0__tool0"' in bench_http.once(port, request)) != on:
            pass
        times["listed"].append((time.perf_counter() - started) * 1e3)
        while b"list_changed" not in stream.recv(1 << 16):
            pass
        time.sleep(0.05)
        # Timed separately, so that listing at the same time does not slow it down.
        started = time.perf_counter()
        switches.flip(write.replace(confirm=True), "ada", "toolkit1", on)
        while b"list_changed" not in stream.recv(1 << 16):
            pass
        times["notified"].append((time.perf_counter() - started) * 1e3)
    stream.close()
    return times


def report(figures: list[dict[str, Any]]) -> None:
    """Print the figures and ratios as a table, and which goals are met."""
    print(f"\ntools/list for MCP clients, {figures[0]['vendor']}, medians of {bench_http.ROUNDS} rounds")
    print(f"{'':46}" + "".join(f"{entry['size']:>14,} tools" for entry in figures))
    print(f"{'bytes of the first page':46}" + "".join(f"{entry['bytes']:>20,}" for entry in figures))
    for kind in figures[0]["rounds"]:
        print(f"{kind} connection(s)")
        bench_http.report_rounds(figures, kind)
    for label, key in (("changed list", "listed"), ("notification", "notified")):
        for share in (50, 95):
            cells = [_percentile(entry["flips"][key], share) for entry in figures]
            print(f"{f'flip → {label}, p{share}, ms':46}" + "".join(f"{cell:>20.1f}" for cell in cells))
    print("\ngoals")
    for entry in figures:
        for kind in entry["rounds"]:
            met = "met   " if bench_http.ratio(entry, kind) <= GOAL else "MISSED"
            print(f"  {met} {entry['size']:,} tools, {kind} connection(s): at most {GOAL:g} × the bare CPU")
        met = "met   " if _percentile(entry["flips"]["notified"], 95) <= GOAL_MS else "MISSED"
        print(
            f"  {met} {entry['size']:,} tools, flip → notification across processes: p95 within {GOAL_MS:g} ms"
        )


def _percentile(times: list[float], share: int) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * share // 100)]


if __name__ == "__main__":
    sys.exit(main())
