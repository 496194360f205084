"""Connections to upstream MCP servers: a command to run on this machine or a URL, and who shares a connection.

A server may keep state for each connection, such as an open page. Every text of a connection may refer to variables,
``${NAME}`` (:mod:`toolbelt.core.variables`): a connection is configuration, which is exported and shown, so it must not
hold a secret. Variables are resolved when the connection is opened.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbelt.core import addresses, schema, secret_texts, variables

Sharing = Literal["", "shared", "agent", "session"]
Revision = Literal["", "2025-11-25", "2026-07-28"]
SignIn = Literal["", "shared", "person"]

TIMEOUT = 30
MAX_TIMEOUT = 600
# Who shares a connection: all agents, all sessions of an agent, or a single session.
SHARING: tuple[Sharing, ...] = ("shared", "agent", "session")
# The revision of MCP to speak: one that begins with an initialization, or the stateless one. Without it, the server is
# probed.
REVISIONS: tuple[Revision, ...] = ("2025-11-25", "2026-07-28")
# Who signs in at a server that wants OAuth: an operator for all agents, or each person whose client calls.
SIGN_INS: tuple[SignIn, ...] = ("shared", "person")
# How many seconds the connection of an agent or session stays open without a call.
IDLE = 900
MAX_IDLE = 86_400
# How many connections to a server one process keeps open.
MAX_CONNECTIONS = 20
MAX_CONNECTIONS_LIMIT = 1_000
# The largest result or resource that a connection may allow, in bytes.
MAX_BYTES = 32 * 1024 * 1024
# The longest scope that a server may demand.
MAX_SCOPE = 200
# Fields that run code on the server. Writing them requires a separate permission.
COMMAND_FIELDS = ("command", "args", "env", "cwd")
URL_FIELDS = ("url", "headers")
SIGN_IN_FIELDS = ("sign_in", "client_id", "client_secret", "issuer", "scopes")
# What few servers need, of either kind.
RARE_FIELDS = ("sharing", "idle", "max_connections", "revision", "result_bytes", "resource_bytes")

# Toolbelt's own configuration, which no server may receive.
_RESERVED_PREFIX = "TOOLBELT_"
_RESERVED = frozenset(
    {
        "SECRET_KEY",
        "SECRET_KEY_FALLBACKS",
        "DATABASE_URL",
        "REDIS_URL",
        "DEMO_PASSWORD",
        "DJANGO_SETTINGS_MODULE",
    }
)

Path = tuple[str, ...]

AUTHORIZATION = "authorization"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# RFC 6749, 3.3.
_SCOPES = re.compile(r"([!#-\[\]-~]+( [!#-\[\]-~]+)*)?")
_UNSOUND = re.compile(r"[\s\\\x00-\x1f\x7f]")
# Headers that never hold a secret. A literal value of any other header is refused, unless it is too short to be one.
_HARMLESS_HEADERS = frozenset(
    "accept accept-charset accept-encoding accept-language anthropic-version cache-control content-language"  # noqa: SIM905
    " content-type dnt mcp-protocol-version origin pragma prefer referer user-agent x-github-api-version"
    " x-mcp-readonly x-mcp-tools x-mcp-toolsets".split()
)
_SHORT = re.compile(r"\d*|true|false|on|off|yes|no|none|null|.{0,7}", re.IGNORECASE | re.DOTALL)
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*|[A-Za-z_]\w*(?==))(?:=(.*))?", re.DOTALL)
_PASSED_ON = re.compile(r"-e[A-Z_][A-Z0-9_]*")
# As bridges take it: `--header "Authorization: Bearer …"`.
_HEADER_LINE = re.compile(r"([A-Za-z][\w-]*):\s*(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection to a server: ``command`` and its fields, or ``url`` and its headers; ``timeout`` in seconds per
    answer.

    ``sharing`` is who shares a connection; empty if the kind of server decides. ``idle`` is how many seconds the
    connection of an agent or session stays open without a call; ``max_connections`` is the limit of a process.
    ``revision`` is the one of MCP to speak, or an earlier one without its own handshake; empty to probe the server.
    ``result_bytes`` and ``resource_bytes`` limit a result of a tool and a resource; 0: as for all servers.
    ``sign_in`` is who signs in with OAuth; empty: no one does. ``client_id`` and ``client_secret`` are those of a
    client that an operator has registered; without them, Toolbelt registers itself. ``issuer`` is the authorization
    server for which they are, and the only one that is used; empty: not confirmed yet. ``scopes`` are asked for,
    separated by spaces; empty: those that the server names.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: int = TIMEOUT
    sharing: Sharing = ""
    idle: int = IDLE
    max_connections: int = MAX_CONNECTIONS
    revision: Revision = ""
    result_bytes: int = 0
    resource_bytes: int = 0
    sign_in: SignIn = ""
    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    scopes: str = ""

    @property
    def shown(self) -> str:
        """Return the command line or URL in one line, for operators; variables keep their names."""
        return " ".join((self.command, *self.args)) if self.command else self.url

    def shared_by(self, *, has_session: bool | None) -> Sharing:
        """Return who shares a connection; ``has_session`` is whether an HTTP server assigned a session id.

        A process keeps state for its client, and so may a server with sessions. Returns an empty text if that is not
        known yet.
        """
        if self.sharing or self.command or has_session:
            return self.sharing or "session"
        return "" if has_session is None else "shared"

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts that may refer to variables."""
        return (
            self.command,
            *self.args,
            self.cwd,
            *self.env.values(),
            self.url,
            *self.headers.values(),
            self.client_secret,
        )

    @property
    def has_authorization(self) -> bool:
        """Return whether a header of the connection authorizes its requests."""
        return any(name.lower() == AUTHORIZATION for name in self.headers)

    def variables(self) -> tuple[str, ...]:
        """Return the names of the variables that it uses, each once."""
        return tuple(dict.fromkeys(name for text in self.texts for name in variables.names(text)))

    def variables_to_set(self) -> tuple[str, ...]:
        """Return the names of the variables that it uses without a default, each once."""
        return tuple(dict.fromkeys(name for text in self.texts for name in variables.required(text)))

    def filled(self, fill: Callable[[str], str]) -> Connection:
        """Return the connection with ``fill`` applied to each text that may refer to variables."""
        return dataclasses.replace(
            self,
            command=fill(self.command),
            args=tuple(map(fill, self.args)),
            env={name: fill(value) for name, value in self.env.items()},
            cwd=fill(self.cwd),
            url=fill(self.url),
            headers={name: fill(value) for name, value in self.headers.items()},
            client_secret=fill(self.client_secret),
        )


@functools.lru_cache(256)
def read(text: str) -> Connection | None:
    """Return the connection from its JSON text; None if it is missing or invalid."""
    return of(schema.mapping(text, {}))


def of(fields: Mapping[str, Any]) -> Connection | None:
    """Return the connection from its fields in a belt; what does not fit is skipped."""
    args, sharing, revision = fields.get("args"), fields.get("sharing"), fields.get("revision")
    sign_in = fields.get("sign_in")
    connection = Connection(
        command=_text(fields.get("command")),
        args=tuple(arg for arg in args if isinstance(arg, str)) if isinstance(args, (list, tuple)) else (),
        env=_texts(fields.get("env")),
        cwd=_text(fields.get("cwd")),
        url=_text(fields.get("url")),
        headers=_texts(fields.get("headers")),
        timeout=_number(fields.get("timeout"), MAX_TIMEOUT, TIMEOUT),
        sharing=sharing if sharing in SHARING else "",
        idle=_number(fields.get("idle"), MAX_IDLE, IDLE),
        max_connections=_number(fields.get("max_connections"), MAX_CONNECTIONS_LIMIT, MAX_CONNECTIONS),
        revision=revision if revision in REVISIONS else "",
        result_bytes=_number(fields.get("result_bytes"), MAX_BYTES, 0),
        resource_bytes=_number(fields.get("resource_bytes"), MAX_BYTES, 0),
        sign_in=sign_in if sign_in in SIGN_INS else "",
        client_id=_text(fields.get("client_id")),
        client_secret=_text(fields.get("client_secret")),
        issuer=_text(fields.get("issuer")),
        scopes=_text(fields.get("scopes")),
    )
    return connection if connection.command or connection.url else None


def digest(text: str) -> str:
    """Return a short identifier of this exact connection."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_reserved(variable: str) -> bool:
    """Return whether a variable of the environment is Toolbelt's own, which no server may receive."""
    return variable.startswith(_RESERVED_PREFIX) or variable in _RESERVED


def is_listed(variable: str, listed: Iterable[str]) -> bool:
    """Return whether a variable is one of the listed names, or begins with a listed prefix, such as ``MCP_*``."""
    return any(variable.startswith(name[:-1]) if name.endswith("*") else variable == name for name in listed)


def is_scope(text: str) -> bool:
    """Return whether a text is one scope of OAuth, of a length that people can read."""
    return bool(text) and len(text) <= MAX_SCOPE and " " not in text and bool(_SCOPES.fullmatch(text))


def problems(fields: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the problems of a connection's fields in a belt, each with its place."""
    command, url = fields.get("command"), fields.get("url")
    if bool(command) == bool(url):
        yield (), "A server needs either a 'command' or a 'url': give one of the two."
        return
    for field_name in (*URL_FIELDS[1:], *SIGN_IN_FIELDS) if command else COMMAND_FIELDS[1:]:
        if fields.get(field_name):
            other = "url" if command else "command"
            yield (field_name,), f"{field_name!r} belongs to a {other!r}: remove it."
    timeout = fields.get("timeout", TIMEOUT)
    if not 0 < timeout <= MAX_TIMEOUT:
        yield ("timeout",), f"The timeout must be 1 to {MAX_TIMEOUT} seconds."
    if not 0 < fields.get("idle", IDLE) <= MAX_IDLE:
        yield ("idle",), f"The idle time must be 1 to {MAX_IDLE} seconds."
    if not 0 < fields.get("max_connections", MAX_CONNECTIONS) <= MAX_CONNECTIONS_LIMIT:
        yield (
            ("max_connections",),
            f"The number of connections must be 1 to {MAX_CONNECTIONS_LIMIT}.",
        )
    for field_name in ("result_bytes", "resource_bytes"):
        if not 0 < fields.get(field_name, 1) <= MAX_BYTES:
            yield (field_name,), f"The limit must be 1 to {MAX_BYTES} bytes."
    yield from _of_url(url) if url else _of_command(fields)
    yield from _of_sign_in(fields)
    for field_name, name_form in (("env", _VARIABLE), ("headers", _HEADER)):
        for name, value in (fields.get(field_name) or {}).items():
            yield from _of_value(field_name, name_form, name, value or "")


def _of_command(fields: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for field_name, text in (("command", fields["command"]), ("cwd", fields.get("cwd") or "")):
        if _CONTROL.search(text):
            yield (field_name,), f"{field_name!r} contains a control character: remove it."
    if _has_secret(fields.get("args") or ()):
        yield ("args",), _ARGS_WAY_OUT


def _has_secret(args: Iterable[str | None]) -> bool:
    """Return whether one of the arguments is a secret, by its form or by the option before it."""
    option = ""
    for arg in args:
        text = arg or ""
        match = _OPTION.fullmatch(text)
        pairs = [(match[1], match[2] or "") if match else (option, text)]
        # The argument, or the value of its option, may itself be a variable, a header or a URL: --env=NAME=value.
        inner = match[2] or "" if match else text
        matches = [form.fullmatch(inner) for form in (_OPTION, _HEADER_LINE)]
        pairs += [(match[1], match[2] or "") for match in matches if match]
        if (
            secret_texts.has_known_form(text)
            or _has_secret_in_query(inner)
            or any(_is_meant_as_secret(name, value, may_be_path=True) for name, value in pairs)
        ):
            return True
        # -eNAME passes a variable on to a container: the word after it is not its value.
        is_passed_on = bool(match) and _PASSED_ON.fullmatch(text)
        option = match[1] if match and match[2] is None and not is_passed_on else ""
    return False


def _has_secret_in_query(url: str) -> bool:
    """Return whether a parameter of the URL is a secret."""
    pairs = urllib.parse.parse_qsl(url.partition("#")[0].partition("?")[2])
    return any(_is_meant_as_secret(name, value, may_be_path=False) for name, value in pairs)


def _is_meant_as_secret(name: str, value: str, *, may_be_path: bool) -> bool:
    """Return whether the name announces a secret, and the value is literal and long enough to be one."""
    is_path = may_be_path and value.startswith((".", "/", "~"))
    return (
        secret_texts.is_name(name)
        and not is_path
        and not _SHORT.fullmatch(value)
        and variables.is_literal(value)
    )


def _of_url(url: str) -> Iterator[tuple[Path, str]]:
    at = ("url",)
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        yield at, f"This is not a URL: {error}."
        return
    if _UNSOUND.search(url):
        yield at, "The URL contains a space, a backslash or a control character: encode it, as in %20."
    elif parts.scheme not in ("http", "https") or not host or port == 0:
        yield at, "A URL begins with https:// or http://, and names a host."
    elif parts.username is not None or parts.password is not None:
        yield at, f"The URL contains a user name or a password. {_WAY_OUT}"
    elif "$" in parts.netloc:
        yield at, "The host of a URL cannot contain a variable: only the path and the query may."
    elif _is_metadata(host):
        yield at, f"{host} is a cloud platform's own address, which is blocked: give the server's address."
    elif secret_texts.has_known_form(url) or _has_secret_in_query(url):
        yield at, _WAY_OUT


def _of_sign_in(fields: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    client_id, secret = fields.get("client_id") or "", fields.get("client_secret") or ""
    if fields.get("sign_in") and AUTHORIZATION in map(str.lower, fields.get("headers") or ()):
        yield (
            ("sign_in",),
            "A server that is signed in to is sent the token of the sign-in: remove the header 'Authorization', or"
            " 'sign_in'.",
        )
    if secret and not client_id:
        yield ("client_secret",), "A client secret belongs to a client id: give 'client_id', too."
    if secret and variables.is_literal(secret):
        yield ("client_secret",), _WAY_OUT
    issuer = fields.get("issuer") or ""
    if issuer and (_UNSOUND.search(issuer) or not issuer.startswith(("https://", "http://"))):
        yield ("issuer",), "An issuer is the address of an authorization server: it begins with https://."
    for field_name in ("client_id", "client_secret"):
        if _CONTROL.search(fields.get(field_name) or ""):
            yield (field_name,), f"{field_name!r} contains a control character: remove it."
    if not _SCOPES.fullmatch(fields.get("scopes") or ""):
        yield (
            ("scopes",),
            "Scopes are words of ASCII without quotes and backslashes, separated by single spaces.",
        )


_WAY_OUT = "This looks like a secret, which must not be stored: set an environment variable, and write ${NAME} instead."
_HEADER_WAY_OUT = (
    "This may be a secret, which must not be stored: set an environment variable, and write ${NAME} instead. Literal"
    " values are only allowed for headers that never hold a secret, such as Accept and User-Agent, or are short."
)
_ARGS_WAY_OUT = (
    "This looks like a secret, and every user of the machine can read the arguments of a process: let the server read"
    " it from its environment, and write ${NAME} in 'env'."
)


def _of_value(
    field_name: str, name_form: re.Pattern[str], name: str, value: str
) -> Iterator[tuple[Path, str]]:
    at = (field_name, name)
    if not name_form.fullmatch(name):
        kind = "a variable" if field_name == "env" else "a header"
        yield at, f"{name!r} is not the name of {kind}."
    if _CONTROL.search(value):
        yield at, f"{name!r} contains a control character: remove it."
    if field_name == "headers" and not variables.written_out(value).isascii():
        yield at, f"{name!r} contains a character that a header cannot have: write it in ASCII."
    is_literal_header = field_name == "headers" and value and variables.is_literal(value)
    if (
        secret_texts.has_known_form(value)
        or (is_literal_header and secret_texts.is_header_name(name))
        or (field_name == "env" and _is_meant_as_secret(name, value, may_be_path=True))
    ):
        yield at, _WAY_OUT
    elif is_literal_header and name.lower() not in _HARMLESS_HEADERS and not _SHORT.fullmatch(value):
        yield at, _HEADER_WAY_OUT


def _is_metadata(host: str) -> bool:
    try:
        return addresses.is_metadata(host)
    except ValueError:
        return False


def _number(value: Any, maximum: int, default: int) -> int:
    return value if type(value) is int and 0 < value <= maximum else default


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(mapping: Any) -> dict[str, str]:
    pairs = mapping.items() if isinstance(mapping, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}
