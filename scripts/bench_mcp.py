"""Benchmark of MCP: the cost of a list, and how soon a flip reaches clients. (`make bench`)

With the same server as in `scripts.bench_http`, beside a bare Starlette application that returns the same bytes. Flips
are made by another process, as by another worker. They are timed from their start until the tool is gone from the list,
and until the notification arrives.
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
SOON = 300.0


def main() -> int:
    """Measure every size, print the table, and list the missed goals."""
    doing = "listing {size:,} tools for MCP clients"
    return bench.run("scripts.bench_mcp", __doc__, measure, report, doing, SIZES)


def measure(size: int) -> dict[str, Any]:
    """Fill a database with ``size`` tools, all of them one agent's, and list them."""
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
            asked = {version: prepared(token, version) for version in VERSIONS}
            rounds: dict[str, Any] = {}
            kept = 0
            for version, requests in asked.items():
                kept = keep(toolbelt, requests[0], Path(scratch))
                with bench_http.serving("bare_mcp", scratch) as bare:
                    for many in CONNECTIONS:
                        ports = {"toolbelt": toolbelt, "bare": bare}
                        rounds[f"{version}, {many}"] = _rounds(ports, requests, many)
    return {"size": size, "vendor": vendor, "rounds": rounds, "bytes": kept, "flips": flips}


def prepared(token: str, version: str) -> list[bytes]:
    """Write requests for the first page, each with its own id."""
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAuthorization: Bearer {token}\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        f"MCP-Protocol-Version: {version}\r\n"
    )
    params: dict[str, Any] = {}
    if version == VERSIONS[1]:
        head += "Mcp-Method: tools/list\r\n"
        about = "io.modelcontextprotocol/"
        client = {"name": "bench", "version": "1"}
        params["_meta"] = {
            f"{about}protocolVersion": version,
            f"{about}clientInfo": client,
            f"{about}clientCapabilities": {},
        }
    made = []
    for number in range(bench_http.REQUESTS):
        said = {"jsonrpc": "2.0", "id": 1000 + number, "method": "tools/list", "params": params}
        body = json.dumps(said)
        made.append(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return made


def keep(port: int, request: bytes, where: Path) -> int:
    """Store a response for the bare application, with its headers. Return its length."""
    bench_http.length(port, request)
    response_head, _, answer = bench_http.once(port, request).partition(b"\r\n\r\n")
    pairs = [line.split(": ", 1) for line in response_head.decode().split("\r\n")[1:]]
    headers = {name: value for name, value in pairs if name not in bench_http.SERVER_S_OWN}
    (where / "POST").write_bytes(answer)
    (where / "POST.headers").write_text(json.dumps(headers))
    return len(answer)


def _rounds(ports: dict[str, int], requests: list[bytes], connections: int) -> dict[str, list[list[float]]]:
    """Send requests in turns, so that a busy moment of the machine affects both equally."""
    found: dict[str, list[list[float]]] = {name: [] for name in ports}
    lengths = {name: bench_http.length(port, requests[0]) for name, port in ports.items()}
    for turn in range(bench_http.ROUNDS + 1):
        for name, port in ports.items():
            taken = bench_http.asked(port, requests, lengths[name], connections)
            if turn:  # the first one warms up
                found[name].append([taken.cpu, taken.rate, taken.p50, taken.p95])
    return found


def _flips(port: int, token: str, write: Any) -> dict[str, list[float]]:
    """Flip a toolkit off and on. Return the ms until the list shows it, and until the client is notified."""
    from toolbelt.control.access import switches

    request = prepared(token, VERSIONS[0])[0]
    bench_http.once(port, request)
    stream = socket.create_connection(("127.0.0.1", port))
    stream.sendall(
        f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Accept: text/event-stream\r\nMCP-Protocol-Version: {VERSIONS[0]}\r\n\r\n".encode()
    )
    time.sleep(0.5)
    stream.recv(1 << 16)
    found: dict[str, list[float]] = {"gone": [], "told": []}
    for number in range(FLIPS):
        on = bool(number % 2)
        begun = time.perf_counter()
        switches.flip(write.replace(confirm=True), "ada", "toolkit0", on)
        while (b'"ns0__tool0"' in bench_http.once(port, request)) != on:
            pass
        found["gone"].append((time.perf_counter() - begun) * 1e3)
        while b"list_changed" not in stream.recv(1 << 16):
            pass
        time.sleep(0.05)
        # Timed alone, so that asking meanwhile does not make it slower.
        begun = time.perf_counter()
        switches.flip(write.replace(confirm=True), "ada", "toolkit1", on)
        while b"list_changed" not in stream.recv(1 << 16):
            pass
        found["told"].append((time.perf_counter() - begun) * 1e3)
    stream.close()
    return found


def report(found: list[dict[str, Any]]) -> None:
    """Print the figures and ratios as a table, and which goals are met."""
    print(f"\ntools/list for MCP clients, {found[0]['vendor']}, medians of {bench_http.ROUNDS} rounds")
    print(f"{'':46}" + "".join(f"{one['size']:>14,} tools" for one in found))
    print(f"{'bytes of the first page':46}" + "".join(f"{one['bytes']:>20,}" for one in found))
    for kind in found[0]["rounds"]:
        print(f"{kind} connection(s)")
        bench_http.report_rounds(found, kind)
    for said, what in (("gone from the list", "gone"), ("notification", "told")):
        for share in (50, 95):
            cells = [_share(one["flips"][what], share) for one in found]
            print(f"{f'flip → {said}, p{share}, ms':46}" + "".join(f"{cell:>20.1f}" for cell in cells))
    print("\ngoals")
    for one in found:
        for kind in one["rounds"]:
            met = "met   " if bench_http.ratio(one, kind) <= GOAL else "MISSED"
            print(f"  {met} {one['size']:,} tools, {kind} connection(s): at most {GOAL:g} × the bare CPU")
        met = "met   " if _share(one["flips"]["told"], 95) <= SOON else "MISSED"
        print(f"  {met} {one['size']:,} tools, flip → notification across processes: p95 within {SOON:g} ms")


def _share(taken: list[float], share: int) -> float:
    return sorted(taken)[min(len(taken) - 1, len(taken) * share // 100)]


if __name__ == "__main__":
    sys.exit(main())
