"""Comparison of URIs, so that a denied one is not requested in another spelling.

Servers differ in what they treat as equal: some decode a URI twice, ignore case, or drop what they do not know.
Toolbelt cannot know which of this a server does. Therefore a request through a template is refused if any common
reading of its URI is a denied one, and :func:`problem` refuses spellings that no client needs.

URIs are compared decoded until nothing changes, and without regard to: case; compatible forms of Unicode (NFKC);
invisible characters, white space and ``+``; leading zeros and the digits of other scripts; ``\\`` and ``/``; empty and
dot segments, and dots at the end of a segment; the user; a default port; the host of a ``file:`` URI; how an IP address
or an internationalized host is written; the order of parameters; and the fragment. What one URI leaves out (port,
parameters), it covers with any value.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import socket
import unicodedata
import urllib.parse
from collections.abc import Mapping
from typing import Any, NamedTuple

import re2

from toolbelt.core import uri_templates

# After this many rounds of decoding, a URI counts as any URI.
MAX_ROUNDS = 10
_PORTS = {"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21"}
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_NOT_ENCODED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DELIMITERS = frozenset(b"/\\?#;&=@:")
# Stand for the value of a template's variable: within a segment, or across several.
_VALUE, _VALUES = "\ue000", "\ue001"
# Stand for encoded delimiters, from this character on.
_DELIMITER = 0xE100
_DRIVE = re.compile(r"[a-z]\|")
_LEADING_ZEROS = re.compile(rf"(?<![0-9])0+(?=[0-9{_VALUE}{_VALUES}])")
_AUTHORITY = re.compile(r"(?:.*@)?(\[[^\]]*\]|[^:]*)(?::(.*))?", re.DOTALL)


class Reading(NamedTuple):
    """One way to read a URI, in the form that is compared. ``base`` is the scheme, the host and the path."""

    base: str
    port: str
    parameters: frozenset[str]


# What a server may read in a URI: decoded before it is split, and after. None: decoding does not end.
Form = tuple[Reading | None, Reading | None]


def problem(uri: str) -> str | None:
    """Return why a URI may not be requested through a template, and what to do; None if it may."""
    if len(uri) > uri_templates.MAX_URI_LENGTH:
        return f"This URI has more than {uri_templates.MAX_URI_LENGTH} characters: use a shorter one."
    if any(map(_is_ignored, uri)):
        return "This URI contains spaces or invisible characters: encode them."
    if _NOT_ENCODED.search(uri):
        return "This URI has a % that encodes nothing: write %25."
    codes = {int(code, 16) for code in _ENCODED.findall(uri)}
    if codes & _UNRESERVED:
        return (
            "This URI encodes characters that need no encoding: write letters, digits and -._~ as they are."
        )
    try:
        decoded = urllib.parse.unquote(uri, errors="strict")
    except UnicodeDecodeError:
        return "This URI is not encoded as UTF-8."
    if any(character == "\0" or unicodedata.category(character) in ("Co", "Cs") for character in decoded):
        return "This URI contains characters that no text has: leave them out."
    if _ENCODED.search(decoded):
        return "This URI is encoded twice: encode it once."
    path = unicodedata.normalize("NFKC", urllib.parse.unquote(re.split(r"[?#]", uri, maxsplit=1)[0]))
    path = path.partition(":")[2]
    if any(segment.partition(";")[0].strip() in (".", "..") for segment in re.split(r"[/\\?#]", path)):
        return "This URI has . or .. in its path: leave them out."
    return None


@functools.lru_cache(4096)
def of_resource(uri: str) -> Form:
    """Return the form of a listed resource's URI."""
    return of_uri(uri)


@functools.lru_cache(1024)
def of_template(template: str) -> Form:
    """Return the form of a listed template, which covers every URI that the template expands to."""
    return of_uri(uri_templates.expand(template, {}, _VALUE, _VALUES))


def of_uri(uri: str) -> Form:
    """Return the form of a requested URI."""
    return _read(uri), _read(_ENCODED.sub(_kept_delimiter, uri))


def of_values(template: str, values: Mapping[str, str]) -> Form:
    """Return the form of a template of which some variables have a value."""
    known = {
        name: "".join(character for character in value if unicodedata.category(character) != "Co")
        for name, value in values.items()
    }
    return of_uri(uri_templates.expand(template, known, _VALUE, _VALUES))


def covers(denied: Form, requested: Form) -> bool:
    """Return whether a server may take what is requested for what is denied."""
    return any(map(_covers, denied, requested))


def is_wider(template: Form, other: Form) -> bool:
    """Return whether one template expands to all that the other expands to, and to more."""
    return covers(template, other) and not covers(other, template)


def _covers(denied: Reading | None, requested: Reading | None) -> bool:
    if denied is None or requested is None:
        return True
    if _is_variable(denied.base):
        is_same = _pattern(denied.base).fullmatch(requested.base) is not None
    else:
        is_same = denied.base == requested.base
    return is_same and denied.port in ("", requested.port) and denied.parameters <= requested.parameters


@functools.lru_cache(1024)
def _pattern(base: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    escaped = re2.escape(base).replace(_VALUES, ".+").replace(_VALUE, f"[^/{_VALUES}]+")
    return re2.compile(f"(?s){escaped}", options=options)


def _read(uri: str) -> Reading | None:
    text = _decoded(uri)
    if text is None:
        return None
    scheme, _, rest = text.replace("\\", "/").partition(":")
    rest = rest.partition("#")[0]
    rest, _, query = rest.partition("?")
    host = port = ""
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        authority, *path_parameters = authority.split(";")
        host, port = _AUTHORITY.fullmatch(authority).groups("")  # type: ignore[union-attr]
        rest = ";".join([slash + path, *path_parameters])
    names, parameters = [], re.split(r"[&;]", query)
    for segment in rest.split("/"):
        name, *of_segment = segment.split(";")
        names.append(name)
        parameters += of_segment
    host = _host(host, scheme)
    segments = [*([host] if host else []), *_segments(names)]
    return Reading(
        base=f"{scheme}:{'/'.join(segments)}",
        port="" if port == _PORTS.get(scheme) or _is_variable(port) else port,
        parameters=frozenset(_parameter(pair) for pair in parameters if pair and not _is_variable(pair)),
    )


def _parameter(pair: str) -> str:
    name, _, value = pair.partition("=")
    return "=".join([name, *(["/".join(_segments(value.split("/")))] if value else [])])


def _decoded(text: str) -> str | None:
    """Return the text decoded, and in the form that is compared; None if decoding does not end."""
    # Bytes, because a character may be encoded in parts.
    encoded = text.encode(errors="replace")
    for _ in range(MAX_ROUNDS):
        before, decoded = encoded, urllib.parse.unquote_to_bytes(encoded)
        text = unicodedata.normalize("NFKC", decoded.decode(errors="replace")).casefold()
        if decoded == before and text.encode() == before:
            break
        # Forms of characters that are not complete yet must stay as they are.
        encoded = decoded if decoded != before else text.encode()
    else:
        return None
    kept = "".join(character for character in text if character != "+" and not _is_ignored(character))
    if not kept.isascii():
        kept = "".join(
            str(unicodedata.decimal(character, character)) if character.isdecimal() else character
            for character in kept
        )
    return _LEADING_ZEROS.sub("", kept)


def _kept_delimiter(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(_DELIMITER + code) if code in _DELIMITERS else match[0]


def _segments(path: list[str]) -> list[str]:
    """Return the segments of a path without empty and dot segments."""
    segments: list[str] = []
    for segment in path:
        if segment == "..":
            del segments[-1:]
        # Windows ignores dots at the end, and reads c| as c:.
        elif name := segment.rstrip("."):
            segments.append(f"{name[0]}:" if _DRIVE.fullmatch(name) else name)
    return segments


def _host(host: str, scheme: str) -> str:
    if scheme == "file":
        # Servers read the path and ignore the host.
        return ""
    host = host.rstrip(".")
    if scheme in _PORTS and host.isascii():
        try:
            if host.startswith("["):
                return str(ipaddress.IPv6Address(host[1:-1]))
            return str(ipaddress.IPv4Address(socket.inet_aton(host)))
        except (OSError, ValueError):
            pass
    if "xn--" not in host:
        return host
    try:
        return _decoded(host.encode("ascii").decode("idna")) or host
    except UnicodeError:
        return host


def _is_variable(text: str) -> bool:
    return _VALUE in text or _VALUES in text


def _is_ignored(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")
