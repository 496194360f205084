"""How is an upstream MCP server reached? By a command that is run on this machine, or at an address.

Environment, headers and address may name variables, ``${NAME}``: a connection is configuration, which is exported and
shown, and so it holds no secret itself. What a variable stands for is asked when the connection is made.
"""

from __future__ import annotations

import hashlib
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolbelt.core import addresses, schema

TIMEOUT = 30
LONGEST_TIMEOUT = 600
# What makes code run on the server: it comes in by another door than the rest.
RUN = ("command", "args", "env", "cwd")
ASKED = ("url", "headers")

Place = tuple[str, ...]

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_UNSOUND = re.compile(r"[\s\\\x00-\x1f\x7f]")
# In the name of a header or variable: its value is a secret, or might be one.
_SECRET_NAME = re.compile(
    r"passw|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|auth|cookie",
    re.IGNORECASE,
)
# Secrets that are known by their beginnings, wherever they stand.
_SECRET = re.compile(
    r"gh[pousr]_\w{20}|github_pat_\w{20}|glpat-[\w-]{16}|sk-[\w-]{16}|xox[abprs]-[\w-]{10}|AKIA[0-9A-Z]{16}"
    r"|AIza[\w-]{30}|hf_\w{20}|npm_\w{30}|ya29\.[\w-]{20}|eyJ[\w-]{10,}\.[\w-]{10}"
)
# Headers that never hold a secret. A literal value of any other is refused, unless it is too short to be one.
_HARMLESS_HEADERS = frozenset(
    "accept accept-charset accept-encoding accept-language anthropic-version cache-control content-language"  # noqa: SIM905
    " content-type dnt mcp-protocol-version origin pragma prefer referer user-agent x-github-api-version"
    " x-mcp-readonly x-mcp-tools x-mcp-toolsets".split()
)
# In the name of a header: even a short value is a secret.
_SECRET_HEADER = re.compile(
    r"key|secret|pass|pwd|auth|cookie|credential|sign|session|token(?!s)", re.IGNORECASE
)
_PLAIN = re.compile(r"\d*|true|false|on|off|yes|no|none|null|.{0,7}", re.IGNORECASE | re.DOTALL)
# Where a secret is kept, and not what it is; no header says that.
_PATH = re.compile(r"[./~].*", re.DOTALL)
# An address with a user's password in it: a user's name alone is none.
_USERINFO = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@:]*:([^\s/?#@]+)@", re.IGNORECASE)
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*|[A-Za-z_]\w*(?==))(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A way to a server: ``command`` with what belongs to it, or ``url`` with its headers. Seconds for each answer."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: int = TIMEOUT

    @property
    def shown(self) -> str:
        """Say in a line where it leads, for operators; variables stay names."""
        return " ".join((self.command, *self.args)) if self.command else self.url

    def variables(self) -> tuple[str, ...]:
        """Name the variables that it asks for, each once."""
        texts = (*self.env.values(), *self.headers.values(), self.url)
        found = (match[1] for text in texts for match in _REFERENCE.finditer(text))
        return tuple(dict.fromkeys(name for name in found if name))


def read(text: str) -> Connection | None:
    """Read the text of a connection; None where there is none, or one that leads nowhere (rows written elsewhere)."""
    return of(schema.mapping(text, {}))


def of(given: Mapping[str, Any]) -> Connection | None:
    """Read a connection as a belt has it; what does not fit is passed over."""
    args, timeout = given.get("args"), given.get("timeout")
    found = Connection(
        command=_text(given.get("command")),
        args=tuple(one for one in args if isinstance(one, str)) if isinstance(args, (list, tuple)) else (),
        env=_texts(given.get("env")),
        cwd=_text(given.get("cwd")),
        url=_text(given.get("url")),
        headers=_texts(given.get("headers")),
        timeout=timeout if type(timeout) is int and 0 < timeout <= LONGEST_TIMEOUT else TIMEOUT,
    )
    return found if found.command or found.url else None


def digest(text: str) -> str:
    """Give a short name for this very connection: another one must not be taken for it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def problems(given: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Say what is wrong with a connection as a belt has it, each with its place."""
    command, url = given.get("command"), given.get("url")
    if bool(command) == bool(url):
        yield (), "A server is reached by a 'command', or at a 'url': give one of the two."
        return
    for field_name in ASKED[1:] if command else RUN[1:]:
        if given.get(field_name):
            other = "url" if command else "command"
            yield (field_name,), f"{field_name!r} belongs to a {other!r}: leave it out."
    timeout = given.get("timeout", TIMEOUT)
    if not 0 < timeout <= LONGEST_TIMEOUT:
        yield ("timeout",), f"A server has 1 to {LONGEST_TIMEOUT} seconds for an answer."
    yield from _of_url(url) if url else _of_command(given)
    for field_name, named in (("env", _VARIABLE), ("headers", _HEADER)):
        for name, value in (given.get(field_name) or {}).items():
            yield from _of_value(field_name, named, name, value or "")


def _of_command(given: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    for place, text in (("command", given["command"]), ("cwd", given.get("cwd") or "")):
        if _CONTROL.search(text):
            yield (place,), f"{place!r} holds a control character: take it out."
    if _has_secret(given.get("args") or ()):
        yield ("args",), _ARGS_WAY_OUT


def _has_secret(args: Iterable[str | None]) -> bool:
    """Say whether one of the arguments is a secret by its looks, or by the option before it."""
    option = ""
    for one in args:
        text = one or ""
        match = _OPTION.fullmatch(text)
        name, value = (match[1], match[2] or "") if match else (option, text)
        if _holds_secret(text) or (name and _is_meant_as_secret(name, value, may_be_path=True)):
            return True
        option = match[1] if match and match[2] is None else ""
    return False


def _holds_secret(text: str) -> bool:
    """Say whether a secret stands in the text, as its looks tell."""
    literal = _REFERENCE.sub("", text)
    return bool(_SECRET.search(literal) or any(_literal(found[1]) for found in _USERINFO.finditer(text)))


def _is_meant_as_secret(name: str, value: str, *, may_be_path: bool) -> bool:
    """Say whether the name tells that a value is a secret, and the value stands there itself."""
    is_plain = _PLAIN.fullmatch(value) or (may_be_path and _PATH.fullmatch(value))
    return bool(_SECRET_NAME.search(name) and not is_plain and _literal(value))


def _literal(value: str) -> bool:
    """Say whether no variable stands in the value."""
    return not any(match[1] for match in _REFERENCE.finditer(value))


def _of_url(url: str) -> Iterator[tuple[Place, str]]:
    at = ("url",)
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        yield at, f"This is not a URL: {error}."
        return
    if _UNSOUND.search(url):
        yield at, "The URL holds a space, a backslash or a control character: write such signs as %20."
    elif parts.scheme not in ("http", "https") or not host or port == 0:
        yield at, "A URL begins with https:// or http://, and names a host."
    elif parts.username is not None or parts.password is not None:
        yield at, f"The URL holds a user name or a password. {_WAY_OUT}"
    elif "$" in parts.netloc:
        yield at, "The host of a URL is written out: a variable may stand behind it."
    elif _is_metadata(host):
        yield at, f"{host} is a platform's own address, which nothing here asks: give the server's."
    elif _SECRET.search(url) or any(
        _is_meant_as_secret(name, value, may_be_path=False)
        for name, value in urllib.parse.parse_qsl(parts.query)
    ):
        yield at, _WAY_OUT


_WAY_OUT = (
    "This looks like a secret, which no configuration holds: set a variable, and write ${NAME} in its place."
)
_HEADER_WAY_OUT = (
    "This may be a secret, which no configuration holds: set a variable, and write ${NAME} in its place. Written out"
    " are only headers that never hold one, such as Accept and User-Agent, and values of up to 7 characters."
)
_ARGS_WAY_OUT = (
    "This looks like a secret, which everybody on the machine can read in the arguments of a process: let the server"
    " read it from its environment, and write ${NAME} in 'env'."
)


def _of_value(field_name: str, named: re.Pattern[str], name: str, value: str) -> Iterator[tuple[Place, str]]:
    at = (field_name, name)
    if not named.fullmatch(name):
        what = "a variable" if field_name == "env" else "a header"
        yield at, f"{name!r} is not the name of {what}."
    if _CONTROL.search(value):
        yield at, f"{name!r} holds a control character: take it out."
    is_literal_header = field_name == "headers" and value and _literal(value)
    if (
        _holds_secret(value)
        or (is_literal_header and _SECRET_HEADER.search(name))
        or (field_name == "env" and _is_meant_as_secret(name, value, may_be_path=True))
    ):
        yield at, _WAY_OUT
    elif is_literal_header and name.lower() not in _HARMLESS_HEADERS and not _PLAIN.fullmatch(value):
        yield at, _HEADER_WAY_OUT


def _is_metadata(host: str) -> bool:
    try:
        return addresses.is_metadata(host)
    except ValueError:
        return False


def _text(given: Any) -> str:
    return given if isinstance(given, str) else ""


def _texts(given: Any) -> dict[str, str]:
    pairs = given.items() if isinstance(given, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}
