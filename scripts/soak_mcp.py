"""Check that open streams are cheap, and that every flip reaches exactly the affected clients.

``python -m scripts.soak_mcp`` runs a server as in production, with one worker process and with two. First, many clients
keep a stream open without changes. Then an operator flips a switch a thousand times, while clients of that agent and of
another agent listen. A plain HTTP reader counts their messages, because a client library might hide or repeat some.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time
import urllib.parse
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts import interop

HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
CHANGED = "notifications/tools/list_changed"
AGENT, OTHER = "TOOLBELT", "TOOLBELT_OTHER"
SWITCH = "arithmetic"
# A message that takes longer counts as missed.
TIMEOUT = 10.0
# How long to wait for unexpected messages before they are counted.
QUIET_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class Stream:
    """An open stream, with the times of its notifications on the clock of ``time.perf_counter``."""

    notified: list[float] = field(default_factory=list)
    ended: bool = False
    _waiting: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)
    _writer: asyncio.StreamWriter | None = None
    _reading: asyncio.Task[None] | None = None

    async def open(self, address: str, agent: str, token: str, modern: bool) -> None:
        """Subscribe to the changes of an agent's list. The subscription exists when this returns."""
        url = urllib.parse.urlsplit(address)
        reader, self._writer = await asyncio.open_connection(url.hostname, url.port)
        head = {
            "Host": url.netloc,
            "Authorization": f"Bearer {token}",
            "Accept": "text/event-stream" + (", application/json" if modern else ""),
            "MCP-Protocol-Version": MODERN if modern else HANDSHAKE,
        }
        body = b""
        if modern:
            meta = {
                "protocolVersion": MODERN,
                "clientCapabilities": {},
                "clientInfo": {"name": "soak", "version": "1"},
            }
            params = {
                "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()},
                "notifications": {"toolsListChanged": True},
            }
            request = {"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen", "params": params}
            body = json.dumps(request).encode()
            head |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
            head["Mcp-Method"] = "subscriptions/listen"
        lines = [
            f"{'POST' if modern else 'GET'} /mcp/{agent} HTTP/1.1",
            *(f"{k}: {v}" for k, v in head.items()),
        ]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        status = (await reader.readuntil(b"\r\n\r\n")).decode()
        if " 200 " not in status.partition("\r\n")[0] or "text/event-stream" not in status:
            raise SystemExit(f"A stream was not opened:\n{status}{(await reader.read(2000)).decode()}")
        messages = _messages(reader)
        if modern:
            first = await anext(messages)
            if first["method"] != "notifications/subscriptions/acknowledged":
                raise SystemExit(f"The first message of a stream is {first}.")
        self._reading = asyncio.create_task(self._read(messages))

    async def wait_for(self, count: int) -> None:
        """Wait for this many notifications."""
        if len(self.notified) < count:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((count, future))
            await future

    async def close(self) -> None:
        """Close the connection, like a client that disconnects."""
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _read(self, messages: AsyncIterator[Any]) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            async for message in messages:
                if message.get("method") == CHANGED:
                    self.notified.append(time.perf_counter())
                    for count, future in self._waiting:
                        if len(self.notified) >= count and not future.done():
                            future.set_result(None)
        self.ended = True


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[Any]:
    """Yield the messages of an event stream that arrives in chunks, until it ends."""
    text = b""
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        text += (await reader.readexactly(size + 2))[:-2]
        while b"\n\n" in (text := text.replace(b"\r\n", b"\n")):
            event, _, text = text.partition(b"\n\n")
            data = b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
            if data:
                yield json.loads(data)


class Operator:
    """Flips of an agent's switch over HTTP, each on a new connection, so that any worker may handle it."""

    def __init__(self, environment: interop.Environment) -> None:
        self._environment = environment
        self._on = True

    async def flip(self) -> float:
        """Flip the switch, and return the time of the response."""
        self._on = not self._on
        url = urllib.parse.urlsplit(self._environment["TOOLBELT_ADDRESS"])
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        body = json.dumps({"on": self._on, "confirm": True}).encode()
        path = f"/api/v1/agents/{self._environment[f'{AGENT}_AGENT']}/switches/{SWITCH}"
        writer.write(
            f"PUT {path} HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: close\r\n"
            f"Authorization: Bearer {self._environment['TOOLBELT_OPERATOR_TOKEN']}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        status = await reader.readuntil(b"\r\n")
        response_time = time.perf_counter()
        rest = await reader.read()
        writer.close()
        if b" 200 " not in status:
            raise SystemExit(f"A flip was refused: {status!r} {rest[-2000:]!r}")
        return response_time


async def open_streams(environment: interop.Environment, which: str, count: int) -> list[Stream]:
    """Open this many streams of an agent, every second one in the newer era of the protocol."""
    streams = [Stream() for _ in range(count)]
    for number, stream in enumerate(streams):
        await stream.open(
            environment["TOOLBELT_ADDRESS"],
            environment[f"{which}_AGENT"],
            environment[f"{which}_TOKEN"],
            modern=bool(number % 2),
        )
    return streams


async def idle(server: interop.Server, count: int, seconds: float) -> dict[str, Any]:
    """Keep streams open without changes. Return their cost for the server."""
    warm = await open_streams(server.environment, AGENT, 2)
    await asyncio.sleep(1)
    before = _memory(server)
    streams = await open_streams(server.environment, AGENT, count)
    await asyncio.sleep(1)
    started, cpu_seconds = time.perf_counter(), _cpu(server)
    await asyncio.sleep(seconds)
    cpu_seconds, elapsed = _cpu(server) - cpu_seconds, time.perf_counter() - started
    after = _memory(server)
    wake_seconds = time.perf_counter()
    await Operator(server.environment).flip()
    await asyncio.wait_for(asyncio.gather(*(stream.wait_for(1) for stream in streams)), TIMEOUT)
    wake_seconds = time.perf_counter() - wake_seconds
    stop_seconds = time.perf_counter()
    await asyncio.to_thread(server.stop)
    stop_seconds = time.perf_counter() - stop_seconds
    spurious = sum(len(stream.notified) - 1 for stream in streams)
    for stream in (*warm, *streams):
        await stream.close()
    return {
        "streams": count,
        "memory of a stream, KiB": round((after - before) / count / 1024, 1),
        "CPU while idle, % of a core": round(100 * cpu_seconds / elapsed, 2),
        "one flip reaches all, ms": round(1000 * wake_seconds),
        "shutdown with all of them open, s": round(stop_seconds, 2),
        "spurious": spurious,
    }


async def flips(server: interop.Server, count: int, clients: int) -> dict[str, Any]:
    """Flip one by one, and then as fast as possible. Count the notifications of this and another agent's clients."""
    own, others = (
        await open_streams(server.environment, AGENT, clients),
        await open_streams(server.environment, OTHER, clients),
    )
    connections = _connections(server)
    if not all(connections):
        raise SystemExit(f"One worker has all streams ({connections}): try again, or with more clients.")
    operator, delays = Operator(server.environment), []
    for number in range(1, count + 1):
        response_time = await operator.flip()
        try:
            await asyncio.wait_for(asyncio.gather(*(stream.wait_for(number) for stream in own)), TIMEOUT)
        except TimeoutError:
            missed = sum(len(stream.notified) < number for stream in own)
            raise SystemExit(
                f"{missed} of {clients} clients were not notified of flip {number} of {count}."
            ) from None
        # Clients may be notified before the response is sent, which counts as 0.
        delays += [max(0.0, stream.notified[-1] - response_time) for stream in own]
    await asyncio.sleep(QUIET_SECONDS)
    spurious = sum(len(stream.notified) - count for stream in own)
    results = {
        "flips, one by one": count,
        "clients of the agent": clients,
        "streams of each worker": connections,
        "missed": 0,
        "notifications without a flip": spurious,
        "notifications of another agent's clients": sum(len(stream.notified) for stream in others),
        "flip to notification, ms, p50": round(1000 * statistics.median(delays), 1),
        "p95": round(1000 * statistics.quantiles(delays, n=20)[-1], 1),
        "maximum": round(1000 * max(delays), 1),
    }
    # Several flips may now cause a single message, but clients must learn the last state. There are two states, and a
    # message means the other one. So the number of messages of a client that has learned the last state is even if the
    # number of flips is, and otherwise odd.
    for _ in range(count):
        await operator.flip()
    await asyncio.sleep(QUIET_SECONDS)
    late = sum((len(stream.notified) - count) % 2 != count % 2 for stream in own)
    results |= {
        "flips, as fast as possible": count,
        "messages for them, per client": round(statistics.mean(len(s.notified) for s in own) - count),
        "clients that missed the last state": late,
        "notifications of another agent's clients, in total": sum(len(stream.notified) for stream in others),
    }
    ended = sum(stream.ended for stream in (*own, *others))
    for stream in (*own, *others):
        await stream.close()
    if ended or spurious or late or any(stream.notified for stream in others):
        raise SystemExit(f"The check failed ({ended} streams ended): {json.dumps(results, indent=2)}")
    return results


def _connections(server: interop.Server) -> list[int]:
    """Count the connections of clients that each of the server's processes has open."""
    port = urllib.parse.urlsplit(server.environment["TOOLBELT_ADDRESS"]).port
    lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()]
    open_ = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "01"}
    return [
        sum(os.readlink(file) in open_ for file in Path(f"/proc/{process}/fd").iterdir())
        for process in server.processes()
    ]


def _memory(server: interop.Server) -> int:
    """Return the resident memory of the server's processes, in bytes."""
    return sum(_status(process, "VmRSS:") * 1024 for process in server.processes())


def _status(process: int, name: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def _cpu(server: interop.Server) -> float:
    """Return the CPU seconds that the server's processes have used so far."""
    ticks = 0
    for process in server.processes():
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the results. Exit with 1 if a message was missed or reached the wrong client."""
    parser = argparse.ArgumentParser(prog="python -m scripts.soak_mcp", description=__doc__)
    parser.add_argument(
        "--streams", type=int, default=500, help="how many streams are open at the same time (500)"
    )
    parser.add_argument("--seconds", type=float, default=20, help="how long they are idle (20)")
    parser.add_argument("--flips", type=int, default=1000, help="how often the switch is flipped (1000)")
    parser.add_argument(
        "--clients", type=int, default=8, help="how many clients listen to each of the two agents (8)"
    )
    parser.add_argument("--only", choices=("idle", "one", "two"), help="run only this measurement")
    parser.add_argument(
        "--database", default="", help="an empty database, as DATABASE_URL, for --only (SQLite)"
    )
    options = parser.parse_args(arguments)
    if options.database and not options.only:
        parser.error("each measurement needs an empty database: select one with --only.")
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(maximum, 65_536), maximum))
    settings = {"TOOLBELT_API_PER_MINUTE": "0", "TOOLBELT_IDENTICAL_CALLS": "0"}
    if options.database:
        settings["DATABASE_URL"] = options.database
    try:
        measure(options, settings)
    except interop.Failed as failed:
        raise SystemExit(str(failed)) from failed
    return 0


def measure(options: argparse.Namespace, settings: interop.Environment) -> None:
    """Run the selected measurements, each on its own server and database, and print them."""
    for name, workers in (("idle", 1), ("one", 1), ("two", 2)):
        if options.only not in (None, name):
            continue
        with (
            tempfile.TemporaryDirectory(prefix="toolbelt-soak-") as scratch,
            interop.serving(Path(scratch), workers=workers, more=settings) as server,
        ):
            if name == "idle":
                results = asyncio.run(idle(server, options.streams, options.seconds))
            else:
                results = asyncio.run(flips(server, options.flips, options.clients))
        print(json.dumps({"workers": workers, **results}, indent=2), flush=True)


if __name__ == "__main__":
    sys.exit(main())
