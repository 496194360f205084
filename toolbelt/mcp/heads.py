"""Who asks here, for which agent, and may they speak this way? What stands in front of a request's body.

Checked before any body is read: the address, the host and origin (against a page of somebody else's that a browser is
made to send from), the token's form, the media types, the length.
"""

from __future__ import annotations

import functools
import re
import urllib.parse
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from django import urls
from django.conf import settings
from django.core import exceptions
from django.http import HttpRequest
from django.utils import http

from toolbelt.core import api_tokens, sessions
from toolbelt.mcp import protocol

WHERE = "/mcp"
LEGACY_SSE = (
    "This client asks for the HTTP+SSE transport of MCP 2024-11-05, which Toolbelt does not have. Configure it for"
    f' Streamable HTTP (often called "http") at an agent\'s address, {WHERE}/AGENT.'
)
ALLOW = ((b"allow", b"GET, POST"),)
ALLOW_POST = ((b"allow", b"POST"),)
# How many heads to keep read, and how many bytes one of them may have: whoever sends large ones fills no memory.
MOST_KEPT = 2048
LARGEST_KEPT = 4096
# Larger ones are not read at all. Servers in front of this take no more either, most of them far less.
LARGEST = 65_536
LONGEST_SESSION = 256

_PATH = re.compile(r"/mcp/([A-Za-z0-9_.-]{1,64})(?:/s/(.+?))?/?", re.DOTALL)
_READ = frozenset(
    {
        b"accept",
        b"authorization",
        b"content-length",
        b"content-type",
        b"host",
        b"last-event-id",
        b"mcp-method",
        b"mcp-name",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"origin",
        b"transfer-encoding",
        b"x-forwarded-host",
    }
)
# One of these is sent with each request for the stream of Streamable HTTP, and with none for HTTP+SSE.
_OF_STREAMS = frozenset({b"last-event-id", b"mcp-protocol-version", b"mcp-session-id"})
_ROUTING = frozenset({b"mcp-method", b"mcp-name", b"mcp-protocol-version"})


class Head(NamedTuple):
    """The head of a request: ``session`` is the conversation's (in the address), ``client_session`` the client's own
    (in Mcp-Session-Id), ``address`` where the client's connection comes from.
    """

    method: str
    scheme: str
    path: str
    address: tuple[str, int] | None
    agent: str
    session: str | None
    token: str
    length: int | None
    takes_json: bool
    takes_events: bool
    client_session: str
    last_event: str
    about: protocol.Headers


def is_here(scope: Mapping[str, Any]) -> bool:
    """Say whether a request is for this endpoint at all."""
    path: str = scope["path"]
    return path.startswith("/mcp") and (path == WHERE or path[4] == "/")


class Reader:
    """Reads heads. One that came before, word for word, is not read again: a client sends the same with each request.

    ``most``: how many bytes a body may have.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[Hashable, Head] = {}

    def read(self, scope: Mapping[str, Any]) -> Head:
        """Read the head of a request. Raises protocol.Fault."""
        # A server may give the client as a list, which cannot be looked up by.
        place = (scope["path"], scope["method"], scope["scheme"], _client(scope), *scope["headers"])
        head = self._known.get(place)
        if head is None:
            size = sum([len(name) + len(value) for name, value in scope["headers"]])
            if size > LARGEST:
                raise _fault(431, f"The head of a request may have {LARGEST} bytes: send less in headers.")
            head = read(scope, self.most)
            if size > LARGEST_KEPT:
                return head
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            self._known[place] = head
        return head


def read(scope: Mapping[str, Any], most: int) -> Head:
    """Read the head of a request, whose body may have so many bytes. Raises protocol.Fault."""
    found: dict[bytes, str] = {}
    twice = ""
    for name, value in scope["headers"]:
        if name in _READ:
            if name in found and name in _ROUTING:
                twice = name.decode()
            # Not every server takes off the white space that may stand around a value.
            found[name] = value.decode("latin-1").strip(" \t")
    get = found.get
    scheme = "https" if scope["scheme"] == "https" else "http"
    host = get(b"host", "")
    if not _is_ours(host, get(b"x-forwarded-host", ""), scheme):
        raise _fault(421, "This host is not one of ours: an operator can put it into ALLOWED_HOSTS.")
    if (origin := get(b"origin")) is not None and not _may_come_from(origin, host, scheme):
        raise _fault(
            403, "No page of this origin may ask here: an operator can put it into CSRF_TRUSTED_ORIGINS."
        )
    where = _PATH.fullmatch(scope["path"])
    if where is None:
        raise _fault(
            404, f"There is nothing here: an agent's address is {WHERE}/AGENT, or {WHERE}/AGENT/s/SESSION."
        )
    agent, session = where[1], where[2]
    if session is not None and (problem := sessions.id_problem(session)):
        raise _fault(404, f"There is no such session: {problem}")
    method: str = scope["method"]
    if method not in ("GET", "POST", "DELETE"):
        raise _fault(405, f"There is no {method} here.", headers=ALLOW)
    if len(get(b"mcp-session-id", "")) > LONGEST_SESSION:
        raise _fault(
            400, f"Mcp-Session-Id has at most {LONGEST_SESSION} characters: send the one of the handshake."
        )
    takes_json, takes_events = _taken(get(b"accept", "*/*"))
    if method == "GET" and takes_events and not takes_json and found.keys().isdisjoint(_OF_STREAMS):
        raise _fault(405, LEGACY_SSE, headers=ALLOW_POST)
    kind, _, token = get(b"authorization", "").partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not api_tokens.is_well_formed(token):
        raise unknown_token(is_sent=bool(kind))
    if method == "POST":
        if not takes_json:
            raise _fault(406, "Accept application/json, and text/event-stream beside it.")
        if get(b"content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise _fault(415, "Send JSON, with Content-Type: application/json.")
    elif method == "GET" and not takes_events:
        raise _fault(406, "Accept text/event-stream: here is a stream of events.")
    return Head(
        method,
        scheme,
        scope["path"],
        _client(scope),
        agent,
        session,
        token,
        _length(get(b"content-length"), most),
        takes_json,
        takes_events,
        get(b"mcp-session-id", ""),
        get(b"last-event-id", ""),
        protocol.Headers(get(b"mcp-protocol-version"), get(b"mcp-method"), get(b"mcp-name"), twice),
    )


class UnknownToken(protocol.Fault):
    """A token that opens nothing, refused in the same words whatever is wrong with it."""


def unknown_token(*, is_sent: bool) -> UnknownToken:
    """Refuse a token that opens nothing."""
    challenge = b'Bearer realm="toolbelt"' + (b', error="invalid_token"' if is_sent else b"")
    return UnknownToken(
        protocol.INVALID_REQUEST,
        "Toolbelt needs a token of this agent, sent as Authorization: Bearer tb_…. There is no login by OAuth.",
        status=401,
        headers=((b"www-authenticate", challenge),),
    )


def tokens_page(scope: Mapping[str, Any]) -> str:
    """Return the address where an operator makes a token, for a request whose host is one of ours."""
    sent = {name: value.decode("latin-1").strip(" \t") for name, value in scope["headers"]}
    host = (sent.get(b"x-forwarded-host") if settings.USE_X_FORWARDED_HOST else "") or sent[b"host"]
    scheme = "https" if scope["scheme"] == "https" else "http"
    where = _PATH.fullmatch(scope["path"])
    of_agent = f"?agent={where[1]}#issue" if where is not None else ""
    return f"{scheme}://{host}{urls.reverse('web:tokens')}{of_agent}"


def unknown_agent(agent: str) -> protocol.Fault:
    """Say that there is no such agent: for whoever sent this token."""
    return _fault(404, f"There is no agent named {agent!r}.")


def _fault(status: int, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> protocol.Fault:
    return protocol.Fault(protocol.INVALID_REQUEST, message, status=status, headers=headers)


def _length(given: str | None, most: int) -> int | None:
    if given is None:
        return None
    if not given.isascii() or not given.isdigit():
        raise _fault(400, "Content-Length is a number.")
    if len(given) > len(str(most)) or int(given) > most:
        raise too_large(most)
    return int(given)


def too_large(most: int) -> protocol.Fault:
    """Refuse a body that nobody reads."""
    return _fault(413, f"{most} bytes may be sent: send less at a time.")


@functools.lru_cache(256)
def _taken(accept: str) -> tuple[bool, bool]:
    """Say whether a client takes JSON, and events."""
    kinds = {one.partition(";")[0].strip().lower() for one in accept.split(",")}
    return (
        not kinds.isdisjoint({"*/*", "application/*", "application/json"}),
        not kinds.isdisjoint({"*/*", "text/*", "text/event-stream"}),
    )


def _is_ours(host: str, forwarded: str, scheme: str) -> bool:
    return _known_hosts(host, forwarded if settings.USE_X_FORWARDED_HOST else "", scheme)


@functools.lru_cache(256)
def _known_hosts(host: str, forwarded: str, scheme: str) -> bool:
    """Ask Django, whose settings decide: hosts are few, and asked for again and again."""
    request = HttpRequest()
    request.META = {"HTTP_HOST": host, "wsgi.url_scheme": scheme}
    if forwarded:
        request.META["HTTP_X_FORWARDED_HOST"] = forwarded
    try:
        request.get_host()
    except exceptions.DisallowedHost:
        return False
    return bool(host)


def _may_come_from(origin: str, host: str, scheme: str) -> bool:
    """Say whether a page of this origin may ask: our own, or one that the settings trust."""
    if origin == f"{scheme}://{host}":
        return True
    asked = urllib.parse.urlsplit(origin)
    for trusted in settings.CSRF_TRUSTED_ORIGINS:
        if origin == trusted:
            return True
        if "*" in trusted:
            one = urllib.parse.urlsplit(trusted)
            if asked.scheme == one.scheme and http.is_same_domain(asked.netloc, one.netloc.lstrip("*")):
                return True
    return False


def _client(scope: Mapping[str, Any]) -> tuple[str, int] | None:
    client = scope.get("client")
    return (client[0], client[1]) if client else None
