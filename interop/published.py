"""Published servers, compared: every tool, prompt, resource and screen, directly and through Toolbelt.

A part defines its servers in the directory :data:`WORK`, and calls :func:`compare` for each.
"""

from __future__ import annotations

import collections
import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import comparing
import kit
import wire

# Both sides use this directory, one after the other, so that its path is the same in their results.
WORK = Path(sys.prefix) / "work"
PYTHON_PROGRAMS = Path(sys.prefix) / "bin"
NODE_PACKAGES = Path(sys.prefix) / "node/node_modules"
PAGE = Path(__file__).resolve().parent.parent / "docs/how-to/check-interoperability.md"
CALLS = (comparing.EQUAL, comparing.REFUSED_BOTH_WAYS, comparing.REFUSED_BY_TOOLBELT, comparing.BY_DESIGN)
FEATURES = ("tools", "prompts", "resources", "templates", "screens", "tools of the screen")

_REPORT = Path(sys.prefix) / "report"
# The fields of a listed tool that are the same on both sides. Of the hints, only MCP's own are.
_LISTED = ("title", "description", "inputSchema", "outputSchema", "icons", "_meta")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SCREEN = "text/html;profile=mcp-app"

Entries = Mapping[str, Mapping[str, Any]]
# Runs a server's command while it is open, and is the address at which the server is reached.
Gateway = Callable[[], contextlib.AbstractContextManager[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a side lists, and what it answers when the prompts and resources are requested."""

    tools: Entries
    prompts: Entries
    resources: Entries
    templates: Entries
    contents: Mapping[str, Any]


def compare(
    server: comparing.Server, gateway: Gateway | None = None, options: Sequence[str] = ()
) -> tuple[str, str]:
    """Compare a server, directly and through Toolbelt. Return its rows in the documentation's two tables.

    Toolbelt runs the server's command, or connects to the gateway that runs it. ``options`` are more of ``mcp add``.
    """
    with _working_directory(server), wire.Direct(server.command, WORK, server.env) as side:
        direct = _offer(side, server)
        direct_results = comparing.results(side, server, direct.tools)
    prefix = f"{_key(server)}__"
    with _working_directory(server), _added_to_toolbelt(server, gateway, options) as through_side:
        through = _offer(through_side, server, prefix)
        through_results = comparing.results(through_side, server, direct.tools, prefix=prefix)
        _check_another_session(server, through_side, prefix)
        surface = kit.operator("GET", f"agents/{_key(server)}/surface")
    outcomes = comparing.compare(server, direct.tools, direct_results, through_results, prefix)
    _report(server, outcomes)

    of_screen = {name for name, tool in direct.tools.items() if _is_of_screen(tool)}
    offered = direct.tools.keys() - server.unlisted.keys() - of_screen
    assert gateway or {call.tool for call in server.calls} == offered | of_screen, "every tool must be called"
    # A gateway may announce more to the server than a client does, which then offers more tools.
    assert offered == through.tools.keys() - of_screen or (gateway and offered < through.tools.keys())
    assert not {tool["name"].removeprefix(prefix) for tool in surface["tools"]} & of_screen
    for name in offered:
        expected, listed = _as_listed(direct.tools[name]), _as_listed(through.tools[name])
        if name in server.varying:
            expected["description"] = listed["description"] = "differs between processes"
        assert listed == expected
    for kind in ("prompts", "resources", "templates"):
        left, right = getattr(direct, kind), getattr(through, kind)
        assert {name: _described(entry) for name, entry in right.items()} == {
            name: _described(entry) for name, entry in left.items()
        }, kind
    for name, content in direct.contents.items():
        assert through.contents.get(name) == content, name
    different = [outcome for outcome in outcomes if outcome.verdict == comparing.DIFFERENT]
    assert not different, "\n".join(
        f"{outcome.tool} {outcome.variant} {json.dumps(outcome.arguments)[:200]}\n"
        f"  direct:  {outcome.direct[:900]}\n  through: {outcome.through[:900]}"
        for outcome in different
    )
    title = [f"`{server.package}`", _version(server)]
    count = collections.Counter(outcome.verdict for outcome in outcomes)
    screens = [entry for entry in direct.resources.values() if entry.get("mimeType") == _SCREEN]
    counted = len(direct.resources) - len(screens)
    numbers = (
        len(offered),
        len(direct.prompts),
        counted,
        len(direct.templates),
        len(screens),
        len(of_screen),
    )
    return (
        _row(*title, len(direct.tools), len(outcomes), *(count[column] for column in CALLS)),
        _row(title[0], *(number or "-" for number in numbers)),
    )


def check_documented(rows: Mapping[str, tuple[str, str]]) -> None:
    """Check that the documentation contains the rows of all servers of a part, by the servers' names."""
    heads = (("server", "version", "tools", "calls", *CALLS), ("server", *FEATURES))
    tables = [
        "\n".join([_row(*head), "|" + "---|" * len(head), *(pair[index] for pair in rows.values())])
        for index, head in enumerate(heads)
    ]
    text = "\n\n".join(tables)
    sys.stdout.write(f"\n{text}\n")
    (_REPORT / "table.md").write_text(f"{text}\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8").splitlines()
    missing = [row for pair in rows.values() for row in pair if row not in page]
    assert not missing, f"put {_REPORT / 'table.md'} into {PAGE.name}"


def _key(server: comparing.Server) -> str:
    """Return the name of a server's plugin, namespace, loadout and agent."""
    return f"interop-{server.name}"


@contextlib.contextmanager
def _working_directory(server: comparing.Server) -> Iterator[None]:
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


@contextlib.contextmanager
def _added_to_toolbelt(
    server: comparing.Server, gateway: Gateway | None, more: Sequence[str]
) -> Iterator[wire.Through]:
    """Connect Toolbelt to a server, for a single agent; yield that agent's connection, in a new session."""
    key = _key(server)
    variables = [part for name, value in server.env.items() for part in ("--env", f"{name}={value}")]
    options = ["--namespace", key, "--trust", "--timeout", "120", *server.options, *more]
    command = ["--cwd", str(WORK), *variables, "--command", *server.command]
    with contextlib.ExitStack() as stack:
        connection = ["--url", stack.enter_context(gateway())] if gateway else command
        stack.callback(_deactivate, key)
        kit.manage("mcp", "add", key, *options, *connection)
        # The agent and its token are created over the HTTP API, because each command would take seconds.
        loadouts = [{"name": key, "plugins": [key]}]
        agents = [{"key": key, "title": server.name, "loadout": key}]
        kit.operator("PUT", "belt", {"loadouts": loadouts, "agents": agents})
        with wire.Through(key, kit.operator("POST", "tokens", {"agent": key})["text"]) as through:
            if server.varying:
                _keep_descriptions(server, through)
            yield through


def _keep_descriptions(server: comparing.Server, side: wire.Through) -> None:
    """Check that no process's description takes a tool from the agents, and let them keep the approved one."""
    key = _key(server)
    for name in server.varying:
        for _ in range(3):
            with side.in_another_session() as other:
                other.request("tools/call", {"name": f"{key}__{name}", "arguments": {}})
        assert f"{key}__{name}" in _listed(side, "tools/list", "tools")
    kit.manage("mcp", "keep", key)


def _deactivate(key: str) -> None:
    kit.operator("PATCH", f"plugins/{key}", {"changes": {"active": False}, "confirm": True})


def _check_another_session(server: comparing.Server, side: wire.Through, prefix: str) -> None:
    """Check that another session, with a process of its own, can call the server."""
    (call, *_) = (call for call in server.calls if not call.of_screen)
    with side.in_another_session() as other:
        assert f"{prefix}{call.tool}" in _listed(other, "tools/list", "tools")
        params = {"name": f"{prefix}{call.tool}", "arguments": call.arguments}
        response = other.request("tools/call", params)
        assert "result" in response, response
        refusal = response["result"].get("_meta", {}).get(comparing.REFUSAL, {})
        assert refusal.get("code") in (None, "tool-failed"), refusal


def _offer(side: comparing.Side, server: comparing.Server, prefix: str = "") -> Offer:
    """Return what a side offers. Of Toolbelt's, only what comes from the server."""

    def listed(method: str, field: str, name: str = "name") -> dict[str, dict[str, Any]]:
        entries = _listed(side, method, field, name)
        if name == "name":
            entries = {
                key.removeprefix(prefix): entry for key, entry in entries.items() if key.startswith(prefix)
            }
        return {key: entry for key, entry in entries.items() if not key.startswith("toolbelt://")}

    prompts = listed("prompts/list", "prompts")
    resources = listed("resources/list", "resources", "uri")
    contents: dict[str, Any] = {}
    for name, arguments in server.prompts.items():
        answer = side.request("prompts/get", {"name": f"{prefix}{name}", "arguments": arguments})
        contents[name] = answer.get("error") or answer["result"]["messages"]
    for uri in (*resources, *server.uris):
        answer = side.request("resources/read", {"uri": uri})
        contents[uri] = answer.get("error") or answer["result"]["contents"]
    return Offer(
        tools=listed("tools/list", "tools"),
        prompts=prompts,
        resources=resources,
        templates=listed("resources/templates/list", "resourceTemplates", "uriTemplate"),
        contents=contents,
    )


def _listed(side: comparing.Side, method: str, field: str, name: str = "name") -> dict[str, dict[str, Any]]:
    """Return all entries of a list by name, or nothing from a server that has no such list."""
    entries: dict[str, dict[str, Any]] = {}
    cursor: dict[str, str] = {}
    while "result" in (response := side.request(method, cursor)):
        page = response["result"]
        entries |= {entry[name]: entry for entry in page[field]}
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    return entries


def _is_of_screen(tool: Mapping[str, Any]) -> bool:
    """Return whether a tool is for the server's screens only, and not for models."""
    return tool.get("_meta", {}).get("ui", {}).get("visibility") == ["app"]


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _version(server: comparing.Server) -> str:
    file = NODE_PACKAGES / server.package / "package.json"
    if file.exists():
        return str(json.loads(file.read_text(encoding="utf-8"))["version"])
    return metadata.version(server.package)


def _described(entry: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("title", "description", "mimeType", "arguments", "size")
    return _trimmed({name: entry[name] for name in fields if name in entry})


def _as_listed(tool: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: tool[name] for name in _LISTED if name in tool}
    # By design, Toolbelt trims texts.
    fields = _trimmed({"description": "", **fields})
    annotations = tool.get("annotations", {})
    fields["annotations"] = {name: annotations[name] for name in _HINTS if name in annotations}
    # Older revisions have the title among the hints.
    fields.setdefault("title", annotations.get("title"))
    # Toolbelt adds the toolkits of a tool here, and FastMCP's proxy its tags.
    added = ("toolbelt/", "fastmcp")
    fields["_meta"] = {k: v for k, v in fields.get("_meta", {}).items() if not k.startswith(added)}
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


def _report(server: comparing.Server, outcomes: Sequence[comparing.Outcome]) -> None:
    """Write a readable report of the outcome of each call."""
    _REPORT.mkdir(exist_ok=True)
    lines = []
    for outcome in outcomes:
        lines.append(
            f"{outcome.verdict}: {outcome.tool} {outcome.variant} "
            f"{json.dumps(outcome.arguments, ensure_ascii=False)[:300]}"
        )
        if outcome.verdict != comparing.EQUAL or '"isError": true' in outcome.direct:
            lines += [f"    direct:  {outcome.direct[:2000]}", f"    through: {outcome.through[:2000]}"]
    text = re.sub(r"[\u202a-\u202e\u0000]", "?", "\n".join(lines))
    (_REPORT / f"{server.name}.txt").write_text(f"{text}\n", encoding="utf-8")
