"""Parsing of the surface requests that are answered in front of Django.

Malformed requests, and those with rare conditions, are passed to Django, whose view validates them. Nothing is refused
here.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django_structlog.app_settings import app_settings

from toolbelt import conf
from toolbelt.api import bodies, problems
from toolbelt.core import agents, api_tokens, request_key, sessions
from toolbelt.mcp import request_head
from toolbelt.runtime.surfaces import appending, conversation_tokens, prepared_answers, rendering

Scope = Mapping[str, Any]

# Larger bodies are parsed in a thread by Django: here, all other requests would wait.
MAX_BYTES = 100_000

_PATH = re.compile(r"/api/v1/agents/([A-Za-z0-9_.-]{1,64})/surface")
_ETAG = re.compile(r'(?:W/)?("[!#-+\--~]*")')
_QUERY = frozenset({"session", "request_id", "subagent", "format", "model"})
_BODY = _QUERY | {"message", "declared", "conversation"}
_JSON = frozenset({"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"})
# How each header is treated: read here, or left to Django. All others are ignored.
_READ, _DJANGO, _ID = 1, 2, 3
_HEADERS = {
    b"authorization": _READ,
    b"content-length": _READ,
    b"content-type": _READ,
    b"host": _READ,
    b"if-match": _DJANGO,
    b"if-none-match": _READ,
    b"if-unmodified-since": _DJANGO,
    b"transfer-encoding": _DJANGO,
    b"x-correlation-id": _ID,
    b"x-forwarded-host": _READ,
    b"x-request-id": _ID,
}


class Request(NamedTuple):
    """A request for a surface, or for an admission. ``etag`` is the version that the client has."""

    method: str
    scheme: str
    path: str
    address: str | None
    agent: str
    token: str
    query: str
    etag: str | None
    length: int


def of(scope: Scope, pattern: re.Pattern[str] = _PATH) -> Request | None:
    """Return the parsed head of a request whose path matches the pattern, or None if it is for Django."""
    method = scope["method"]
    if method not in ("GET", "POST") or scope.get("root_path"):
        return None
    path = pattern.fullmatch(scope["path"])
    headers = _headers(scope["headers"]) if path is not None else None
    if path is None or headers is None:
        return None
    scheme = "https" if scope["scheme"] == "https" else "http"
    if scheme == "http" and settings.SECURE_SSL_REDIRECT:
        return None
    if not request_head.is_ours(headers.get(b"host", ""), headers.get(b"x-forwarded-host", ""), scheme):
        return None
    kind, _, token = headers.get(b"authorization", "").partition(" ")
    query = scope["query_string"]
    if kind.lower() != "bearer" or not query.isascii():
        return None
    length = headers.get(b"content-length", "0")
    if length != "0" or method == "POST":
        is_json = headers.get(b"content-type", "").lower() in _JSON
        maximum = min(MAX_BYTES, conf.API_BODY_BYTES)
        if method == "GET" or not is_json or not length.isdecimal() or int(length) > maximum:
            return None
        # Without a well-formed token, Django refuses the request; do not read its body here.
        if not api_tokens.is_well_formed(token.strip()):
            return None
    etag = None
    if (if_none_match := headers.get(b"if-none-match")) is not None:
        if (match := _ETAG.fullmatch(if_none_match)) is None:
            return None
        etag = match[1]
    client = scope.get("client")
    return Request(
        method,
        scheme,
        scope["path"],
        client[0] if client else None,
        path[1],
        token.strip(),
        query.decode(),
        etag,
        int(length),
    )


def surface_request(request: Request, body: bytes | None) -> prepared_answers.SurfaceRequest | None:
    """Return the request for a surface, from the query or from the body if there is one; None if it is for Django."""
    parameters = _in_query(request.query) if body is None else _in_body(body)
    if parameters is None or not are_valid(parameters):
        return None
    get = parameters.get
    conversation = get("conversation")
    return prepared_answers.SurfaceRequest(
        request_key.RequestKey(request.agent, get("session"), get("request_id"), get("subagent")),
        request.token,
        get("format"),
        get("message"),
        get("declared"),
        get("model"),
        None if conversation is None else appending.Conversation(**conversation),
    )


def _headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, str] | None:
    """Return the headers that are read here, or None if one is repeated or left to Django."""
    values: dict[bytes, str] = {}
    for name, value in headers:
        meaning = _HEADERS.get(name)
        if meaning is None:
            continue
        if meaning == _READ and name not in values:
            values[name] = value.decode("latin-1")
        elif meaning != _ID or _trusts_ids():
            return None
    return values


def _trusts_ids() -> bool:
    """Return whether the installation uses the request ids that clients send."""
    trusts: bool = app_settings.TRUST_UPSTREAM_REQUEST_ID or app_settings.TRUST_UPSTREAM_CORRELATION_ID
    return trusts


def _in_query(query: str) -> dict[str, Any] | None:
    parameters: dict[str, Any] = {}
    for pair in query.split("&") if query else ():
        name, _, value = pair.partition("=")
        if name not in _QUERY or name in parameters:
            return None
        if "%" in value or "+" in value:
            try:
                value = urllib.parse.unquote_plus(value, errors="strict")
            except UnicodeDecodeError:
                return None
        parameters[name] = value
    return parameters


def _in_body(body: bytes) -> dict[str, Any] | None:
    try:
        document = bodies.read(body)
    except problems.HttpProblem:
        return None
    return document if isinstance(document, dict) and document.keys() <= _BODY else None


def are_valid(parameters: Mapping[str, Any]) -> bool:
    """Return whether all parameters are valid. If not, Django's view reports the problems."""
    for name, value in parameters.items():  # noqa: SIM110 (a generator takes twice as long)
        if value is not None and not _VALID[name](value):
            return False
    return True


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and sessions.id_problem(value) is None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_model(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= agents.MAX_MODEL_LENGTH


def _is_declared(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name in _CONVERSATION and _CONVERSATION[name](field) for name, field in value.items()
    )


def _is_token(value: Any) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= conversation_tokens.MAX_LENGTH)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


_CONVERSATION: Mapping[str, Callable[[Any], bool]] = {
    "token": _is_token,
    "platform": appending.PLATFORMS.__contains__,
    "compacted": _is_bool,
    "hold": _is_bool,
}
_VALID: Mapping[str, Callable[[Any], bool]] = {
    "session": _is_id,
    "request_id": _is_id,
    "subagent": agents.KINDS.__contains__,
    "format": rendering.FORMATS.__contains__,
    "model": _is_model,
    "message": _is_text,
    "declared": _is_declared,
    "conversation": _is_conversation,
}
