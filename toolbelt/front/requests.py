"""Is this a question that can be answered in front of Django, and which?

Only what is plain: whatever could change more of an answer than the question itself goes on to Django, which knows what
to say to it. So nothing here refuses anything.
"""

from __future__ import annotations

import functools
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from django_structlog.app_settings import app_settings

from toolbelt import conf
from toolbelt.api import bodies, problems
from toolbelt.core import agents, api_tokens, sessions
from toolbelt.runtime import ready, rendering

Scope = Mapping[str, Any]

# A larger body is read in a thread of Django's: here, everyone else would wait.
MOST_BYTES = 100_000

EXAMPLE = "/api/v1/agents/name/surface"

_PATH = re.compile(r"/api/v1/agents/([A-Za-z0-9_.-]{1,64})/surface")
_ETAG = re.compile(r'(?:W/)?("[!#-+\--~]*")')
_QUERY = frozenset({"session", "request_id", "subagent", "format"})
_BODY = _QUERY | {"message", "declared"}
_JSON = frozenset({"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"})
# What each header means here: it is read, or it is for Django, for it would change the answer, what is counted, or what
# is logged. All others change nothing.
_READ, _DJANGO = 1, 2
_HEADERS = {
    b"authorization": _READ,
    b"content-encoding": _DJANGO,
    b"content-length": _READ,
    b"content-type": _READ,
    b"cookie": _DJANGO,
    b"expect": _DJANGO,
    b"host": _READ,
    b"hx-request": _DJANGO,
    b"if-match": _DJANGO,
    b"if-modified-since": _DJANGO,
    b"if-none-match": _READ,
    b"if-unmodified-since": _DJANGO,
    b"transfer-encoding": _DJANGO,
    b"x-forwarded-host": _DJANGO,
    b"x-requested-with": _DJANGO,
}
_IDS = {b"x-correlation-id": _DJANGO, b"x-request-id": _DJANGO}


class Request(NamedTuple):
    """A plain request for a surface. ``etag`` is what the client has of it."""

    method: str
    scheme: str
    host: str
    path: str
    address: str | None
    agent: str
    token: str
    query: str
    etag: str | None
    length: int


def of(scope: Scope) -> Request | None:
    """Read the head of a request; None if it is for Django."""
    method = scope["method"]
    if method not in ("GET", "POST") or scope.get("root_path"):
        return None
    asked = _PATH.fullmatch(scope["path"])
    headers = _headers(scope["headers"]) if asked is not None else None
    if asked is None or headers is None or b"host" not in headers:
        return None
    scheme, _, token = headers.get(b"authorization", "").partition(" ")
    query = scope["query_string"]
    if scheme.lower() != "bearer" or not query.isascii():
        return None
    length = headers.get(b"content-length", "0")
    if length != "0" or method == "POST":
        is_json = headers.get(b"content-type", "").lower() in _JSON
        most = min(MOST_BYTES, conf.API_BODY_BYTES)
        if method == "GET" or not is_json or not length.isdecimal() or int(length) > most:
            return None
        # What is no token opens nothing: Django says so, and no body is read here for it.
        if not api_tokens.is_well_formed(token.strip()):
            return None
    etag = None
    if (given := headers.get(b"if-none-match")) is not None:
        if (one := _ETAG.fullmatch(given)) is None:
            return None
        etag = one[1]
    client = scope.get("client")
    return Request(
        method,
        "https" if scope["scheme"] == "https" else "http",
        headers[b"host"],
        scope["path"],
        client[0] if client else None,
        asked[1],
        token.strip(),
        query.decode(),
        etag,
        int(length),
    )


def question(request: Request, body: bytes | None) -> ready.Question | None:
    """Read what is asked, in the address, or in the body if there is one; None if it is for Django."""
    asked = _in_query(request.query) if body is None else _in_body(body)
    if asked is None or not _is_sound(asked):
        return None
    get = asked.get
    return ready.Question(
        request.token,
        request.agent,
        get("session"),
        get("request_id"),
        get("subagent"),
        get("format"),
        get("message"),
        get("declared"),
    )


def _headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, str] | None:
    """Give the headers that are read here; None where one of them comes twice, or one is for Django."""
    found: dict[bytes, str] = {}
    meanings = _meanings()
    for name, value in headers:
        meaning = meanings.get(name)
        if meaning is None:
            continue
        if meaning == _DJANGO or name in found:
            return None
        found[name] = value.decode("latin-1")
    return found


@functools.cache
def _meanings() -> Mapping[bytes, int]:
    """Give what the headers mean; those with ids, too, if the installation goes by ids that come in."""
    trusted = app_settings.TRUST_UPSTREAM_REQUEST_ID or app_settings.TRUST_UPSTREAM_CORRELATION_ID
    return _HEADERS | _IDS if trusted else _HEADERS


def _in_query(query: str) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for pair in query.split("&") if query else ():
        name, _, value = pair.partition("=")
        if name not in _QUERY or name in found:
            return None
        if "%" in value or "+" in value:
            try:
                value = urllib.parse.unquote_plus(value, errors="strict")
            except UnicodeDecodeError:
                return None
        found[name] = value
    return found


def _in_body(body: bytes) -> dict[str, Any] | None:
    try:
        found = bodies.read(body)
    except problems.HttpProblem:
        return None
    return found if isinstance(found, dict) and found.keys() <= _BODY else None


def _is_sound(asked: Mapping[str, Any]) -> bool:
    """Say whether the API would take all of it; if not, the API says why."""
    return all(value is None or _SOUND[name](value) for name, value in asked.items())


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and sessions.id_problem(value) is None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_declared(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


_SOUND: Mapping[str, Callable[[Any], bool]] = {
    "session": _is_id,
    "request_id": _is_id,
    "subagent": agents.KINDS.__contains__,
    "format": rendering.FORMATS.__contains__,
    "message": _is_text,
    "declared": _is_declared,
}
