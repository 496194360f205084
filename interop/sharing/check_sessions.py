"""Checks that each session has its own state at published servers, whichever of two workers handles a call.

Toolbelt runs with two workers, and with three servers over stdio: a browser (Playwright), a list of thoughts
(sequential thinking) and a memory in a file. Sessions call them in turns, each call over a new TCP connection, so that
both workers handle calls of every session.
"""

from __future__ import annotations

import concurrent.futures
import http.server
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ["TOOLBELT_CHECKOUT"])

from scripts import interop

HERE = Path(__file__).resolve().parent
BIN = HERE / "node_modules" / ".bin"
SESSIONS = int(os.environ.get("SHARING_SESSIONS", "100"))
# A browser takes about 300 MB.
BROWSERS = int(os.environ.get("SHARING_BROWSERS", "16"))
CONCURRENCY = 8
CHROMIUM = shutil.which("chromium-headless-shell")
TOOLS = {
    "browser": ("browser_navigate", "browser_snapshot"),
    "thinking": ("sequentialthinking",),
    "graph": ("create_entities", "read_graph"),
}


class Client:
    """A client that calls tools as the agent, in sessions."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token

    def call(self, session: str, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool, and return the text of its result."""
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        request = urllib.request.Request(
            f"{self._address}/mcp/sharer/s/{session}",
            data=json.dumps(body).encode(),
            headers={
                "Accept": "application/json",
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                "Mcp-Protocol-Version": "2025-11-25",
            },
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            result = json.load(response)["result"]
        text = "\n".join(block.get("text", "") for block in result["content"])
        if result.get("isError"):
            raise AssertionError(f"{tool} in {session}: {text}")
        return text


class Page(http.server.BaseHTTPRequestHandler):
    """A page whose heading contains the name of a session."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<h1>Page of {self.path.strip('/')}.</h1>".encode())

    def log_message(self, *args: Any) -> None:
        pass


def main() -> int:
    if CHROMIUM is None:
        print("chromium-headless-shell is not installed.", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="sharing-") as scratch,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as pages,
        interop.serving(Path(scratch), workers=2, more={"TOOLBELT_UPSTREAM_CONNECTIONS": "300"}) as server,
    ):
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        add(server.environment, Path(scratch))
        client = Client(server.environment["TOOLBELT_ADDRESS"], token(server.environment))
        sessions = [f"s{number}" for number in range(SESSIONS)]
        check_thinking(client, sessions)
        workers = process_counts(server, "server-sequential-thinking")
        print(f"    processes of each worker: {' and '.join(map(str, workers))}", flush=True)
        assert len(workers) == 2
        check_memory(client, sessions[:10])
        check_browser(client, sessions[:BROWSERS], pages.server_port)
        pages.shutdown()
        server.stop()
        wait_until_gone(("server-sequential-thinking", "server-memory", "playwright", Path(scratch).name))
    print("    no process is left running", flush=True)
    return 0


def add(environment: interop.Environment, scratch: Path) -> None:
    """Add the servers, and create an agent with their tools."""
    browser = ["--headless", "--isolated", "--no-sandbox", "--executable-path", str(CHROMIUM)]
    commands = {
        "browser": ["--command", str(BIN / "playwright-mcp"), *browser],
        "thinking": ["--command", str(BIN / "mcp-server-sequential-thinking")],
        "graph": [
            f"--env=MEMORY_FILE_PATH={scratch / 'memory.jsonl'}",
            "--command",
            str(BIN / "mcp-server-memory"),
        ],
    }
    for name, command in commands.items():
        # The browser server writes files into its working directory.
        options = ["--trust", f"--cwd={scratch}", f"--max-connections={SESSIONS}", "--timeout=120"]
        manage(environment, "mcp", "add", name, *options, *command)
    tools = [f"{name}__{tool}" for name, names in TOOLS.items() for tool in names]
    belt = scratch / "sharer.json"
    belt.write_text(json.dumps({"agents": [{"key": "sharer", "tools": tools}]}))
    manage(environment, "belt", "import", str(belt))


def token(environment: interop.Environment) -> str:
    return manage(environment, "token", "issue", "--agent", "sharer")


def manage(environment: interop.Environment, *arguments: str) -> str:
    """Run a command on the server's database, and return the last line of its output."""
    variables = {
        **os.environ,
        "DATABASE_URL": environment["TOOLBELT_DATABASE_URL"],
        "TOOLBELT_ENV": "development",
        "TOOLBELT_ENV_FILE": os.devnull,
    }
    command = [sys.executable, str(interop.HERE / "manage.py"), *arguments]
    return interop._run_setup(command, cwd=interop.HERE, env=variables).strip().rpartition("\n")[2]


def check_thinking(client: Client, sessions: list[str]) -> None:
    """Check that the server counts the thoughts of each session separately, which it does for each connection."""
    started = time.monotonic()
    for turn in range(1, 5):
        # Sessions have one to four thoughts.
        thinking = [session for number, session in enumerate(sessions) if number % 4 + 1 >= turn]

        def think(session: str, turn: int = turn) -> int:
            thought = {
                "thought": session,
                "thoughtNumber": turn,
                "totalThoughts": 4,
                "nextThoughtNeeded": True,
            }
            return int(
                json.loads(client.call(session, "thinking__sequentialthinking", thought))[
                    "thoughtHistoryLength"
                ]
            )

        assert {*run_concurrently(think, thinking)} == {turn}, turn
    print(
        f"    sequential thinking: {len(sessions)} sessions in {time.monotonic() - started:.0f} s", flush=True
    )


def check_memory(client: Client, sessions: list[str]) -> None:
    """Check that the processes share their file: separate connections do not separate state outside of them."""
    for session in sessions:
        entity = {"name": f"of {session}", "entityType": "note", "observations": ["mine"]}
        client.call(session, "graph__create_entities", {"entities": [entity]})
    graph = client.call(sessions[0], "graph__read_graph", {})
    assert all(f"of {session}" in graph for session in sessions), graph
    print(f"    memory: {len(sessions)} sessions, each with its process, read one file", flush=True)


def check_browser(client: Client, sessions: list[str], port: int) -> None:
    """Check that each session finds the page that it has opened, and no other."""
    started = time.monotonic()
    run_concurrently(
        lambda session: client.call(
            session, "browser__browser_navigate", {"url": f"http://127.0.0.1:{port}/{session}"}
        ),
        sessions,
    )
    for _ in range(3):
        snapshots = run_concurrently(
            lambda session: client.call(session, "browser__browser_snapshot", {}), sessions
        )
        pages = [re.findall(r"Page of (\w+)\.", text) for text in snapshots]
        assert [{*page} for page in pages] == [{session} for session in sessions], pages
    print(f"    browsers: {len(sessions)} sessions in {time.monotonic() - started:.0f} s", flush=True)


def run_concurrently(action: Any, sessions: Iterable[str]) -> list[Any]:
    with concurrent.futures.ThreadPoolExecutor(CONCURRENCY) as pool:
        return [*pool.map(action, sessions)]


def process_counts(server: interop.Server, command: str) -> list[int]:
    """Return the number of processes of a command that each worker has started."""
    counts: Counter[int] = Counter()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_text(errors="replace")
            parent = int(re.search(r"\nPPid:\s+(\d+)", (process / "status").read_text())[1])  # type: ignore[index]
        except (OSError, TypeError):
            continue
        if command in line and parent in server.processes():
            counts[parent] += 1
    return [*counts.values()]


def wait_until_gone(names: tuple[str, ...]) -> None:
    """Wait until no process of these checks is left."""
    directory = str(HERE)
    for _ in range(300):
        left = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_text(errors="replace")
            except OSError:
                continue
            if directory in line and any(name in line for name in names) and int(process.name) != os.getpid():
                left.append(line.replace("\0", " "))
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"left running: {left}")


if __name__ == "__main__":
    sys.exit(main())
