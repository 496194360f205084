"""Importing the servers of a client's file: all of them under review, or none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import upstream_servers
from toolbelt.control.servers.client_files import conversion, formats, reading
from toolbelt.core import connections, errors, keys
from toolbelt.store import snapshots

Converted = conversion.Converted


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The result of reading a file: the servers to store, the keys beside them that are not taken over, and notes."""

    servers: tuple[Converted, ...]
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def off(self) -> tuple[str, ...]:
        """Return the names of the servers that are off in the client, and arrive off."""
        return tuple(server.name for server in self.servers if not server.active)

    @property
    def variables(self) -> Sequence[str]:
        """Return the names of the variables to set, each once."""
        return tuple(dict.fromkeys(name for server in self.servers for name in server.variables))


class UnusableServers(errors.Invalid):
    """Servers in a file that cannot be imported. The others can be, without them."""


def preview(text: str, *, is_toml: bool = False, only: Collection[str] = (), directory: str = "") -> Preview:
    """Return the servers in a file, without storing anything.

    Raise errors.Invalid with the line and the reason if the file cannot be read, and UnusableServers with those of each
    server that cannot be imported.
    """
    examined = examine(text, is_toml=is_toml, only=only, directory=directory)
    problems = []
    for server in examined.servers:
        if server.problem:
            line = reading.line_of(text, server.source)
            path = f"line {line}, {server.source}" if line else server.source
            problems.append(errors.Problem(path=path, message=server.problem))
    if problems:
        raise UnusableServers(problems)
    return examined


def examine(text: str, *, is_toml: bool = False, only: Collection[str] = (), directory: str = "") -> Preview:
    """Return the servers in a file, with the ``problem`` of each server that cannot be imported.

    ``directory`` is where the file is, if what is beside it is there, too.
    Raise errors.Invalid with the line and the reason if the file cannot be read.
    """
    file, notes = _read(text, is_toml)
    in_file = file.servers
    if not in_file:
        message = (
            "The file has no servers: Toolbelt looks for them under mcpServers, servers, mcp_servers,"
            " context_servers, mcp, extensions, packages and remotes."
        )
        raise errors.Invalid.of(message)
    if unknown := sorted(set(only) - {server.name for server in in_file}):
        raise errors.NotFound("server in the file", unknown[0], [server.name for server in in_file])
    selected = [server for server in in_file if not only or server.name in only]
    assigned: dict[str, str] = {}
    servers = tuple(conversion.convert(server, assigned, directory) for server in selected)
    stored = snapshots.catalog()
    taken = {keys.fold(plugin.namespace): f"the plugin {name}" for name, plugin in stored.plugins.items()}
    names = {keys.fold(name): name for name in stored.plugins}
    for server in servers:
        server.name = name_of(server.source)
        if not server.title and not server.source.isascii():
            server.title = conversion.shown(server.source, conversion.MAX_TITLE)
        namespace = keys.fold(upstream_servers.namespace_of(server.name))
        if not server.problem and keys.fold(server.name) in names:
            server.problem = f"There is a server or plugin {names[keys.fold(server.name)]} already."
        elif not server.problem and namespace in taken:
            server.problem = (
                f"Its tools would be named {upstream_servers.namespace_of(server.name)}__…, as those of"
                f" {taken[namespace]}, if case is ignored. Rename the server in the file."
            )
        taken[namespace] = f"the server {server.source!r} in the file"
    return Preview(servers=servers, unused=file.unused, notes=notes)


def _read(text: str, is_toml: bool) -> tuple[formats.File, tuple[str, ...]]:
    """Return the servers of the first part of a text that has any, with a note if others are left out."""
    texts = [text] if is_toml else [*reading.candidates(text)]
    if len(texts) == 1:
        return formats.servers(reading.read(texts[0], is_toml=is_toml)), ()
    found = []
    for block in texts:
        try:
            file = formats.servers(reading.read(block))
        except errors.Invalid:
            continue
        if file.servers:
            found.append(file)
    if not found:
        raise errors.Invalid.of("None of the blocks of code in the text has servers.")
    note = f"Only the first of {len(found)} blocks of code with servers is read."
    return found[0], (note,) if len(found) > 1 else ()


def store(write: writing.Write, preview: Preview) -> Sequence[str]:
    """Store the servers of a preview, all or none; return their names. Their tools are listed when they are refreshed,
    and await review; the servers that are off in the client arrive off. Raise as upstream_servers.add does.
    """
    with writing.begin():
        for server in preview.servers:
            namespace = upstream_servers.namespace_of(server.name)
            entries.create(write, "plugin", {"name": server.name, "namespace": namespace, **server.entry})
    return tuple(server.name for server in preview.servers)


def chosen(name: str, entry: Any) -> Converted:
    """Return a server of a preview from its ``entry``, which came back from a browser. Raise errors.Invalid if it holds
    anything else.
    """
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("upstream"), dict)
        or not isinstance(entry.get("active", True), bool)
        or not entry.keys() <= {*conversion.ENTRY_FIELDS}
    ):
        raise errors.Invalid.of("The preview is incomplete: start again.")
    return Converted.of_entry(name, entry)


def name_of(name: str) -> str:
    """Return a name for a server that is valid here. One without any letter of ours gets the hash of its own."""
    fitted = keys.fit(name)[: keys.MAX_LENGTH]
    return fitted if fitted.strip("_-") else keys.fit(name, is_marked=True).replace("_", "server_", 1)


def connection_text(server: Converted) -> str:
    """Return a server's connection in one line."""
    connection = connections.of(server.connection)
    return connection.shown if connection is not None else ""
