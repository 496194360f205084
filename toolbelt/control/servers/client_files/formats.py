"""The formats of clients' files: where each has its servers, and what it calls their fields.

| client | servers are in | notes |
|---|---|---|
| Claude, Cursor, Windsurf, Cline, Gemini CLI, Copilot CLI, ``mcp.json`` | ``mcpServers`` | ``serverUrl`` and ``httpUrl`` are URLs |
| VS Code | ``servers``, or ``mcp.servers`` in its settings | secrets are ``${input:ID}`` |
| Codex (TOML) | ``mcp_servers`` | ``bearer_token_env_var``, ``http_headers``, ``env_http_headers`` |
| Zed | ``context_servers`` | an older ``command`` is an object: ``path``, ``args``, ``env`` |
| opencode | ``mcp``, or ``mcp.servers`` | ``command`` is a list, ``environment`` are its variables |
| registry's ``server.json`` | ``remotes`` and ``packages`` | a remote server is preferred |

How clients refer to variables differs, too. ``${NAME}`` and ``${NAME:-default}`` are Claude Code's, ``${env:NAME}`` is
Cursor's and VS Code's, ``${input:ID}`` VS Code's, ``{env:NAME}`` opencode's; none of them is likely to be anything else,
so all are read in every file. A bare ``$NAME`` is replaced by Gemini CLI alone; elsewhere, it is a part of the value.
Codex replaces nothing.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SSE = "It uses the old SSE transport. Write its address for Streamable HTTP, which often ends in /mcp."

# At the top of Gemini CLI's settings and of its extensions, and in their servers.
_GEMINI_KEYS = frozenset(
    {"contextFileName", "selectedAuthType", "security", "general", "ui", "tools", "context", "telemetry"}
)
_GEMINI_SERVER_KEYS = frozenset({"httpUrl", "trust", "includeTools", "excludeTools", "authProviderType"})

# How a package of the registry is run.
_RUNNERS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "npm": ("npx", ("-y",), "@"),
    "pypi": ("uvx", (), "=="),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientServer:
    """A server as a client has it. ``secrets`` are the names of variables and headers that the file marks as secret.

    ``problem`` is why it cannot be imported, as far as the format itself tells; ``is_off`` if the client has it off.
    ``has_bare_references``: the client replaces ``$NAME`` as well as ``${NAME}``.
    """

    name: str
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
    has_bare_references: bool = False


def servers(document: Mapping[str, Any]) -> list[ClientServer]:
    """Return the servers in a document, in its order; none if it has none of the formats."""
    # The second is how the registry's API returns it.
    for candidate in (document, document.get("server")):
        if isinstance(candidate, Mapping) and ("remotes" in candidate or "packages" in candidate):
            return [_of_registry(candidate)]
    has_bare_references = _has_bare_references(document)
    return [
        dataclasses.replace(_read(name, entry), has_bare_references=has_bare_references)
        for name, entry in _entries(document)
    ]


def _has_bare_references(document: Mapping[str, Any]) -> bool:
    """Return whether the file is Gemini CLI's, or of a client that reads the same: they alone replace ``$NAME``.

    Its name is ``settings.json``, as that of others, so it is recognized by keys that only it has.
    """
    servers_in_it = document.get("mcpServers")
    entries = servers_in_it.values() if isinstance(servers_in_it, Mapping) else ()
    keys = {key for entry in entries if isinstance(entry, Mapping) for key in entry}
    return not _GEMINI_KEYS.isdisjoint(document) or not _GEMINI_SERVER_KEYS.isdisjoint(keys)


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    mcp = document.get("mcp")
    inner = mcp if isinstance(mcp, Mapping) else {}
    nested = inner.get("servers")
    for section in (
        document.get("mcpServers"),
        document.get("servers"),
        document.get("mcp_servers"),
        document.get("context_servers"),
        nested if isinstance(nested, Mapping) else inner,
    ):
        if isinstance(section, Mapping):
            yield from section.items()
        elif isinstance(section, list):
            for number, entry in enumerate(section, 1):
                name = entry.get("name") if isinstance(entry, Mapping) else None
                yield (name if isinstance(name, str) and name else f"server {number}"), entry


def _read(name: str, entry: Any) -> ClientServer:
    if not isinstance(entry, Mapping):
        return ClientServer(name=name, problem="A server must be an object, {…}.")
    command: Any = entry.get("command")
    args, env = entry.get("args"), entry.get("env") or entry.get("environment")
    if isinstance(command, Mapping):
        command, args, env = command.get("path"), command.get("args"), command.get("env") or env
    if isinstance(command, list):
        command, args = (command[0] if command else None), [*command[1:], *(args or ())]
    headers = {**_mapping(entry, "headers"), **_mapping(entry, "http_headers")}
    headers |= {header: f"${{{value}}}" for header, value in _mapping(entry, "env_http_headers").items()}
    if isinstance(bearer := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{bearer}}}"
    url = next((entry[key] for key in ("httpUrl", "serverUrl", "url") if entry.get(key)), "")
    kind = str(entry.get("type") or entry.get("transport") or entry.get("transportType") or "").lower()
    texts = [
        ("command", command or ""),
        ("url", url),
        ("cwd", entry.get("cwd") or ""),
        *((f"args[{number}]", arg) for number, arg in enumerate(_list(args))),
        *((f"env.{name}", value) for name, value in _pairs(env)),
        *((f"headers.{name}", value) for name, value in headers.items()),
    ]
    wrong = next((path for path, text in texts if not isinstance(text, str | int | float)), "")
    problem = ""
    if args is not None and not isinstance(args, list):
        problem = "Its arguments must be a list."
    elif not all(pairs is None or isinstance(pairs, Mapping) for pairs in (env, entry.get("headers"))):
        problem = "Its variables and headers must be objects, {…}."
    elif wrong:
        problem = f"{wrong} must be text."
    elif is_sse(kind, str(url)):
        problem = SSE
    elif entry.get("envFile"):
        problem = "It reads variables from a file (envFile): write them in 'env', and remove envFile."
    elif not command and not url:
        problem = "It has neither a command nor a URL."
    if problem:
        return ClientServer(name=name, problem=problem)
    timeout = entry.get("tool_timeout_sec")
    return ClientServer(
        name=name,
        command="" if url else str(command),
        args=() if url else tuple(map(_text, _list(args))),
        env={} if url else {key: _text(value) for key, value in _pairs(env)},
        cwd="" if url else str(entry.get("cwd") or ""),
        url=str(url),
        headers={key: _text(value) for key, value in headers.items()},
        timeout=timeout if isinstance(timeout, int | float) else None,
        is_off=entry.get("disabled") is True or entry.get("enabled") is False,
    )


def is_sse(kind: str, url: str) -> bool:
    """Return whether a server is one of the old SSE transport, by what the file calls it or by its address."""
    return kind == "sse" or (not kind and url.rstrip("/").endswith("/sse"))


def _of_registry(document: Mapping[str, Any]) -> ClientServer:
    name = str(document.get("name") or "server").rpartition("/")[2]
    remotes = [remote for remote in _list(document.get("remotes")) if isinstance(remote, Mapping)]
    for remote in remotes:
        if remote.get("type") in ("streamable-http", "http"):
            headers, secrets = _inputs(_list(remote.get("headers")))
            url, missing = _filled(str(remote.get("url") or ""), remote.get("variables"))
            problem = f"Its URL needs a value for {{{missing}}}: write it in the file." if missing else ""
            return ClientServer(name=name, url=url, headers=headers, secrets=secrets, problem=problem)
    for package in _list(document.get("packages")):
        if isinstance(package, Mapping) and (server := _of_package(name, package)) is not None:
            return server
    kinds = "npm, PyPI or OCI"
    return ClientServer(
        name=name, problem=f"It has neither a remote server over HTTP nor a package of {kinds}."
    )


def _of_package(name: str, package: Mapping[str, Any]) -> ClientServer | None:
    kind = str(package.get("registryType") or package.get("registry_name") or "").lower()
    identifier, version = str(package.get("identifier") or package.get("name") or ""), package.get("version")
    env, secrets = _inputs(_list(package.get("environmentVariables") or package.get("environment_variables")))
    arguments, missing = _arguments(_list(package.get("packageArguments")))
    before, missing_before = _arguments(_list(package.get("runtimeArguments")))
    if kind == "oci":
        reference = identifier if ":" in identifier or not version else f"{identifier}:{version}"
        passed = [word for key in env for word in ("-e", key)]
        command, args = "docker", ["run", "-i", "--rm", *passed, *before, reference, *arguments]
    elif kind in _RUNNERS:
        command, first, sign = _RUNNERS[kind]
        args = [*first, *before, f"{identifier}{sign}{version}" if version else identifier, *arguments]
    else:
        return None
    problem = "".join(
        f"Its argument {name} has no value: add the server with `mcp add`."
        for name in (missing_before + missing)[:1]
    )
    return ClientServer(
        name=name,
        command=str(package.get("runtimeHint") or command),
        args=tuple(args),
        env=env,
        secrets=secrets,
        problem=problem,
    )


def _inputs(entries: list[Any]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the values of variables or headers by name, and which are secret. One without a value is a variable."""
    values, secrets = {}, set()
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            continue
        value = entry.get("value", entry.get("default"))
        if value is None and not (entry.get("isRequired") or entry.get("isSecret")):
            continue
        values[entry["name"]] = _text(value if value is not None else "")
        if entry.get("isSecret") or value is None:
            secrets.add(entry["name"])
    return values, frozenset(secrets)


def _arguments(entries: list[Any]) -> tuple[list[str], list[str]]:
    """Return the arguments, and the names of those that are required and have no value."""
    words: list[str] = []
    missing: list[str] = []
    for entry in entries:
        if not isinstance(entry, Mapping):
            continue
        value, name = (
            entry.get("value", entry.get("default")),
            str(entry.get("name") or entry.get("valueHint") or ""),
        )
        is_named = entry.get("type") == "named"
        if value is None and not (is_named and entry.get("format") == "boolean"):
            missing += [name or "without a name"] if entry.get("isRequired") else []
            continue
        words += [name] if is_named else []
        text, unfilled = _filled(_text(value), entry.get("variables")) if value is not None else ("", "")
        if unfilled and name in ("-e", "--env"):
            # A variable for a container: its value is to be set.
            variable = text.partition("=")[0]
            text = f"{variable}=${{{variable}}}"
        elif unfilled:
            missing.append(unfilled)
        words += [text] if value is not None else []
    return words, missing


def _filled(text: str, variables: Any) -> tuple[str, str]:
    """Return a text with the values of its variables, ``{name}``, and the name of one that has no value."""
    missing = ""
    for name, entry in _pairs(variables):
        definition = entry if isinstance(entry, Mapping) else {}
        value = definition.get("value", definition.get("default"))
        if value is not None:
            text = text.replace(f"{{{name}}}", _text(value))
        elif f"{{{name}}}" in text:
            missing = missing or name
    return text, missing


def _mapping(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return dict(_pairs(entry.get(key)))


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, Mapping) else ()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
