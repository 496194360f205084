"""Benchmark of what a process costs before it does its work: a command, and a server until it answers. (`make bench`)

Each runs in processes of its own, on an installation that `toolbelt init` created. CPU is the user and kernel time of
the process; the least of the runs is what others on the machine disturbed least.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS = 7
COMMANDS = ("mcp list", "surface coder", "belt export", "usage", "flip coder repository off")
BELT = {
    "toolkits": [{"key": "repository", "title": "Repository", "policy": "Look before you answer."}],
    "agents": [{"key": "coder", "title": "Coder", "tools_config": {"repository": True}}],
}

Seconds = dict[str, float]


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--installed", action="store_true", help="measure the package of this Python, not the checkout"
    )
    parser.add_argument(
        "--runs", type=int, default=RUNS, help=f"how often each is measured (default: {RUNS})"
    )
    options = parser.parse_args()
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    if not options.installed:
        environment["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory() as directory:
        environment["TOOLBELT_HOME"] = directory
        report(measure(directory, environment, options.runs))


def measure(directory: str, environment: dict[str, str], runs: int) -> dict[str, Seconds]:
    """Return the figures of the server and of each command, on a new installation in the directory."""

    def start(words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "toolbelt", *words.split()],
            cwd=directory,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run(words: str) -> None:
        if start(words).wait():
            sys.exit(f"bench_start: `toolbelt {words}` failed")

    def serve() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = start(f"serve --port {port}")
        while server.poll() is None and not _answers(port):
            time.sleep(0.02)
        if server.returncode is not None:
            sys.exit("bench_start: `toolbelt serve` has ended")
        server.kill()
        server.wait()

    run("init")
    (Path(directory) / "team.yaml").write_text(json.dumps(BELT))
    run("belt import team.yaml")
    figures = {"serve, until it answers": _figures(serve, runs)}
    for words in COMMANDS:
        figures[words] = _figures(lambda words=words: run(words), runs)  # type: ignore[misc]
    return figures


def report(figures: dict[str, Seconds]) -> None:
    """Print the figures as a table."""
    print(f"{'seconds':<28}{'CPU, least':>12}{'CPU, median':>14}{'until it ends':>16}")
    for name, measured in figures.items():
        print(f"{name:<28}{measured['least']:>12.2f}{measured['median']:>14.2f}{measured['wall']:>16.2f}")


def _figures(action: Callable[[], None], runs: int) -> Seconds:
    """Return the least and the median CPU seconds of the processes that an action starts, and the least wall time."""
    cpu, wall = [], []
    for _ in range(runs):
        before, started = _used(), time.perf_counter()
        action()
        wall.append(time.perf_counter() - started)
        cpu.append(_used() - before)
    return {"least": min(cpu), "median": statistics.median(cpu), "wall": min(wall)}


def _used() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


if __name__ == "__main__":
    main()
