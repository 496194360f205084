"""Checks that each session has its own state at published servers, whichever of two workers is asked.

A server of its own with two workers, and three servers over stdio behind it: a browser (Playwright), a list of thoughts
(sequential thinking) and a memory that is a file. Sessions call them in turns, each call over a TCP connection of its
own, so that both workers are asked for every session.
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
AT_ONCE = 8
CHROMIUM = shutil.which("chromium-headless-shell")
TOOLS = {
    "browser": ("browser_navigate", "browser_snapshot"),
    "thinking": ("sequentialthinking",),
    "graph": ("create_entities", "read_graph"),
}


class Client:
    """Calls tools as the agent, in sessions."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token

    def call(self, session: str, tool: str, arguments: dict[str, Any]) -> str:
        """Return the text that a tool answers."""
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
        with urllib.request.urlopen(request, timeout=120) as answer:
            result = json.load(answer)["result"]
        text = "\n".join(block.get("text", "") for block in result["content"])
        if result.get("isError"):
            raise AssertionError(f"{tool} in {session}: {text}")
        return text


class Page(http.server.BaseHTTPRequestHandler):
    """A page whose heading says which session it is for."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<h1>Page of {self.path.strip('/')}.</h1>".encode())

    def log_message(self, *args: Any) -> None:
        pass


def main() -> int:
    if CHROMIUM is None:
        print("There is no chromium-headless-shell here.", file=sys.stderr)
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
        prove_thinking(client, sessions)
        workers = held_by(server, "server-sequential-thinking")
        print(f"    held by two workers: {' and '.join(map(str, workers))} processes", flush=True)
        assert len(workers) == 2
        prove_memory(client, sessions[:10])
        prove_browser(client, sessions[:BROWSERS], pages.server_port)
        pages.shutdown()
        server.stop()
        until_gone(("server-sequential-thinking", "server-memory", "playwright", Path(scratch).name))
    print("    nothing is left running", flush=True)
    return 0


def add(environment: interop.Environment, scratch: Path) -> None:
    """Add the servers, and give their tools to an agent."""
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
        # The browser writes what it has seen into its directory.
        options = ["--trust", f"--cwd={scratch}", f"--max-connections={SESSIONS}", "--timeout=120"]
        manage(environment, "mcp", "add", name, *options, *command)
    tools = [f"{name}__{tool}" for name, own in TOOLS.items() for tool in own]
    belt = scratch / "sharer.json"
    belt.write_text(json.dumps({"agents": [{"key": "sharer", "tools": tools}]}))
    manage(environment, "belt", "import", str(belt))


def token(environment: interop.Environment) -> str:
    return manage(environment, "token", "issue", "--agent", "sharer")


def manage(environment: interop.Environment, *said: str) -> str:
    """Run a command on the server's database, and return the last line of what it says."""
    around = {
        **os.environ,
        "DATABASE_URL": environment["TOOLBELT_DATABASE_URL"],
        "TOOLBELT_ENV": "development",
        "TOOLBELT_ENV_FILE": os.devnull,
    }
    command = [sys.executable, str(interop.HERE / "manage.py"), *said]
    return interop._do(command, cwd=interop.HERE, env=around).strip().rpartition("\n")[2]


def prove_thinking(client: Client, sessions: list[str]) -> None:
    """Let each session have another number of thoughts, in turns; the server counts them for each connection."""
    begun = time.monotonic()
    for turn in range(1, 5):
        # The sessions go on thinking for one to four turns.
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

        assert {*side_by_side(think, thinking)} == {turn}, turn
    print(
        f"    sequential thinking: {len(sessions)} sessions in {time.monotonic() - begun:.0f} s", flush=True
    )


def prove_memory(client: Client, sessions: list[str]) -> None:
    """Show that a file is shared by the processes that write to it: connections do not part what is not in them."""
    for session in sessions:
        entity = {"name": f"of {session}", "entityType": "note", "observations": ["mine"]}
        client.call(session, "graph__create_entities", {"entities": [entity]})
    graph = client.call(sessions[0], "graph__read_graph", {})
    assert all(f"of {session}" in graph for session in sessions), graph
    print(f"    memory: {len(sessions)} sessions, each with its process, read one file", flush=True)


def prove_browser(client: Client, sessions: list[str], port: int) -> None:
    """Let each session open a page of its own, and find that page, and no other, in turns."""
    begun = time.monotonic()
    side_by_side(
        lambda session: client.call(
            session, "browser__browser_navigate", {"url": f"http://127.0.0.1:{port}/{session}"}
        ),
        sessions,
    )
    for _ in range(3):
        found = side_by_side(lambda session: client.call(session, "browser__browser_snapshot", {}), sessions)
        pages = [re.findall(r"Page of (\w+)\.", text) for text in found]
        assert [{*page} for page in pages] == [{session} for session in sessions], pages
    print(f"    browsers: {len(sessions)} sessions in {time.monotonic() - begun:.0f} s", flush=True)


def side_by_side(act: Any, sessions: Iterable[str]) -> list[Any]:
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return [*pool.map(act, sessions)]


def held_by(server: interop.Server, named: str) -> list[int]:
    """Return how many processes of a command each worker has started."""
    counted: Counter[int] = Counter()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_text(errors="replace")
            parent = int(re.search(r"\nPPid:\s+(\d+)", (process / "status").read_text())[1])  # type: ignore[index]
        except (OSError, TypeError):
            continue
        if named in line and parent in server.processes():
            counted[parent] += 1
    return [*counted.values()]


def until_gone(named: tuple[str, ...]) -> None:
    """Wait until no process of this proof is left."""
    own = str(HERE)
    for _ in range(300):
        left = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_text(errors="replace")
            except OSError:
                continue
            if own in line and any(name in line for name in named) and int(process.name) != os.getpid():
                left.append(line.replace("\0", " "))
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"left running: {left}")


if __name__ == "__main__":
    sys.exit(main())
