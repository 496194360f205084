"""Tests that the tools of published servers return the same bytes through Toolbelt as without it."""

from __future__ import annotations

import collections
import contextlib
import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import comparing
import kit
import pytest
import servers
import wire

HERE = Path(__file__).resolve().parent
# Both sides use this directory, one after the other, so that its path is the same in their results.
WORK = Path(sys.prefix) / "work"
REPORT = Path(sys.prefix) / "report"
PAGE = HERE.parent.parent / "docs/how-to/check-interoperability.md"
COLUMNS = (comparing.EQUAL, comparing.REFUSED_BOTH_WAYS, comparing.REFUSED_BY_TOOLBELT, comparing.BY_DESIGN)
# The fields of a listed tool that are the same on both sides. Of the hints, only MCP's own are.
LISTED = ("title", "description", "inputSchema", "outputSchema", "icons", "_meta")
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

rows: dict[str, str] = {}


class Site(http.server.BaseHTTPRequestHandler):
    """A few pages with constant content."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        text, kind = {
            "/": ((HERE / "site.html").read_text(encoding="utf-8"), "text/html; charset=utf-8"),
            "/other.html": ("<!doctype html><title>Other</title><h1>Other</h1>", "text/html; charset=utf-8"),
            "/data.json": ('{"a": 1}', "application/json"),
        }.get(self.path, ("", ""))
        self.send_response_only(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@functools.cache
def site() -> str:
    """Serve the pages until the tests end; return their address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


SERVERS = {server.name: server for server in servers.servers(WORK, site())}


@contextlib.contextmanager
def working_directory(server: comparing.Server) -> Iterator[None]:
    """Create the directory that a server runs in, and remove it afterwards."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    comparing.prepare(server, WORK)
    for command in server.setup:
        subprocess.run(command, cwd=WORK, check=True, capture_output=True)
    try:
        yield
    finally:
        shutil.rmtree(WORK, ignore_errors=True)


def add_to_toolbelt(server: comparing.Server) -> wire.Through:
    """Let Toolbelt run a server, for a single agent; return that agent's connection, in a new session."""
    key = f"interop-{server.name}"
    variables = [part for name, value in server.env.items() for part in ("--env", f"{name}={value}")]
    options = ["--namespace", namespace(server), "--trust", "--cwd", str(WORK), "--timeout", "120"]
    kit.manage("mcp", "add", key, *options, *variables, "--command", *server.command)
    # The agent and its token are created over the HTTP API, because each command would take seconds.
    loadouts = [{"name": key, "plugins": [key]}]
    agents = [{"key": key, "title": server.name, "loadout": key}]
    kit.operator("PUT", "belt", {"loadouts": loadouts, "agents": agents})
    return wire.Through(key, kit.operator("POST", "tokens", {"agent": key})["text"])


def namespace(server: comparing.Server) -> str:
    return f"interop-{server.name}"


def list_tools(side: comparing.Side) -> dict[str, dict[str, Any]]:
    tools: dict[str, dict[str, Any]] = {}
    cursor: dict[str, str] = {}
    while True:
        page = side.request("tools/list", cursor)["result"]
        tools |= {tool["name"]: tool for tool in page["tools"]}
        if "nextCursor" not in page:
            return tools
        cursor = {"cursor": page["nextCursor"]}


@pytest.mark.parametrize("name", SERVERS)
def test_every_tool_returns_the_same_through_toolbelt(name: str) -> None:
    server = SERVERS[name]
    if name in ("playwright", "chrome-devtools") and not servers.browser():
        pytest.skip(f"needs a browser: one of {', '.join(servers.BROWSERS)}")
    with working_directory(server), wire.Direct(server.command, WORK, server.env) as side:
        tools = list_tools(side)
        direct = comparing.results(side, server, tools)
    prefix = f"{namespace(server)}__"
    with working_directory(server), add_to_toolbelt(server) as through:
        try:
            offered = {
                key.removeprefix(prefix): tool
                for key, tool in list_tools(through).items()
                if key.startswith(prefix)
            }
            results = comparing.results(through, server, tools, prefix=prefix)
        finally:
            kit.operator("PATCH", f"plugins/interop-{name}", {"changes": {"active": False}, "confirm": True})
    outcomes = comparing.compare(server, tools, direct, results, prefix)
    _report(name, outcomes)

    assert {call.tool for call in server.calls} == tools.keys() - server.unlisted.keys(), (
        "every tool must be called"
    )
    assert offered.keys() == tools.keys() - server.unlisted.keys()
    for tool in offered:
        assert _as_listed(offered[tool]) == _as_listed(tools[tool])
    different = [outcome for outcome in outcomes if outcome.verdict == comparing.DIFFERENT]
    assert not different, "\n".join(
        f"{outcome.tool} {outcome.variant} {json.dumps(outcome.arguments)[:200]}\n"
        f"  direct:  {outcome.direct[:900]}\n  through: {outcome.through[:900]}"
        for outcome in different
    )
    rows[name] = _row(server, len(tools), outcomes)


def test_the_documentation_contains_the_table_of_this_run() -> None:
    if rows.keys() < SERVERS.keys():
        pytest.skip("not all servers were compared")
    head = ["server", "version", "tools", "calls", *COLUMNS]
    table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *(rows[name] for name in SERVERS)]
    text = "\n".join(table)
    sys.stdout.write(f"\n{text}\n")
    (REPORT / "table.md").write_text(f"{text}\n", encoding="utf-8")
    assert text in PAGE.read_text(encoding="utf-8"), f"put {REPORT / 'table.md'} into {PAGE.name}"


def _row(server: comparing.Server, tools: int, outcomes: list[comparing.Outcome]) -> str:
    count = collections.Counter(outcome.verdict for outcome in outcomes)
    cells = [
        f"`{server.package}`",
        _version(server.package),
        tools,
        len(outcomes),
        *(count[c] for c in COLUMNS),
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def _version(package: str) -> str:
    file = HERE / "package.json"
    programs: Mapping[str, str] = json.loads(file.read_text(encoding="utf-8"))["dependencies"]
    return programs.get(package) or metadata.version(package)


def _as_listed(tool: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: tool[name] for name in LISTED if name in tool}
    # By design, Toolbelt trims texts.
    fields = _trimmed({"description": "", **fields})
    annotations = tool.get("annotations", {})
    fields["annotations"] = {name: annotations[name] for name in HINTS if name in annotations}
    # Older revisions have the title among the hints.
    fields.setdefault("title", annotations.get("title"))
    # Toolbelt adds the toolkits of a tool here.
    fields["_meta"] = {k: v for k, v in fields.get("_meta", {}).items() if not k.startswith("toolbelt/")}
    return fields


def _trimmed(value: Any) -> Any:
    match value:
        case dict():
            texts = {"title", "description"}
            return {
                k: v.strip() if k in texts and isinstance(v, str) else _trimmed(v) for k, v in value.items()
            }
        case list():
            return [_trimmed(item) for item in value]
    return value


def _report(name: str, outcomes: list[comparing.Outcome]) -> None:
    """Write a readable report of the outcome of each call."""
    REPORT.mkdir(exist_ok=True)
    lines = []
    for outcome in outcomes:
        lines.append(
            f"{outcome.verdict}: {outcome.tool} {outcome.variant} "
            f"{json.dumps(outcome.arguments, ensure_ascii=False)[:300]}"
        )
        if outcome.verdict != comparing.EQUAL or '"isError": true' in outcome.direct:
            lines += [f"    direct:  {outcome.direct[:2000]}", f"    through: {outcome.through[:2000]}"]
    text = re.sub(r"[\u202a-\u202e\u0000]", "?", "\n".join(lines))
    (REPORT / f"{name}.txt").write_text(f"{text}\n", encoding="utf-8")
