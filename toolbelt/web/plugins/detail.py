"""The page of one plugin, and the form of a server."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from toolbelt import conf
from toolbelt.control.servers import plugin_overview
from toolbelt.core import belts, catalog, connections, errors, reasons
from toolbelt.plugins import info
from toolbelt.runtime import secrets, upstream_connections
from toolbelt.web.kit import pieces, texts, words
from toolbelt.web.plugins import client_plugins, forms, view_model
from toolbelt.web.review import view_model as review

# Above this number of tools, the others are shown on request.
MAX_TOOLS = 100
MAX_GONE = 40
MAX_PROBLEM_LENGTH = 400
_SHARED_BY: Mapping[connections.Sharing, str] = {
    "": "Shared by everyone, or one for each session if the server uses session ids",
    "shared": "Shared by everyone",
    "agent": "One for each agent",
    "session": "One for each session",
}


def page(
    detail: plugin_overview.Detail,
    live: Iterable[info.PluginInfo],
    *,
    path: str,
    since: datetime | None = None,
    every_tool: bool = False,
    may_change: bool,
    may_see: bool,
    form: forms.Connection | None = None,
    origin: str = "",
    **frame: Any,
) -> pieces.View:
    """Return the page; ``form`` is a rejected form."""
    provider = detail.provider
    plugin, listing = provider.plugin, provider.listing
    by_name = {known.name: known for known in live}
    known = by_name.get(plugin.name)
    running = {name for name, known in by_name.items() if known.state != "failed"}
    offered = [tool for tool in provider.tools if not tool.retired]
    maximum = len(offered) if every_tool else MAX_TOOLS
    problems = [*(listing.problems if listing else ()), *(known.problems if known else ())]
    return pieces.View(
        plugin=view_model.line(provider, running=running, since=since),
        size=f"{words.about(sum(tool.tokens for tool in offered))} tokens" if offered else "",
        gone=tuple(map(review.change, detail.gone)),
        all_gone=detail.all_gone,
        tools=tuple(_tool(detail, tool) for tool in offered[:maximum]),
        more_tools=max(0, len(offered) - maximum),
        every_url=f"{path}?all=yes#tools",
        reached=_reached(provider, form, may_change) if may_see else None,
        declaring=client_plugins.declaring(plugin, origin) if origin else None,
        provider=provider,
        source=known.source if known else "",
        problems=tuple(
            texts.visible(words.cut(_message(problem), MAX_PROBLEM_LENGTH)) for problem in problems
        ),
        stderr=texts.text(secrets.mask(listing.stderr)) if listing and listing.stderr and may_see else None,
        refresh=view_model.refresh_progress([provider], since, path, plugin.name),
        may_see=may_see,
        **frame,
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
    arguments = shlex.join(["mcp", "add", name, *options, "--command", connection.command, *connection.args])
    return f"{conf.COMMAND} {arguments}"


def _tool(detail: plugin_overview.Detail, tool: catalog.Tool) -> pieces.View:
    closed = detail.closed.get(tool.key)
    having = detail.users.get(tool.key, ())
    return pieces.View(
        tool=tool,
        state=closed.state if closed is not None else "active" if having else "dormant",
        word=words.counted(len(having), "agent") if having and closed is None else "No agent",
        users=reasons.explain(closed) if closed is not None else words.listing(having),
    )


def _reached(
    provider: plugin_overview.Provider, form: forms.Connection | None, may_change: bool
) -> pieces.View | None:
    connection = provider.connection
    if connection is None:
        return None
    if may_change and form is None:
        stored = belts.entry("plugin", provider.plugin).get("upstream", {})
        headers = "\n".join(f"{name}: {value}" for name, value in connection.headers.items())
        form = forms.Connection(initial={**stored, "headers": headers, "was": stored})
    sharing = upstream_connections.sharing(provider.plugin)
    return pieces.View(
        connection=connection,
        arguments=shlex.join(connection.args),
        shared=_SHARED_BY[sharing],
        closes=sharing != "shared",
        open=upstream_connections.open_connections(provider.plugin.name),
        form=form if connection.url else None,
        command=add_command(connection, provider.plugin.name) if connection.command else "",
    )


def _message(problem: errors.Problem) -> str:
    tool = problem.path.removeprefix("tools.")
    return problem.message if not tool or tool in problem.message else f"{tool}: {problem.message}"
