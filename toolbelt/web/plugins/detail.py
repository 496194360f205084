"""The page of one plugin, and the form of a server."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from toolbelt import conf
from toolbelt.control.servers import plugin_overview
from toolbelt.core import belts, catalog, connections, errors, reasons
from toolbelt.plugins import info
from toolbelt.runtime import secrets, upstream_connections
from toolbelt.web.kit import notices, pieces, texts, tool_sections, words
from toolbelt.web.plugins import client_plugins, reviews, view_model


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerForm:
    """What somebody types to say where a server is; `seen` is what the page showed, `problems` by the field's name."""

    name: str = ""
    namespace: str = ""
    title: str = ""
    url: str = ""
    headers: str = ""
    sharing: str = ""
    idle: str = ""
    max_connections: str = ""
    seen: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPage:
    """The form that adds a server over HTTP, and the command for one that is run here."""

    form: ServerForm
    command: str
    may_see: bool
    notice: notices.Notice | None = None


# Above so many tools, the others are shown when somebody asks for them.
MAX_TOOLS = 100
MAX_DESCRIPTION_LENGTH = 240
MAX_PROBLEM_LENGTH = 400
_SHARED_BY: Mapping[connections.Sharing, str] = {
    "": "Shared by everyone, or one for each session if the server uses session ids",
    "shared": "Shared by everyone",
    "agent": "One for each agent",
    "session": "One for each session",
}
# Where control finds something wrong with a connection, and the field that asks for it.
_ASKED_BY = (
    ("upstream.headers", "headers"),
    *((f"upstream.{name}", name) for name in ("sharing", "idle", "max_connections")),
    ("upstream", "url"),
)
_FIELDS = ("name", "namespace", "title", "url", "headers", "sharing", "idle", "max_connections")


def page(
    detail: plugin_overview.Detail,
    live: Iterable[info.PluginInfo],
    *,
    path: str,
    since: datetime | None = None,
    notice: notices.Notice | None = None,
    every_tool: bool = False,
    may_change: bool,
    may_carry: bool,
    may_see: bool,
    ticked: Collection[str] = (),
    moved: str = "",
    form: ServerForm | None = None,
    origin: str = "",
    **frame: Any,
) -> pieces.View:
    """Fill the page; ``form`` is one that was not taken, ``ticked`` and ``moved`` are of a review that was not."""
    one = detail.provider
    here_now = {plugin.name: plugin for plugin in live}
    running = {name for name, plugin in here_now.items() if plugin.state != "failed"}
    offered = [tool for tool in one.tools if not tool.retired]
    most = len(offered) if every_tool else MAX_TOOLS
    listing = one.listing
    problems = [*(listing.problems if listing else ()), *_problems_here(here_now.get(one.plugin.name))]
    return pieces.View(
        plugin=view_model.line(one, running=running, since=since),
        trusted=view_model.trusted(one),
        size=f"{words.about(sum(tool.tokens for tool in offered))} tokens" if offered else "",
        review=reviews.review(detail, may_carry=may_carry, ticked=ticked, moved=moved),
        tools=tuple(_tool(detail, tool) for tool in offered[:most]),
        more_tools=max(0, len(offered) - most),
        every_url=f"{path}?all=yes#tools",
        reached=_reached(one, form, may_change) if one.connection is not None and may_see else None,
        declaring=client_plugins.declaring(one.plugin, origin) if origin else None,
        facts=tuple(_facts(one, here_now.get(one.plugin.name))),
        problems=tuple(texts.visible(words.cut(_said(problem), MAX_PROBLEM_LENGTH)) for problem in problems),
        stderr=texts.text(secrets.mask(listing.stderr)) if listing and listing.stderr and may_see else None,
        asking=view_model.asking([one], since, path, one.plugin.name),
        notice=notice,
        may_change=may_change,
        may_see=may_see,
        **frame,
    )


def form(typed: Mapping[str, Any], problems: Iterable[errors.Problem] = ()) -> ServerForm:
    """Fill the form for a server with what somebody typed, and with what control finds wrong with it."""
    wrong: dict[str, list[str]] = {}
    for problem in problems:
        field = _field(problem.path, str(typed.get("name", "")))
        message = problem.message
        if field == "headers":
            name = problem.path.rpartition("headers.")[2]
            message = message if not name or name in message else f"{name}: {message}"
        wrong.setdefault(field, []).append(message)
    return ServerForm(
        **{field: str(typed.get(field, "")) for field in _FIELDS},
        seen=str(typed.get("was", "")),
        problems={field: " ".join(dict.fromkeys(said)) for field, said in wrong.items()},
    )


def add_command(connection: connections.Connection | None = None, name: str = "NAME") -> str:
    """Return the line that adds a server by command."""
    if connection is None or not connection.command:
        return f"{conf.COMMAND} mcp add files --command npx -y @modelcontextprotocol/server-filesystem ./docs"
    options = [f"--env={key}={value}" for key, value in connection.env.items()]
    options += [f"--cwd={connection.cwd}"] if connection.cwd else []
    options += [f"--timeout={connection.timeout}"] if connection.timeout != connections.TIMEOUT else []
    options += [f"--sharing={connection.sharing}"] if connection.sharing else []
    options += [f"--idle={connection.idle}"] if connection.idle != connections.IDLE else []
    if connection.max_connections != connections.MAX_CONNECTIONS:
        options.append(f"--max-connections={connection.max_connections}")
    said = shlex.join(["mcp", "add", name, *options, "--command", connection.command, *connection.args])
    return f"{conf.COMMAND} {said}"


def _field(path: str, name: str) -> str:
    """Name the field that asks for what is at this path; empty for what is wrong with no field alone."""
    inside = path.removeprefix(f"plugins.{name}").removeprefix(".")
    if not inside:
        return "name" if path else ""
    return next((field for beginning, field in _ASKED_BY if inside.startswith(beginning)), inside)


def _tool(detail: plugin_overview.Detail, tool: catalog.Tool) -> pieces.View:
    closed = detail.closed.get(tool.key)
    having = detail.users.get(tool.key, ())
    return pieces.View(
        key=tool.key,
        description=texts.visible(words.cut(tool.description or tool.title, MAX_DESCRIPTION_LENGTH)),
        risk=tool_sections.risk(tool),
        tokens=words.number(tool.tokens),
        state=closed.state if closed is not None else "active" if having else "dormant",
        word=_word(closed is not None, having),
        users=reasons.explain(closed) if closed is not None else words.listing(having),
    )


def _word(is_closed: bool, having: Collection[str]) -> str:
    if is_closed:
        return "No agent"
    count = len(having)
    return f"{count} agent{'' if count == 1 else 's'}" if count else "No agent"


def _reached(
    provider: plugin_overview.Provider, form: ServerForm | None, may_change: bool
) -> pieces.View | None:
    connection = provider.connection
    if connection is None:
        return None
    if may_change and form is None and connection.url:
        form = ServerForm(
            url=connection.url,
            headers="\n".join(f"{name}: {value}" for name, value in connection.headers.items()),
            sharing=connection.sharing,
            # A default stays one when the form is saved.
            idle=str(connection.idle) if connection.idle != connections.IDLE else "",
            max_connections=str(connection.max_connections)
            if connection.max_connections != connections.MAX_CONNECTIONS
            else "",
            seen=json.dumps(belts.entry("plugin", provider.plugin).get("upstream", {})),
        )
    return pieces.View(
        kind=view_model.kind(provider),
        facts=tuple(
            _of_connection(
                connection,
                upstream_connections.sharing(provider.plugin),
                upstream_connections.open_connections(provider.plugin.name),
            )
        ),
        form=form if connection.url else None,
        command=add_command(connection, provider.plugin.name) if connection.command else "",
    )


def _of_connection(
    connection: connections.Connection, sharing: connections.Sharing, open_connections: int
) -> Iterator[pieces.View]:
    if connection.command:
        yield _fact("Command", connection.command, code=True)
        if connection.args:
            yield _fact("Arguments", shlex.join(connection.args), code=True)
        for name, value in connection.env.items():
            yield _fact("Variable", f"{name}={value}", code=True)
        if connection.cwd:
            yield _fact("Directory", connection.cwd, code=True)
    else:
        yield _fact("URL", connection.url, code=True)
        for name, value in connection.headers.items():
            yield _fact("Header", f"{name}: {value}", code=True)
    yield _fact("Time limit", f"{connection.timeout} s per response")
    yield _fact("Connections", f"{_SHARED_BY[sharing]}; at most {connection.max_connections} in each process")
    if sharing != "shared":
        yield _fact("Idle time", f"A connection is closed after {connection.idle} s without a call")
    yield _fact("Open now", f"{words.number(open_connections)} in the process that served this page")


def _facts(provider: plugin_overview.Provider, here: info.PluginInfo | None) -> Iterator[pieces.View]:
    plugin, listing = provider.plugin, provider.listing
    yield _fact(
        "Namespace", f"{plugin.namespace}__" if plugin.namespace else "none", code=bool(plugin.namespace)
    )
    if plugin.category:
        yield _fact("Category", plugin.category)
    if here is not None and here.source:
        yield _fact("Code", here.source, code=True)
    if plugin.runner == "client":
        yield from _of_client(plugin, listing)
        return
    if provider.connection is None:
        return
    if listing is None:
        yield _fact("Last request", "never")
        return
    if listing.server:
        yield _fact("Server name", listing.server)
    if listing.protocol:
        yield _fact("Protocol", f"MCP {listing.protocol}")
    yield _fact("Last response", words.moment(listing.answered).words if listing.answered else "never")
    if listing.answered is None or listing.asked > listing.answered:
        yield _fact("Last request", f"{words.moment(listing.asked).words}, no response")
    if listing.answered:
        yield _fact("Listed", words.tools(listing.tools))


def _of_client(plugin: catalog.Plugin, listing: plugin_overview.Listing | None) -> Iterator[pieces.View]:
    """Yield who may declare the tools, and when they were last declared."""
    yield _fact("May declare", ", ".join(["operators", *plugin.declared_by]))
    if listing is None or listing.answered is None:
        yield _fact("Last declared", "never")
        return
    yield _fact("Last declared", f"{words.moment(listing.answered).words}, by {listing.server}")
    yield _fact("Declared", words.tools(listing.tools))


def _fact(label: str, text: str, *, code: bool = False) -> pieces.View:
    return pieces.View(label=label, parts=texts.pieces(text), code=code)


def _problems_here(here: info.PluginInfo | None) -> Iterable[errors.Problem]:
    return here.problems if here is not None else ()


def _said(problem: errors.Problem) -> str:
    tool = problem.path.removeprefix("tools.")
    return problem.message if not tool or tool in problem.message else f"{tool}: {problem.message}"
