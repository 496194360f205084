"""The formats of clients' files: where each has its servers, and what it calls their fields.

| client | servers are in | notes |
|---|---|---|
| Claude, Cursor, Windsurf, Cline, Gemini CLI, Copilot CLI, ``mcp.json`` | ``mcpServers`` | ``serverUrl`` and ``httpUrl`` are URLs |
| VS Code | ``servers``, or ``mcp.servers`` in its settings | secrets are ``${input:ID}`` |
| Codex (TOML) | ``mcp_servers`` | ``bearer_token_env_var``, ``http_headers``, ``env_http_headers`` |
| Zed | ``context_servers`` | an older ``command`` is an object: ``path``, ``args``, ``env`` |
| opencode | ``mcp``, or ``mcp.servers`` | ``command`` is a list, ``environment`` are its variables |
| registry's ``server.json`` | ``remotes`` and ``packages`` | a remote server is preferred |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# How a package of the registry is run.
_RUNNERS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "npm": ("npx", ("-y",), "@"),
    "pypi": ("uvx", (), "=="),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientServer:
    """A server as a client has it. ``secrets`` are the names of variables and headers that the file marks as secret.

    ``problem`` is why it cannot be imported, as far as the format itself tells; ``is_off`` if the client has it off.
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


def servers(document: Mapping[str, Any]) -> list[ClientServer]:
    """Return the servers in a document, in its order; none if it has none of the formats."""
    if "remotes" in document or "packages" in document:
        return [_of_registry(document)]
    return [_read(name, entry) for name, entry in _entries(document)]


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
    texts = [command or "", url, entry.get("cwd") or "", *_list(args), *_values(env), *_values(headers)]
    problem = ""
    if args is not None and not isinstance(args, list):
        problem = "Its arguments must be a list."
    elif not all(pairs is None or isinstance(pairs, Mapping) for pairs in (env, entry.get("headers"))):
        problem = "Its variables and headers must be objects, {…}."
    elif not all(isinstance(text, str | int | float) for text in texts):
        problem = "Its command, arguments, variables and headers must be texts."
    elif kind == "sse" or (not kind and str(url).rstrip("/").endswith("/sse")):
        problem = (
            "It uses the old SSE transport. Write its address for Streamable HTTP, which often ends in /mcp."
        )
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


def _of_registry(document: Mapping[str, Any]) -> ClientServer:
    name = str(document.get("name") or "server").rpartition("/")[2]
    remotes = [remote for remote in _list(document.get("remotes")) if isinstance(remote, Mapping)]
    for remote in remotes:
        if remote.get("type") in ("streamable-http", "http"):
            headers, secrets = _inputs(_list(remote.get("headers")))
            return ClientServer(name=name, url=str(remote.get("url") or ""), headers=headers, secrets=secrets)
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
    given, missing = _arguments(_list(package.get("packageArguments")))
    before, missing_before = _arguments(_list(package.get("runtimeArguments")))
    if kind == "oci":
        reference = identifier if ":" in identifier or not version else f"{identifier}:{version}"
        passed = [word for key in env for word in ("-e", key)]
        command, args = "docker", ["run", "-i", "--rm", *passed, *before, reference, *given]
    elif kind in _RUNNERS:
        command, first, sign = _RUNNERS[kind]
        args = [*first, *before, f"{identifier}{sign}{version}" if version else identifier, *given]
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
        words += [_text(value)] if value is not None else []
    return words, missing


def _mapping(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return dict(_pairs(entry.get(key)))


def _pairs(given: Any) -> Iterator[tuple[str, Any]]:
    yield from given.items() if isinstance(given, Mapping) else ()


def _values(given: Any) -> list[Any]:
    return [value for _, value in _pairs(given)]


def _list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
