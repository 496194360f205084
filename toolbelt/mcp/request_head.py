"""Parsing and validation of the heads of requests to the MCP endpoint.

The path, the host, the origin (against requests that foreign pages make a browser send), the form of the token, the
media types and the length are checked before the body is read.
"""

from __future__ import annotations

import functools
import urllib.parse
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from django import urls
from django.conf import settings
from django.core import exceptions
from django.http import HttpRequest
from django.utils import http

from toolbelt.core import agent_addresses, agents, api_tokens, caches, errors, request_key, sessions, texts
from toolbelt.mcp import protocol

ENDPOINT = agent_addresses.ENDPOINT
LEGACY_SSE = (
    "This client requests the HTTP+SSE transport of MCP 2024-11-05, which Toolbelt does not support. Configure it for"
    f' Streamable HTTP (often called "http") at an agent\'s address, {ENDPOINT}/AGENT.'
)
ALLOW = ((b"allow", b"GET, POST"),)
ALLOW_POST = ((b"allow", b"POST"),)
# The maximum number of parsed heads to cache, and their maximum size: larger heads must not fill the memory.
MAX_CACHED = 2048
MAX_CACHED_BYTES = 4096
# Larger heads are refused. Most reverse proxies accept far less.
MAX_BYTES = 65_536
MAX_SESSION_LENGTH = 256
# Where the metadata of a protected resource is, before its own path (RFC 9728, 3.1).
METADATA = "/.well-known/oauth-protected-resource"
# The name in the query of an address by which a client chooses how it loads tools.
LOADING = "loading"

_USED_HEADERS = frozenset(
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
# Requests for a stream of Streamable HTTP have one of these; requests for HTTP+SSE have none.
_STREAM_HEADERS = frozenset({b"last-event-id", b"mcp-protocol-version", b"mcp-session-id"})
_ROUTING_HEADERS = frozenset({b"mcp-method", b"mcp-name", b"mcp-protocol-version"})


class RequestHead(NamedTuple):
    """The head of a request. ``session`` is the conversation's id, from the path; ``client_session`` is the client's
    session, from Mcp-Session-Id; ``address`` is the client's network address; ``loading`` is how this client loads
    tools, from the query of its address.
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
    protocol_headers: protocol.Headers
    loading: agents.McpLoading | None = None

    @property
    def key(self) -> request_key.RequestKey:
        """Return the key of what the client asks for outside any request of a model."""
        return request_key.RequestKey(self.agent, self.session)


def is_here(scope: Mapping[str, Any]) -> bool:
    """Return whether a request is for the MCP endpoint."""
    path: str = scope["path"]
    return path.startswith("/mcp") and (path == ENDPOINT or path[4] == "/")


class HeadReader:
    """Parses heads and caches them, because a client sends the same head with each request.

    ``maximum`` is the maximum size of a body.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._heads: caches.LruCache[Hashable, RequestHead] = caches.LruCache(MAX_CACHED)

    def read(self, scope: Mapping[str, Any]) -> RequestHead:
        """Return the parsed head of a request. Raise ProtocolError if it is not valid."""
        # Some servers pass the client as a list, which is not hashable.
        query = scope.get("query_string", b"")
        cache_key = (
            scope["path"],
            query,
            scope["method"],
            scope["scheme"],
            _client(scope),
            *scope["headers"],
        )
        head = self._heads.get(cache_key)
        if head is None:
            size = len(query) + sum([len(name) + len(value) for name, value in scope["headers"]])
            if size > MAX_BYTES:
                raise _fault(
                    431,
                    f"The head of a request may have at most {MAX_BYTES} bytes. Send fewer or shorter headers.",
                )
            head = read(scope, self.maximum)
            if size > MAX_CACHED_BYTES:
                return head
            self._heads.put(cache_key, head)
        return head


def read(scope: Mapping[str, Any], maximum: int) -> RequestHead:
    """Return the parsed head of a request, whose body has at most ``maximum`` bytes; raise ProtocolError."""
    headers, twice = _used_headers(scope["headers"])
    get = headers.get
    scheme = "https" if scope["scheme"] == "https" else "http"
    host = get(b"host", "")
    if not is_ours(host, get(b"x-forwarded-host", ""), scheme):
        raise _fault(421, "This host is not allowed. An operator can add it to ALLOWED_HOSTS.")
    if (origin := get(b"origin")) is not None and not _may_come_from(origin, host, scheme):
        raise _fault(403, "This origin is not allowed. An operator can add it to CSRF_TRUSTED_ORIGINS.")
    agent, session = _agent_and_session(scope["path"])
    method: str = scope["method"]
    if method not in ("GET", "POST", "DELETE"):
        raise _fault(405, f"{method} is not supported here.", headers=ALLOW)
    if len(get(b"mcp-session-id", "")) > MAX_SESSION_LENGTH:
        raise _fault(
            400,
            f"Mcp-Session-Id is longer than {MAX_SESSION_LENGTH} characters. Send the id that initialize returned.",
        )
    takes_json, takes_events = _accepted_types(get(b"accept", "*/*"))
    if method == "GET" and takes_events and not takes_json and headers.keys().isdisjoint(_STREAM_HEADERS):
        raise _fault(405, LEGACY_SSE, headers=ALLOW_POST)
    kind, _, token = get(b"authorization", "").partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not api_tokens.is_well_formed(token):
        raise unknown_token(is_sent=bool(kind))
    if method == "POST":
        if not takes_json:
            raise _fault(406, "Accept application/json and text/event-stream.")
        if get(b"content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise _fault(415, "Send JSON, with Content-Type: application/json.")
    elif method == "GET" and not takes_events:
        raise _fault(406, "Accept text/event-stream: the response is a stream of events.")
    return RequestHead(
        method,
        scheme,
        scope["path"],
        _client(scope),
        agent,
        session,
        token,
        _length(get(b"content-length"), maximum),
        takes_json,
        takes_events,
        get(b"mcp-session-id", ""),
        get(b"last-event-id", ""),
        protocol.Headers(get(b"mcp-protocol-version"), get(b"mcp-method"), get(b"mcp-name"), twice),
        _loading(scope.get("query_string", b"")),
    )


def _used_headers(sent: Iterable[tuple[bytes, bytes]]) -> tuple[dict[bytes, str], str]:
    """Return the headers that are read here, and the name of a routing header that was sent twice; else empty."""
    headers: dict[bytes, str] = {}
    twice = ""
    for name, value in sent:
        if name in _USED_HEADERS:
            if name in headers and name in _ROUTING_HEADERS:
                twice = name.decode()
            # Not every server strips the white space around a value.
            headers[name] = value.decode("latin-1").strip(" \t")
    return headers, twice


def _agent_and_session(path: str) -> tuple[str, str | None]:
    """Return the agent and the conversation that an address names. Raise ProtocolError for any other address."""
    where = agent_addresses.read(path)
    if where is None:
        raise _fault(
            404,
            f"There is nothing here. An agent's address is {ENDPOINT}/AGENT, or {ENDPOINT}/AGENT/s/SESSION.",
        )
    _, session = where
    if session is not None and (problem := sessions.id_problem(session)):
        raise _fault(404, f"There is no such session: {problem}")
    return where


def _loading(query: bytes) -> agents.McpLoading | None:
    """Return how a client loads tools, if its address says so. Raise ProtocolError for an unknown way."""
    if LOADING.encode() not in query:
        return None
    sent = urllib.parse.parse_qs(query.decode("latin-1"), keep_blank_values=True).get(LOADING, [])
    for loading in agents.MCP_LOADINGS:
        if sent == [loading]:
            return loading
    if not sent:
        return None
    choices = texts.listing(agents.MCP_LOADINGS)
    raise _fault(
        400, f"The address has {LOADING}={'&'.join(sent)[:40]}: use one of {choices}, or leave it out."
    )


class UnknownTokenError(protocol.ProtocolError):
    """A token that is not valid. The message is the same, whatever is wrong with the token."""


def unknown_token(*, is_sent: bool) -> UnknownTokenError:
    """Return the error for a missing or invalid token."""
    challenge = b'Bearer realm="toolbelt"' + (b', error="invalid_token"' if is_sent else b"")
    return UnknownTokenError(
        protocol.INVALID_REQUEST,
        "Toolbelt requires a token of this agent, sent as Authorization: Bearer tb_…, or a sign-in with OAuth.",
        status=401,
        headers=((b"www-authenticate", challenge),),
    )


def origin(scope: Mapping[str, Any]) -> str:
    """Return the scheme and the host of a request whose host is allowed."""
    sent = {name: value.decode("latin-1").strip(" \t") for name, value in scope["headers"]}
    host = (sent.get(b"x-forwarded-host") if settings.USE_X_FORWARDED_HOST else "") or sent[b"host"]
    return f"{'https' if scope['scheme'] == 'https' else 'http'}://{host}"


def tokens_page(scope: Mapping[str, Any]) -> str:
    """Return the address where an operator can issue a token, for a request whose host is allowed."""
    where = agent_addresses.read(scope["path"])
    of_agent = f"?agent={where[0]}#issue" if where is not None else ""
    return f"{origin(scope)}{urls.reverse('web:tokens')}{of_agent}"


def with_metadata(challenge: bytes, scope: Mapping[str, Any]) -> bytes:
    """Return the challenge of a 401 with the address of the metadata (RFC 9728, 5.1), from which a client signs in."""
    path = urllib.parse.quote(scope["path"])
    return challenge + f', resource_metadata="{origin(scope)}{METADATA}{path}"'.encode()


def unknown_agent(reason: errors.NotFound) -> protocol.ProtocolError:
    """Return the error for an agent that does not exist, or that the token gives no access to."""
    return _fault(404, str(reason))


def _fault(
    status: int, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> protocol.ProtocolError:
    return protocol.ProtocolError(protocol.INVALID_REQUEST, message, status=status, headers=headers)


def _length(header: str | None, maximum: int) -> int | None:
    if header is None:
        return None
    if not header.isascii() or not header.isdigit():
        raise _fault(400, "Content-Length must be a number.")
    if len(header) > len(str(maximum)) or int(header) > maximum:
        raise too_large(maximum)
    return int(header)


def too_large(maximum: int) -> protocol.ProtocolError:
    """Return the error for a body that is too large."""
    return _fault(413, f"A body may have at most {maximum} bytes. Send less at a time.")


@functools.lru_cache(256)
def _accepted_types(accept: str) -> tuple[bool, bool]:
    """Return whether a client accepts JSON, and whether it accepts events."""
    kinds = {media_range.partition(";")[0].strip().lower() for media_range in accept.split(",")}
    return (
        not kinds.isdisjoint({"*/*", "application/*", "application/json"}),
        not kinds.isdisjoint({"*/*", "text/*", "text/event-stream"}),
    )


def is_ours(host: str, forwarded: str, scheme: str) -> bool:
    """Return whether this host, or the one that a proxy forwarded for, is among ALLOWED_HOSTS."""
    return _known_hosts(host, forwarded if settings.USE_X_FORWARDED_HOST else "", scheme)


@functools.lru_cache(256)
def _known_hosts(host: str, forwarded: str, scheme: str) -> bool:
    """Return whether Django's settings allow the host. Cached, because the same few hosts are checked repeatedly."""
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
    """Return whether requests from pages of this origin are allowed: this server's own origin, or a trusted one."""
    if origin == f"{scheme}://{host}":
        return True
    try:
        parsed = urllib.parse.urlsplit(origin)
    except ValueError:
        return False
    for trusted in settings.CSRF_TRUSTED_ORIGINS:
        if origin == trusted:
            return True
        if "*" in trusted:
            pattern = urllib.parse.urlsplit(trusted)
            if parsed.scheme == pattern.scheme and http.is_same_domain(
                parsed.netloc, pattern.netloc.lstrip("*")
            ):
                return True
    return False


def _client(scope: Mapping[str, Any]) -> tuple[str, int] | None:
    client = scope.get("client")
    return (client[0], client[1]) if client else None
