"""The formats of clients' files: where each has its servers, and what it calls their fields.

| client | servers are in | notes |
|---|---|---|
| Claude, Cursor, Windsurf, Cline, Kiro, Gemini CLI, Copilot CLI, ``mcp.json`` | ``mcpServers`` | ``serverUrl`` and ``httpUrl`` are URLs |
| Claude Code | ``mcpServers``, also in each of its ``projects`` | lists of servers that are off |
| VS Code | ``servers``, or ``mcp.servers`` in its settings | secrets are ``${input:ID}`` |
| Codex (TOML) | ``mcp_servers``, also in ``profiles`` | ``bearer_token_env_var``, ``http_headers``, ``env_http_headers`` |
| Zed | ``context_servers`` | an older ``command`` is an object: ``path``, ``args``, ``env`` |
| opencode | ``mcp``, or ``mcp.servers`` | ``command`` is a list, ``environment`` are its variables |
| Goose (YAML) | ``extensions`` | ``cmd``, ``uri``, ``envs``, ``env_keys`` |
| LibreChat, LiteLLM, Continue (YAML) | ``mcpServers``, ``mcp_servers`` | Continue's is a list |
| registry's ``server.json``, lists of them | ``remotes`` and ``packages`` | a remote server is preferred |
| ``.mcpb``, ``.dxt`` | ``server.mcp_config`` | its user's settings are ``${user_config.ID}`` |

A section is found wherever it is in a file. A file without one is a server, or servers by name. Fields are read by the
spellings below (:mod:`spellings`), whichever client's they are.

How clients refer to variables differs, too. ``${NAME}`` and ``${NAME:-default}`` are Claude Code's, ``${env:NAME}`` is
Cursor's and VS Code's, ``${input:ID}`` VS Code's, ``{env:NAME}`` opencode's; none of them is likely to be anything else,
so all are read in every file. A bare ``$NAME`` is replaced by Gemini CLI alone; elsewhere, it is a part of the value.
Codex replaces nothing.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.control.servers.client_files import registry, spellings, tool_lists
from toolbelt.core import texts

# Sections of servers. Of the second group, only what looks like a server is one: others call something else so.
_SECTIONS = frozenset({"mcpservers", "contextservers", "remoteservers"})
_LIKELY_SECTIONS = frozenset({"servers", "mcp", "extensions", "registry"})
_MAX_SECTION_DEPTH = 6
# Our fields, and how clients spell them. The first spelling that is given counts.
_COMMAND = ("command", "cmd", "path")
_URL = ("httpUrl", "serverUrl", "url", "uri", "baseUrl", "endpoint")
_ENV = ("env", "environment", "envs", "env_vars", "environment_variables")
_HEADERS = ("headers", "http_headers", "request_headers")
_CWD = ("cwd", "working_directory", "working_dir", "workdir")
_KIND = ("type", "transport", "transport_type", "protocol")
_TIMEOUT = ("tool_timeout_sec", "timeout", "request_timeout", "tool_timeout", "timeout_ms")
# Objects whose fields count as the server's own.
_EMBEDDED = ("command", "transport", "remote", "connection", "stdio", "http", "mcp_config", "options")
_OF_SERVER = frozenset(
    spellings.form(key)
    for key in (*_COMMAND, *_URL, "image", "args", "transport", "remote", "remotes", "packages", "mcp_config")
)
_SETTING = re.compile(r"\$\{user_config\.(?P<id>[\w.-]+)\}")
_OF_COMMAND = frozenset({"stdio", "local"})
# Beside a section: the servers in it that are off, and those that alone are on.
_OFF_LISTS = ("disabledMcpServers", "disabledMcpjsonServers", "disabled_servers")
# Such a time, and any longer one, is in milliseconds.
_MAX_SECONDS = 1_000

# At the top of Gemini CLI's settings and of its extensions, and in their servers.
_GEMINI_KEYS = frozenset(
    {"contextFileName", "selectedAuthType", "security", "general", "ui", "tools", "context", "telemetry"}
)
_GEMINI_SERVER_KEYS = frozenset({"httpUrl", "trust", "includeTools", "excludeTools", "authProviderType"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientServer:
    """A server as a client has it. ``secrets`` are the names of variables and headers that the file marks as secret.

    ``problem`` is why it cannot be imported, as far as the format itself tells, and ``notes`` are to know; ``is_off``
    if the client has it off. ``has_bare_references``: the client replaces ``$NAME`` as well as ``${NAME}``.
    ``unused`` are the keys that nothing used, and ``lists`` the tools that its user left out.
    """

    name: str
    title: str = ""
    description: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    secrets: frozenset[str] = frozenset()
    is_off: bool = False
    problem: str = ""
    notes: tuple[str, ...] = ()
    has_bare_references: bool = False
    unused: tuple[str, ...] = ()
    lists: tool_lists.ToolLists = field(default_factory=tool_lists.ToolLists)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The servers in a file, in its order, and the keys beside them that nothing used."""

    servers: tuple[ClientServer, ...]
    unused: tuple[str, ...] = ()


def servers(document: Mapping[str, Any] | list[Any]) -> File:
    """Return the servers in a document; none if it has none of the formats."""
    root = spellings.Fields(document if isinstance(document, Mapping) else {"servers": document})
    found = [*_found(root)] or [*_unwrapped(root)]
    has_bare_references = _has_bare_references(root.document)
    read: dict[str, ClientServer] = {}
    for number, (name, entry, scope) in enumerate(found):
        server = dataclasses.replace(_read(name, entry), has_bare_references=has_bare_references)
        lists = _lists_beside(name, scope)
        server = dataclasses.replace(
            server, is_off=server.is_off or name in scope.off, lists=server.lists.joined(lists)
        )
        # Claude Code repeats a server in each project.
        if server != read.get(name):
            read[name if name not in read else f"{name}\n{number}"] = server
    return File(servers=tuple(read.values()), unused=tuple(root.unused()))


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a file says beside a section of servers: those that are off, and other fields."""

    fields: spellings.Fields
    off: frozenset[str] = frozenset()


def _lists_beside(name: str, scope: _Scope) -> tool_lists.ToolLists:
    lists, used = tool_lists.beside(name, scope.fields.document)
    for section, key in used:
        scope.fields.inside(section).use(key)
    return lists


def _has_bare_references(document: Mapping[str, Any]) -> bool:
    """Return whether the file is Gemini CLI's, or of a client that reads the same: they alone replace ``$NAME``.

    Its name is ``settings.json``, as that of others, so it is recognized by keys that only it has.
    """
    servers_in_it = document.get("mcpServers")
    entries = servers_in_it.values() if isinstance(servers_in_it, Mapping) else ()
    keys = {key for entry in entries if isinstance(entry, Mapping) for key in entry}
    return not _GEMINI_KEYS.isdisjoint(document) or not _GEMINI_SERVER_KEYS.isdisjoint(keys)


def _found(fields: spellings.Fields, depth: int = 0) -> Iterator[tuple[str, Any, _Scope]]:
    """Yield the name, the entry and the surroundings of each server in the sections of an object."""
    if isinstance(fields.document.get("packages"), list) or isinstance(fields.document.get("remotes"), list):
        yield str(fields.take("name") or "server"), fields.document, _Scope(spellings.Fields({}))
        for key in fields.document:
            fields.use(key)
        return
    if _is_bundle(fields.document):
        yield str(fields.take("name") or "server"), fields.document, _Scope(spellings.Fields({}))
        for key in fields.document:
            fields.use(key)
        return
    for key, value in fields.document.items():
        form = spellings.form(key)
        named = [*_named(value)]
        if form in _SECTIONS or (form in _LIKELY_SECTIONS and any(_is_server(entry) for _, entry in named)):
            scope = None
            section = fields.inside(key) if isinstance(value, Mapping) else None
            fields.use(key)
            for name, entry in named:
                if not _is_server(entry) and (form in _LIKELY_SECTIONS or _is_comment(name, entry)):
                    continue
                scope = scope or _scope(fields, {name for name, _ in named})
                if section is not None:
                    section.use(name)
                yield name, entry, scope
        elif isinstance(value, Mapping) and depth < _MAX_SECTION_DEPTH and _has_section(value, depth + 1):
            yield from _found(fields.inside(key), depth + 1)


def _has_section(document: Mapping[str, Any], depth: int) -> bool:
    return next(_found(spellings.Fields(document), depth), None) is not None


def _scope(fields: spellings.Fields, names: set[str]) -> _Scope:
    off: set[str] = set()
    for spelling in _OFF_LISTS:
        listed = fields.document.get(spelling)
        if isinstance(listed, list) and names.intersection(map(str, listed)):
            fields.use(spelling)
            off.update(map(str, listed))
    # Gemini CLI has them in `mcp`, beside mcpServers.
    if isinstance(fields.document.get("mcp"), Mapping):
        beside = fields.inside("mcp")
        off.update(map(str, spellings.items(beside.take("excluded"))))
        if "allowed" in beside.document and isinstance(beside.take("allowed"), list):
            off |= names - {*map(str, beside.document["allowed"])}
    return _Scope(fields, frozenset(off))


def _unwrapped(root: spellings.Fields) -> Iterator[tuple[str, Any, _Scope]]:
    """Yield the server that a file without a section is, or the servers that it holds by name."""
    if _is_server(root.document):
        yield str(root.take("name") or "server"), root.document, _Scope(spellings.Fields({}))
        for key in root.document:
            root.use(key)
        return
    for name, entry in root.document.items():
        if _is_server(entry):
            root.use(name)
            yield name, entry, _Scope(spellings.Fields({}))


def _named(section: Any) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a section with their names: an object has them by name, a list in each entry."""
    if isinstance(section, Mapping):
        yield from section.items()
    for number, entry in enumerate(section if isinstance(section, list) else (), 1):
        inner = entry.get("server") if isinstance(entry, Mapping) else None
        listed = inner if isinstance(inner, Mapping) else entry
        name = listed.get("name") if isinstance(listed, Mapping) else None
        yield (name if isinstance(name, str) and name else f"server {number}"), entry


def _is_server(entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        return False
    inner = entry.get("server")
    is_of_registry = isinstance(inner, Mapping) and ("remotes" in inner or "packages" in inner)
    return is_of_registry or not _OF_SERVER.isdisjoint(map(spellings.form, entry))


def _is_comment(name: str, entry: Any) -> bool:
    """Return whether this is no server, but a remark, or what is left of one that its user took out."""
    return entry is None or (not isinstance(entry, Mapping) and name.startswith(("_", "/", "#", "$")))


def _read(name: str, entry: Any) -> ClientServer:
    if not isinstance(entry, Mapping):
        return ClientServer(name=name, problem="A server must be an object, {…}.")
    nulls = [*_nulls(entry)]
    server = _read_object(name, _without_nulls(entry))
    if not nulls:
        return server
    note = f"{texts.listing(nulls)} {'is' if len(nulls) == 1 else 'are'} null, and left out."
    return dataclasses.replace(server, notes=(*server.notes, note))


def _nulls(value: Any, path: str = "") -> Iterator[str]:
    """Yield the places of null in the lists and objects of a server, such as ``args[3]`` or ``env.PORT``.

    A field of the server that is null is as good as none. A list with one is refused by some clients, and others pass
    on less than is written.
    """
    pairs: list[tuple[str, Any]] = []
    if isinstance(value, list):
        pairs = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    elif isinstance(value, Mapping):
        pairs = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    for place, item in pairs:
        if item is None and path:
            yield spellings.shown_key(place)
        yield from _nulls(item, place)


def _without_nulls(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _without_nulls(item) for key, item in value.items() if item is not None}
        case list():
            return [_without_nulls(item) for item in value if item is not None]
    return value


def _read_object(name: str, entry: Mapping[str, Any]) -> ClientServer:
    if (of_registry := registry.read(entry)) is not None:
        return ClientServer(**of_registry)
    fields = spellings.Fields(entry)
    if _is_bundle(entry):
        fields = spellings.Fields(_with_settings(entry, fields.take("user_config")))
        fields.use("user_config")
        fields.embed("server")
        fields.inside("server").embed("mcp_config")
    fields.embed(*_EMBEDDED)
    stated_name = fields.take("name")
    server = _connection(name, fields)
    return dataclasses.replace(
        server,
        title=_label(fields.take("title", "display_name"))
        or (_label(stated_name) if stated_name != name else ""),
        description=_label(fields.take("description")),
        is_off=spellings.switch(fields) is False,
        lists=tool_lists.of_server(fields),
        unused=tuple(fields.unused()),
    )


def _is_bundle(document: Mapping[str, Any]) -> bool:
    """Return whether this is the manifest of a bundle, ``.mcpb`` or ``.dxt``."""
    server = document.get("server")
    return isinstance(server, Mapping) and isinstance(server.get("mcp_config"), Mapping)


def _with_settings(value: Any, settings: Any) -> Any:
    """Return a bundle's manifest with a variable for each of its user's settings, with the default of that."""
    match value:
        case str():
            return _SETTING.sub(lambda match: _setting(match["id"], settings), value)
        case Mapping():
            return {key: _with_settings(item, settings) for key, item in value.items()}
        case list():
            return [_with_settings(item, settings) for item in value]
    return value


def _setting(key: str, settings: Any) -> str:
    setting = settings.get(key) if isinstance(settings, Mapping) else None
    default = (
        setting.get("default") if isinstance(setting, Mapping) and not setting.get("sensitive") else None
    )
    is_plain = (
        isinstance(default, str | int | float)
        and "{" not in spellings.text(default)
        and "}" not in spellings.text(default)
    )
    name = re.sub(r"\W+", "_", key, flags=re.ASCII).upper()
    return f"${{{name}:-{spellings.text(default)}}}" if is_plain else f"${{{name}}}"


def _connection(name: str, fields: spellings.Fields) -> ClientServer:
    kinds = [value.lower() for _, value in fields.take_all(*_KIND) if isinstance(value, str)]
    kind = kinds[0] if kinds else ""
    url = fields.take(*_URL) if kind not in _OF_COMMAND or not _has_any(fields, _COMMAND) else None
    command, args, env, cwd, secrets, notes = (
        _command(fields) if not url else ("", None, None, "", frozenset(), ())
    )
    headers = _headers(fields) if url else {}
    written = [
        ("command", command or ""),
        ("url", url or ""),
        ("cwd", cwd or ""),
        *((f"args[{number}]", arg) for number, arg in enumerate(spellings.items(args))),
        *((f"env.{key}", value) for key, value in _pairs(env)),
        *((f"headers.{key}", value) for key, value in _pairs(headers)),
    ]
    wrong = next((path for path, text in written if not isinstance(text, str | int | float)), "")
    problem = ""
    if args is not None and not isinstance(args, list):
        problem = "Its arguments must be a list."
    elif not all(pairs is None or isinstance(pairs, Mapping) for pairs in (env, headers)):
        problem = "Its variables and headers must be objects, {…}."
    elif wrong:
        problem = f"{wrong} must be text."
    elif fields.take("envFile"):
        problem = "It reads variables from a file (envFile): write them in 'env', and remove envFile."
    elif not command and not url:
        problem = "It has neither a command nor a URL."
    if problem:
        return ClientServer(name=name, problem=problem)
    return ClientServer(
        name=name,
        command=str(command),
        args=tuple(map(spellings.text, spellings.items(args))),
        env={key: spellings.text(value) for key, value in _pairs(env)},
        cwd=str(cwd or ""),
        url=str(url or ""),
        headers={key: spellings.text(value) for key, value in _pairs(headers)},
        timeout=_seconds(fields),
        secrets=secrets,
        notes=notes,
    )


def _command(fields: spellings.Fields) -> tuple[Any, Any, Any, Any, frozenset[str], tuple[str, ...]]:
    """Return the command, its arguments, variables and directory as the file has them, the names of the variables that
    it marks as secret, and notes.
    """
    secrets: frozenset[str] = frozenset()
    command, args, env = fields.take(*_COMMAND), fields.take("args", "arguments"), fields.take(*_ENV)
    notes: list[str] = []
    if isinstance(command, list):
        command, *words = command
        args = [*words, *(args or ())]
    if isinstance(args, str):
        args = _words(args)
        notes.append("Its arguments were one text: they are split into words.")
    if isinstance(command, str) and _is_line(command, args):
        command, *words = _words(command)
        args = [*words, *args] if isinstance(args, list) else args or words
        notes.append("Its command was a whole line: it is split into words.")
    if isinstance(env, list) and all(isinstance(item, Mapping) for item in env):
        env, secrets = registry.inputs(env)
    if isinstance(keys := fields.take("env_keys"), list):
        env = {**{str(key): f"${{{key}}}" for key in keys}, **(env if isinstance(env, Mapping) else {})}
    if not command and isinstance(image := fields.take("image"), str) and image:
        passed_on = [word for key in (env if isinstance(env, Mapping) else ()) for word in ("-e", str(key))]
        command, args = "docker", ["run", "-i", "--rm", *passed_on, image, *(args or ())]
    return command, args, env, fields.take(*_CWD), secrets, tuple(notes)


def _is_line(command: str, args: Any) -> bool:
    """Return whether a command is a whole line. A path may contain spaces, which is not to be told if it is alone."""
    if len(command.split()) < 2 or "\\" in command:
        return False
    return not args or not command.startswith(("/", "~"))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _headers(fields: spellings.Fields) -> Any:
    given = [value for _, value in fields.take_all(*_HEADERS)]
    if not all(isinstance(value, Mapping) for value in given):
        return given
    headers = {name: value for part in given for name, value in part.items()}
    named = fields.take("env_http_headers")
    headers |= {header: f"${{{value}}}" for header, value in _pairs(named)}
    if isinstance(bearer := fields.take("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{bearer}}}"
    return headers


def _seconds(fields: spellings.Fields) -> float | None:
    value = fields.take(*_TIMEOUT)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value // 1_000 if _MAX_SECONDS <= value < math.inf else value


def _has_any(fields: spellings.Fields, names: tuple[str, ...]) -> bool:
    forms = {*map(spellings.form, names)}
    return any(spellings.form(key) in forms and value for key, value in fields.document.items())


def _label(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, Mapping) else ()
