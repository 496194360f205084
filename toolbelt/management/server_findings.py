"""Findings of `manage.py doctor` about plugins and upstream servers, which the runtime reaches."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolbelt import conf, locations
from toolbelt.control.doctor import findings
from toolbelt.control.servers import upstream_servers
from toolbelt.core import connections, counting, errors
from toolbelt.plugins import variables
from toolbelt.runtime import plugins, upstream_listing


def examine(*, ask: bool = True) -> Iterator[findings.Finding]:
    """Yield the findings; ``ask`` connects to each server that is on."""
    yield from _plugins()
    servers = [
        server for server in upstream_servers.servers() if server.plugin.active and not server.plugin.blocked
    ]
    if servers and importlib.util.find_spec("mcp") is None:
        yield findings.Finding(
            code="server-client",
            message=f"There are {len(servers)} upstream servers, but the client for them is not installed.",
            way_out=f"Run `pip install '{locations.DISTRIBUTION}[mcp]'`.",
        )
        return
    reachable = []
    for server in servers:
        obstacles = [*_obstacles(server)]
        yield from obstacles
        if not obstacles:
            reachable.append(server.plugin.name)
        if waiting := sum(server.to_review.values()):
            yield findings.Finding(
                code="server-review",
                message=f"The server {server.plugin.name} has {counting.counted(waiting, 'tool')} to review,"
                " which no agent has.",
                way_out=f"Run `{conf.COMMAND} mcp review {server.plugin.name}`.",
                level="note",
            )
    if ask and reachable:
        answers = upstream_listing.refresh(reachable, lambda name, answer: answer)
        for name, answer in answers.items():
            if answer.error:
                yield findings.Finding(
                    code="server-not-responding",
                    message=f"The server {name} does not respond: {answer.error.rstrip('.')}.",
                    way_out=f"Start it or correct its connection, then run `{conf.COMMAND} mcp refresh {name}`;"
                    " or turn it off in the dashboard.",
                )


def _plugins() -> Iterator[findings.Finding]:
    for problem in plugins.loaded().problems:
        yield findings.Finding(
            code="plugin",
            message=str(problem),
            way_out=f"Correct {conf.PLUGINS_FILE or 'the plugin'}, check it with `{conf.COMMAND} plugins check`, and"
            " restart the servers.",
        )


def _obstacles(server: upstream_servers.Server) -> Iterator[findings.Finding]:
    """Yield why a server cannot be reached, as far as that is known without connecting."""
    name, connection = server.plugin.name, server.connection
    environ = upstream_listing.environ_of(name)
    for variable in connection.variables():
        if variable not in environ:
            yield findings.Finding(
                code="server-variable",
                message=f"The server {name} needs the variable {variable}, which is not set.",
                way_out=f"Set {variable} in the environment of Toolbelt's servers, or in the settings file, and"
                " restart them.",
            )
    if connection.cwd and not Path(connection.cwd).is_dir():
        yield findings.Finding(
            code="server-command",
            message=f"The directory of the server {name}, {connection.cwd}, does not exist.",
            way_out=f"Create it, or correct `cwd` in the server's entry with `{conf.COMMAND} belt import`.",
        )
    elif connection.command and not _has_command(connection, environ):
        yield findings.Finding(
            code="server-command",
            message=f"The command of the server {name} was not found: {connection.command}.",
            way_out="Install it, or correct its path."
            if Path(connection.command).is_absolute()
            else "Install it, or write its full path. Toolbelt's servers look for it on their own PATH.",
        )


def _has_command(connection: connections.Connection, environ: Mapping[str, str]) -> bool:
    """Return whether the command of a server is found on its PATH, as far as that is known."""
    path = connection.env.get("PATH")
    if path is not None:
        try:
            path, problems = variables.fill(path, environ)
        except errors.Refused:
            return True  # connecting reports it
        if problems:
            return True
    return shutil.which(connection.command, path=path) is not None
