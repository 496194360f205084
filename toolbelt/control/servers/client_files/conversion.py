"""A client's server as a connection: each secret becomes ``${NAME}``, and the values are forgotten."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolbelt.control.servers.client_files import formats
from toolbelt.core import connections, secret_texts, texts, variables
from toolbelt.core.imported import cleaning

MAX_TITLE = 100
MAX_DESCRIPTION = 500

# What an import sets of a plugin.
ENTRY_FIELDS = ("title", "description", "active", "upstream", "reject_tools", "reject_all_but")

# How clients refer to variables and to what they ask their user for.
_CLIENT_REFERENCE = re.compile(
    r"\$\{env[:.](?P<env>\w+)(?::-(?P<env_default>[^{}]*))?\}|\$?\{env:(?P<opencode>\w+)\}"
    r"|\$\{(?:input:|secrets\.)(?P<input>[\w.-]+)\}"
    r"|\$\{(?P<name>[A-Za-z_]\w*):-(?P<default>[^{}]*)\}"
)
# What every client's user has, and what is the same everywhere.
_OF_EVERY_PROCESS = frozenset({"HOME", "PATH"})
_KNOWN = {"${userHome}": "${HOME}", "${/}": "/", "${pathSeparator}": "/"}
# The directory that a file is in, for what is beside it. Clients replace it by the one that they installed.
_OWN_DIRECTORY = ("${extensionPath}", "${__dirname}", "${CLAUDE_PLUGIN_ROOT}")
# Only in the files of some clients. In all others, Zwei$tier9blau is a password.
_BARE_REFERENCE = re.compile(r"\$(?P<bare>[A-Za-z_]\w*)")
# Not a variable of Toolbelt's, and names that only a client has.
_PLACEHOLDER = re.compile(
    r"(?<!\$)\$\{(?!(?!workspaceFolder|workspacePath|extensionPath|__dirname|CLAUDE_PLUGIN_ROOT)"
    r"[A-Za-z_]\w*(?::-[^{}]*)?\})[^}]*\}?|(?<!\$)\{file:[^}]*\}"
)
# Values that are no secret by their form, whatever their name: numbers, switches, words, paths, plain addresses.
_HARMLESS = re.compile(
    r"\d{1,7}|true|false|on|off|yes|no|none|null|[A-Za-z][A-Za-z ,_-]{0,30}|[./~][\w./ ~-]*|v?\d+(?:\.\d+)+"
    r"|https?://[\w.-]+(?::\d+)?(?:/[\w.~-]{0,15}){0,4}/?|[\w.-]+@[\w-]+(?:\.[\w-]+)+",
    re.IGNORECASE,
)
_OPTION_NAME = re.compile(r"--?[A-Za-z][\w.-]*=")
# A commit or an image: package@1f3a…, image@sha256:1f3a….
_VERSION_HASH = re.compile(r"(?:@|sha256:|:sha-)[0-9a-f]{7,64}\b")
# The scheme and the host of a URL, which may be variables.
_HEAD = re.compile(r"(?:\$\{[^{}]*\}|[^/?#$])*(?::?//(?:\$\{[^{}]*\}|[^/?#$])*)?")
_HEADER_LINE = re.compile(r"([\w-]+)\s*:\s*(.*)", re.DOTALL)
# A variable for a container: -eNAME=value, --env=NAME=value, or NAME=value after -e or --env.
_CONTAINER_VARIABLE = re.compile(
    r"(?P<option>--env=|-e(?=[A-Z_][A-Z0-9_]*=)|)(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL
)


@dataclass(slots=True, kw_only=True)
class Converted:
    """A server to import: its connection as in a belt, and the variables to set.

    ``source`` is its name in the file, and ``problem`` is why it cannot be imported; ``notes`` are to know.
    ``withheld`` are the places whose values were replaced, such as ``env.API_KEY``, each with its variable.
    ``unused`` are the keys of the file that are not taken over; ``active``: it is on in the client. ``rejections``
    tells what the two lists of tools reject.
    """

    name: str
    source: str
    title: str = ""
    description: str = ""
    active: bool = True
    connection: dict[str, Any] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    notes: list[str] = field(default_factory=list)
    unused: tuple[str, ...] = ()
    rejections: list[str] = field(default_factory=list)
    reject_tools: list[str] = field(default_factory=list)
    reject_all_but: list[str] = field(default_factory=list)

    @property
    def variables(self) -> list[str]:
        """Return the names of the variables to set: those without a default, and that not every process has."""
        connection = connections.of(self.connection)
        names = connection.variables_to_set() if connection is not None else ()
        return [name for name in names if name not in _OF_EVERY_PROCESS]

    @property
    def entry(self) -> dict[str, Any]:
        """Return the fields of the plugin that the server becomes, as in a belt, without its name."""
        fields = {
            field: getattr(self, "connection" if field == "upstream" else field) for field in ENTRY_FIELDS
        }
        fields["active"] = None if self.active else False
        return {field: value for field, value in fields.items() if value not in (None, "", [], {})}

    @classmethod
    def of_entry(cls, name: str, entry: Mapping[str, Any]) -> Converted:
        """Return the server with these fields of a plugin, which are checked when it is stored."""
        fields = {("connection" if field == "upstream" else field): value for field, value in entry.items()}
        return cls(name=name, source=name, **fields)


def convert(server: formats.ClientServer, assigned: dict[str, str], directory: str = "") -> Converted:
    """Return the server as a connection.

    ``assigned`` are the values that variables stand for in this file, so that two values never share a name.
    ``directory`` is where the file is, if what is beside it is there, too.
    """
    converted = Converted(
        name=server.name,
        source=server.name,
        title=shown(server.title, MAX_TITLE),
        description=shown(server.description, MAX_DESCRIPTION),
        active=not server.is_off,
        problem=server.problem,
        notes=[*server.notes],
        unused=server.unused,
        rejections=server.lists.sentences(),
        reject_tools=server.lists.rejected(server.name),
        reject_all_but=server.lists.not_rejected(server.name),
    )
    if server.problem:
        return converted
    if (remote := _of_mcp_remote(server)) is not None:
        server = remote
        converted.notes.append("mcp-remote is not needed: Toolbelt connects to the address itself.")
    replacer = _SecretReplacer(server, converted, assigned, directory)
    converted.connection = _connection(server, replacer)
    converted.problem = converted.problem or _problem(converted.connection)
    if converted.problem:
        # It may name what is left of a secret.
        converted.connection, converted.withheld = {}, {}
    else:
        converted.notes += _notes(converted.connection)
    return converted


def _connection(server: formats.ClientServer, replacer: _SecretReplacer) -> dict[str, Any]:
    """Return the fields of the connection that are not empty."""
    connection: dict[str, Any] = {}
    if server.url:
        connection["url"] = replacer.url(server.url)
        connection["headers"] = {name: replacer.header(name, value) for name, value in server.headers.items()}
    else:
        env = dict(server.env)
        args = [replacer.word(arg) for arg in _args(server.args, env)]
        connection |= {
            "command": replacer.word(server.command),
            "args": args,
            "cwd": replacer.directory(server.cwd),
        }
        connection["env"] = {name: replacer.variable(name, value) for name, value in env.items()}
    if server.timeout and -math.inf < server.timeout < math.inf:
        connection["timeout"] = min(max(1, int(server.timeout)), connections.MAX_TIMEOUT)
    return {key: value for key, value in connection.items() if value}


def _problem(connection: Mapping[str, Any]) -> str:
    """Return why the connection cannot be stored; empty if it can."""
    placeholder = next(filter(None, map(_PLACEHOLDER.search, _texts(connection))), None)
    if placeholder and placeholder[0] in _OWN_DIRECTORY:
        return (
            f"It uses {placeholder[0]}, the directory of its file: import the file where it is, on the server and"
            " unpacked, or write the directory instead."
        )
    if placeholder:
        return f"It uses {placeholder[0]}, which only its client knows: write the value instead."
    for where, message in connections.problems(connection):
        return f"{'.'.join(where)}: {message}".removeprefix(": ")
    if _may_hold_secret(_words(connection)):
        return (
            "Its command line may contain a secret, which every user of the machine could read: let the server read it"
            " from its environment, and write it in 'env'. If it does not, write ${NAME} instead, and set it."
        )
    return ""


class _SecretReplacer:
    """A converter that replaces the secrets of one server by variables, and lists those."""

    def __init__(
        self, server: formats.ClientServer, converted: Converted, assigned: dict[str, str], directory: str
    ) -> None:
        self._server, self._converted, self._assigned = server, converted, assigned
        own = directory.replace("${", "$${")
        self._known = {**_KNOWN, **(dict.fromkeys(_OWN_DIRECTORY, own) if own else {})}

    def variable(self, name: str, value: str) -> str:
        """Return the value of an environment variable."""
        kept = self._kept(name, value, _is_harmless)
        return kept if kept is not None else self._withheld(f"env.{name}", name, value)

    def header(self, name: str, value: str) -> str:
        """Return the value of a header. The scheme of an Authorization header stays."""
        if not value.isascii():
            self._converted.problem = (
                f"headers.{name} contains a character that a header cannot have: use ASCII."
            )
            return ""
        if (kept := self._kept(name, value, _is_harmless_header)) is not None:
            bare = variables.without_defaults(kept)
            if bare != kept and not _is_harmless_header(name, kept):
                self._converted.withheld[f"the default in headers.{name}"] = next(variables.names(kept))
                return bare
            return kept
        scheme, has_space, secret = value.partition(" ")
        if not has_space or scheme.lower() not in ("bearer", "basic", "token"):
            scheme, secret = "", value
        end = "TOKEN" if name.lower() == "authorization" else name
        return f"{scheme} {self._withheld(f'headers.{name}', f'{self._server.name}_{end}', secret)}".strip()

    def url(self, url: str) -> str:
        """Return the URL, with variables for the secrets in its query and its long parts of the path."""
        url = self._translated(self._with_host(url))
        if self._converted.problem:
            return ""
        try:
            parts = urllib.parse.urlsplit(url)
        except ValueError:
            return url  # reported as a problem of the connection
        if parts.username is not None or parts.password is not None:
            self._converted.problem = (
                "Its URL contains a user name or a password: remove them, and add the header Authorization."
            )
            return ""
        address = parts.netloc + parts.path
        if secret_texts.has_known_form(address) and not any(
            map(secret_texts.has_known_form, address.split("/"))
        ):
            self._converted.problem = (
                "Its URL is a secret: add the server with `mcp add`, and a variable in the path."
            )
            return ""
        query = "&".join(
            f"{name}={self._part(f'url?{name}', name, value, _is_harmless(name, value))}"
            if has_value
            else name
            for name, has_value, value in (part.partition("=") for part in parts.query.split("&"))
            if name
        )
        path = "/".join(
            self._part("url", "path", part, not (_looks_random(part) or secret_texts.is_value(part)))
            for part in parts.path.split("/")
        )
        return f"{parts.scheme}://{parts.netloc}{path}{'?' + query if query else ''}"

    def word(self, value: str) -> str:
        """Return a part of the command line: what may be a secret in it is checked later."""
        translated = self._translated(value)
        self._assign(translated)
        return translated

    def directory(self, path: str) -> str:
        """Return the working directory. Only a shell replaces ``~``."""
        if path == "~" or path.startswith(("~/", "~\\")):
            self._converted.notes.append("~ in its cwd is written ${HOME}.")
            path = "${HOME}" + path[1:]
        return self.word(path)

    def _with_host(self, url: str) -> str:
        """Return a URL whose scheme and host are written out, by the defaults of their variables."""
        head = _HEAD.match(url)
        before, after = (url[: head.end()], url[head.end() :]) if head is not None else ("", url)
        translated = self._translated(before)
        if missing := [*variables.required(translated)]:
            self._converted.problem = (
                f"The host of its URL is in the variable {missing[0]}: write the host in the file. Only the path and"
                " the query may be variables."
            )
        elif names := [*variables.names(translated)]:
            self._converted.notes.append(
                f"{names[0]} is not used: its default is written out, because the host of a URL is no variable."
            )
        return variables.written_out(translated) + after

    def _part(self, where: str, name: str, value: str, is_harmless: bool) -> str:
        kept = self._kept(name, value, lambda _, __: is_harmless)
        return kept if kept is not None else self._withheld(where, f"{self._server.name}_{name}", value)

    def _kept(self, name: str, value: str, is_harmless: Callable[[str, str], bool]) -> str | None:
        """Return the value with references as Toolbelt writes them; None if it is, or may contain, a secret.

        What looks like a secret is never kept in part: a reference within it may belong to the secret.
        """
        translated = self._translated(value)
        literal = variables.written_out(translated)
        has_reference = literal != translated
        if "{file:" in value:
            return None
        if name in self._server.secrets or _means_secret(name):
            keeps = has_reference and secret_texts.is_reference(translated)
        else:
            keeps = has_reference and _may_stand_beside_reference(name, literal)
        if not keeps and (name in self._server.secrets or not is_harmless(name, value)):
            return None
        self._assign(translated)
        return translated

    def _withheld(self, where: str, name: str, value: str) -> str:
        reference = self._reference(name, value)
        self._converted.withheld[where] = reference[2:-1]
        return reference

    def _translated(self, value: str) -> str:
        """Return the value with the client's ways to name a variable replaced by Toolbelt's."""

        def replaced(match: re.Match[str]) -> str:
            groups = match.groupdict()
            name = self._variable_name(
                next(groups[key] for key in ("env", "opencode", "input", "name") if groups.get(key)),
                keeps_case=not groups.get("input"),
            )
            default = groups["env_default"] if groups["env"] else groups["default"]
            if default and not _is_harmless(name, default):
                self._converted.withheld[f"the default of {name}"] = name
                default = None
            return f"${{{name}}}" if default is None else f"${{{name}:-{default}}}"

        for known, text in self._known.items():
            value = value.replace(known, text)
        value = _CLIENT_REFERENCE.sub(replaced, value)
        return (
            _BARE_REFERENCE.sub(lambda match: f"${{{self._variable_name(match[1])}}}", value)
            if self._server.has_bare_references
            else value
        )

    def _assign(self, value: str) -> None:
        """Note the variables of a value, so that no secret gets the name of one."""
        for name in variables.names(value):
            self._assigned.setdefault(name, "")

    def _reference(self, name: str, value: str) -> str:
        """Return the reference to a variable for this value. Another value of the same name gets another one."""
        name = self._variable_name(name, value)
        self._assigned[name] = value
        return f"${{{name}}}"

    def _variable_name(self, name: str, value: str = "", *, keeps_case: bool = False) -> str:
        if not keeps_case:
            name = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper() or "SECRET"
        name = f"_{name}" if name[0].isdigit() else name
        server = re.sub(r"\W+", "_", self._server.name, flags=re.ASCII).upper()
        is_taken = connections.is_reserved(name) or self._assigned.get(name, value) != value
        return f"MCP_{server}_{name}" if is_taken else name


def _args(args: tuple[str, ...], env: dict[str, str]) -> list[str]:
    """Return the arguments; `docker run -e NAME=value` becomes `-e NAME`, with the value in the environment."""
    words = list(args)
    for number, arg in enumerate(args):
        match = _CONTAINER_VARIABLE.fullmatch(arg)
        if match is not None and (match["option"] or (number and args[number - 1] in ("-e", "--env"))):
            words[number] = match["option"] + match["name"]
            env.setdefault(match["name"], match["value"])
    return words


def _of_mcp_remote(server: formats.ClientServer) -> formats.ClientServer | None:
    """Return the server behind the bridge `mcp-remote`; None if this is not that."""
    at = next((n for n, arg in enumerate(server.args) if arg.split("@")[0] == "mcp-remote"), None)
    words = server.args[at + 1 :] if at is not None else ()
    if not words or not words[0].startswith(("http://", "https://")):
        return None
    headers = {}
    for option, line in itertools.pairwise(words):
        match = _HEADER_LINE.fullmatch(line) if option == "--header" else None
        if match is not None:
            # It replaces ${NAME} by its own environment.
            value = re.sub(r"\$\{(\w+)\}", lambda name: server.env.get(name[1], name[0]), match[2])
            headers[match[1]] = value
    return dataclasses.replace(server, command="", args=(), env={}, cwd="", url=words[0], headers=headers)


def _is_harmless(name: str, value: str) -> bool:
    if value == "":
        return True
    if secret_texts.is_secret(name, value) or any(
        len(part) >= 32 and _looks_random(part) for part in value.split("/")
    ):
        return False
    looks_harmless = bool(_HARMLESS.fullmatch(value)) or (len(value) < 16 and not _means_secret(name))
    is_path_or_address = value.startswith((".", "/", "~")) or "://" in value
    return looks_harmless and (is_path_or_address or not _means_secret(name))


def _is_harmless_header(name: str, value: str) -> bool:
    """Return whether a connection takes this literal value: it takes those of headers that never hold a secret."""
    return not [*connections.problems({"url": "https://x", "headers": {name: value}})]


def _means_secret(name: str) -> bool:
    return secret_texts.is_header_name(name)


def _may_stand_beside_reference(name: str, literal: str) -> bool:
    """Return whether a text around references may stay: it is short or plain, and no secret."""
    return not secret_texts.is_secret(name, literal) and (
        len(literal) < 16 or bool(_HARMLESS.fullmatch(literal))
    )


def _may_hold_secret(words: Sequence[str]) -> bool:
    """Return whether a command line may hold a secret: by the form of a word, or as the value of what is named so."""
    option = ""
    for word in words:
        name, _, value = word.lstrip("-").partition("=")
        if not word.startswith("-") and "=" not in word:
            name, value = option, word
        if _may_be_secret(word) or secret_texts.is_secret(name, value) or secret_texts.has_known_form(word):
            return True
        # Not -eNAME, which passes on a variable.
        option = word.lstrip("-") if re.fullmatch(r"--?[a-z][a-z0-9-]*", word) else ""
    return False


def _may_be_secret(word: str) -> bool:
    """Return whether a word of a command line may hold a secret: a long part that mixes letters and digits.

    Paths may, because programs are in directories with such names, and so may versions that are named by their hash.
    """
    value = _OPTION_NAME.sub("", word)
    if value.startswith((".", "~")) or (value.startswith("/") and "/" in value[1:]):
        return False
    for part in re.split(r"[^\w.+-]+", _VERSION_HASH.sub("", value)):
        # 2025-11-25, v1.2.3 and server-name are no secrets; in 5f1b3c1e-9c4d-… nearly every piece mixes both.
        mixed = [piece for piece in re.split(r"[._+-]", part) if re.search(r"\d[A-Za-z]|[A-Za-z]\d", piece)]
        if sum(map(len, mixed)) >= 16:
            return True
    return False


def _looks_random(text: str) -> bool:
    return len(text) >= 20 and bool(re.search(r"\d", text)) and bool(re.search(r"[A-Za-z]", text))


def _notes(connection: Mapping[str, Any]) -> Iterator[str]:
    """Yield a note for what looks like a variable and is none, and for a secret variable that others can read."""
    if match := next(filter(None, map(_BARE_REFERENCE.search, _texts(connection))), None):
        yield f"{match[0]} is passed on as it is written: a variable is written ${{NAME}}."
    for name in dict.fromkeys(name for word in _words(connection) for name in variables.names(word)):
        if secret_texts.is_name(name):
            yield f"{name} is in the command line, which every user of the machine can read."


def shown(text: str, maximum: int) -> str:
    """Return a text of the file that operators read."""
    return texts.cut(cleaning.escape_hidden(" ".join(secret_texts.masked(text).split())), maximum)


def _words(connection: Mapping[str, Any]) -> list[str]:
    return [connection.get("command", ""), connection.get("cwd", ""), *connection.get("args", ())]


def _texts(connection: Mapping[str, Any]) -> list[str]:
    values = [*connection.get("env", {}).values(), *connection.get("headers", {}).values()]
    return [connection.get("url", ""), *_words(connection), *values]
