"""The registry's ``server.json``: a remote server is preferred, else a package is run with its own runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.control.servers.client_files import spellings

# How a package of the registry is run.
_RUNNERS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "npm": ("npx", ("-y",), "@"),
    "pypi": ("uvx", (), "=="),
}
_KINDS = "npm, PyPI or OCI"


def read(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields of a client's server from an entry of the registry, also as its API lists it; None if it is
    none.
    """
    inner = entry.get("server")
    outer = spellings.Fields(entry)
    is_listed = isinstance(inner, Mapping) and ("remotes" in inner or "packages" in inner)
    fields = outer.inside("server") if is_listed else outer
    if not isinstance(fields.document.get("remotes"), list) and not isinstance(
        fields.document.get("packages"), list
    ):
        return None
    name = str(fields.take("name") or "server").rpartition("/")[2]
    remotes, packages = fields.take("remotes"), fields.take("packages")
    server = _remote(remotes) or _package(packages)
    if server is None:
        server = {"problem": f"It has neither a remote server over HTTP nor a package of {_KINDS}."}
    labels = {"title": fields.take("title"), "description": fields.take("description")}
    return {
        **server,
        **{label: text for label, text in labels.items() if isinstance(text, str)},
        "name": name,
        "unused": tuple(outer.unused()),
    }


def _remote(remotes: Any) -> dict[str, Any] | None:
    given = [remote for remote in spellings.items(remotes) if isinstance(remote, Mapping)]
    # The old transport last: a server may offer both.
    for remote in sorted(given, key=lambda remote: remote.get("type") == "sse"):
        if remote.get("type") in ("streamable-http", "http", "sse"):
            headers, secrets = inputs(spellings.items(remote.get("headers")))
            url, missing = _filled(str(remote.get("url") or ""), remote.get("variables"))
            problem = f"Its URL needs a value for {{{missing}}}: write it in the file." if missing else ""
            return {"url": url, "headers": headers, "secrets": secrets, "problem": problem}
    return None


def _package(packages: Any) -> dict[str, Any] | None:
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, Mapping) and (server := _of_package(package)) is not None:
            return server
    return None


def _of_package(package: Mapping[str, Any]) -> dict[str, Any] | None:
    transport = package.get("transport")
    if isinstance(transport, Mapping) and transport.get("type") not in (None, "stdio"):
        return {
            "problem": "Its package answers over HTTP: start it yourself, and add the server by its address."
        }
    kind = str(package.get("registryType") or package.get("registry_name") or "").lower()
    identifier, version = str(package.get("identifier") or package.get("name") or ""), package.get("version")
    env, secrets = inputs(
        spellings.items(package.get("environmentVariables") or package.get("environment_variables"))
    )
    arguments, missing = _arguments(spellings.items(package.get("packageArguments")))
    before, missing_before = _arguments(spellings.items(package.get("runtimeArguments")))
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
    return {
        "command": str(package.get("runtimeHint") or command),
        "args": tuple(args),
        "env": env,
        "secrets": secrets,
        "problem": problem,
    }


def inputs(entries: list[Any]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the values of variables or headers by name, and which are secret. One without a value is a variable."""
    values, secrets = {}, set()
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            continue
        value = entry.get("value", entry.get("default"))
        if (
            value is None
            and not _is_marked(entry, "isRequired", "required")
            and not _is_marked(entry, "isSecret", "secret")
        ):
            continue
        values[entry["name"]] = spellings.text(value if value is not None else "")
        if value is None or _is_marked(entry, "isSecret", "secret"):
            secrets.add(entry["name"])
    return values, frozenset(secrets)


def _is_marked(entry: Mapping[str, Any], *keys: str) -> bool:
    return any(entry.get(key) is True for key in keys)


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
        text, unfilled = (
            _filled(spellings.text(value), entry.get("variables")) if value is not None else ("", "")
        )
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
            text = text.replace(f"{{{name}}}", spellings.text(value))
        elif f"{{{name}}}" in text:
            missing = missing or name
    return text, missing


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, Mapping) else ()
