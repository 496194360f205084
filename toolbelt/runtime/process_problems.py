"""What keeps plugins and upstream servers from running in this process, as far as it knows without connecting."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from toolbelt.core import connections, errors, variables
from toolbelt.runtime import plugins
from toolbelt.runtime.upstream import server_lists
from toolbelt.store import running_processes, snapshots

Problem = running_processes.Problem


def find() -> list[Problem]:
    """Return the problems of the plugins file, and of the servers that are on. Loads the plugins."""
    problems = [Problem(code="plugin", subject="", what=str(item)) for item in plugins.loaded().problems]
    problems += [
        Problem(code="plugin-tools", subject=live.name, what=str(problem))
        for live in plugins.live()
        for problem in live.problems
    ]
    for plugin in snapshots.catalog().plugins.values():
        if plugin.upstream and plugin.active and not plugin.blocked:
            connection = connections.read(plugin.upstream)
            problems += [] if connection is None else _of_server(plugin.name, connection)
    return problems


def _of_server(name: str, connection: connections.Connection) -> Iterator[Problem]:
    environ = server_lists.environ_of(name)
    for variable in connection.variables_to_set():
        if variable not in environ:
            yield Problem(code="variable", subject=name, what=variable)
    try:
        connection = connection.filled(lambda text: variables.fill(text, environ)[0])
    except errors.Refused:
        return  # connecting reports it
    if connection.cwd and not Path(connection.cwd).is_dir():
        yield Problem(code="directory", subject=name, what=connection.cwd)
    elif connection.command and shutil.which(connection.command, path=connection.env.get("PATH")) is None:
        yield Problem(code="command", subject=name, what=connection.command)
