"""MCP's JSON-RPC messages: parsing requests and writing responses, without any I/O.

A body has one message. Errors are :class:`ProtocolError`, with the specification's code and the HTTP status. Up to
2025-11-25, an error in response to a valid request has status 200; from 2026-07-28, it has an error status.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolbelt.core import schema
from toolbelt.mcp import revisions

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
# Up to 2025-11-25; later revisions have INVALID_PARAMS for it.
RESOURCE_NOT_FOUND = -32002
# In 2025-11-25: the user has to open a page before the request can succeed.
URL_ELICITATION_REQUIRED = -32042
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
CANCELLED = -32800

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
SERVER = "io.modelcontextprotocol/serverInfo"

CALL = "tools/call"
COMPLETE = "completion/complete"

LIST_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED_BY_CLIENT = "notifications/cancelled"
PROGRESS = "notifications/progress"

MAX_ID_LENGTH = 1000
# JSON parsers differ on larger numbers.
MAX_INTEGER_ID = 2**53
MAX_CURSOR_LENGTH = 400
MAX_REVISION_LENGTH = 40

_STATUS: Mapping[int, int] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
}
# The parameter that is repeated in Mcp-Name.
_NAMED_BY: Mapping[str, str] = {
    "tools/call": "name",
    "resources/read": "uri",
    "prompts/get": "name",
}
# Canonical JSON contains no other line breaks.
_BREAKS = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))
_IN_BASE64 = re.compile(r"=\?base64\?(.*)\?=")

Id = str | int


class ProtocolError(Exception):
    """An error response: its JSON-RPC ``code``, message and ``data``, and the HTTP ``status`` and ``headers``.

    ``id`` is the request's id, if it is known.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        status: int | None = None,
        data: Any = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.headers = code, message, data, headers
        self.id: Id | None = None
        self._status = status

    def status(self, *, is_modern: bool) -> int:
        """Return the HTTP status for a request of this era."""
        if self._status is not None:
            return self._status
        return (
            _STATUS.get(self.code, 200) if is_modern or self.code in (PARSE_ERROR, INVALID_REQUEST) else 200
        )


class Message(NamedTuple):
    """A message of a client. A request has an ``id``.

    A response of the client has no ``method``, and its ``params`` are the whole response.
    """

    id: Id | None
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return the request's metadata."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class Headers(NamedTuple):
    """The headers that describe a message. ``twice`` names a header that was sent twice."""

    version: str | None
    method: str | None
    name: str | None
    twice: str = ""


def read(document: Any) -> Message:
    """Return a parsed message. Raise ProtocolError if it is not valid."""
    if isinstance(document, list):
        raise ProtocolError(INVALID_REQUEST, "Send one message at a time: batches are not supported.")
    if not isinstance(document, dict) or document.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'A message must be a JSON object with "jsonrpc": "2.0".')
    method, params = document.get("method"), document.get("params", {})
    if method is None and "id" in document and ("result" in document or "error" in document):
        return Message(None, "", document)
    id_ = document.get("id")
    if "id" in document and not _is_id(id_):
        raise ProtocolError(INVALID_REQUEST, "The id of a request must be a string or an integer.")
    if not isinstance(method, str) or not method:
        raise ProtocolError(INVALID_REQUEST, "A message must have a method.")
    if not isinstance(params, dict):
        # With the id, so that the client can match the response.
        raise answering(ProtocolError(INVALID_PARAMS, "params must be a JSON object.", status=400), id_)
    return Message(id_, method, params)


def answering(fault: ProtocolError, id_: Id | None) -> ProtocolError:
    """Return the error as a response to the request with this id."""
    fault.id = id_
    return fault


def revision(message: Message, headers: Headers) -> revisions.Revision:
    """Return the revision of a message. Raise ProtocolError if the message contradicts its headers.

    In the second era, the message itself contains the revision; before, the header does, and ``initialize`` needs none.
    """
    in_meta = message.meta.get(VERSION)
    in_header = headers.version
    if in_meta is None and (in_header is None or in_header in revisions.HANDSHAKE):
        return revisions.REVISIONS[in_header or revisions.ASSUMED]
    if in_meta is None and in_header not in revisions.MODERN:
        return _modern(in_header)
    if message.id is None:
        # For notifications, only the header is defined.
        return _modern(in_header if in_header is not None else in_meta)
    if headers.twice:
        raise ProtocolError(HEADER_MISMATCH, f"The header {headers.twice} was sent twice. Send it once.")
    _check_envelope(message)
    if in_header != in_meta:
        raise ProtocolError(
            HEADER_MISMATCH, "MCP-Protocol-Version does not match the version in the request's _meta."
        )
    if headers.method != message.method:
        raise ProtocolError(HEADER_MISMATCH, "Mcp-Method does not match the request's method.")
    named_by = _NAMED_BY.get(message.method)
    name = message.params.get(named_by) if named_by is not None else None
    if isinstance(name, str) and _decoded(headers.name) != name:
        raise ProtocolError(HEADER_MISMATCH, f"Mcp-Name does not match the request's params.{named_by}.")
    return _modern(in_meta)


def progress_token(message: Message) -> Id | None:
    """Return the token for progress notifications, if the client requests them."""
    token = message.meta.get("progressToken")
    return token if _is_id(token) else None


def cursor(message: Message) -> str | None:
    """Return the name after which the page begins, or None for the first page. Raise ProtocolError if not valid."""
    encoded = message.params.get("cursor")
    if encoded is None:
        return None
    try:
        if not isinstance(encoded, str) or len(encoded) > MAX_CURSOR_LENGTH:
            raise ValueError
        name = base64.b64decode(encoded, altchars=b"-_", validate=True).decode()
        if not name.startswith(">"):
            raise ValueError
    except (ValueError, binascii.Error):
        raise ProtocolError(
            INVALID_PARAMS, "This cursor is not valid. Start again without a cursor."
        ) from None
    return name[1:]


def cursor_after(name: str) -> str:
    """Return the cursor of the page that begins after this name."""
    return base64.urlsafe_b64encode(f">{name}".encode()).decode()


def answer(id_: Id | None, result: Mapping[str, Any]) -> bytes:
    """Return the response to a request."""
    return schema.canonical({"id": id_, "jsonrpc": "2.0", "result": result}).encode()


def error(id_: Id | None, fault: ProtocolError) -> bytes:
    """Return an error response. The id is null if the request has none."""
    document: dict[str, Any] = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        document["data"] = fault.data
    return schema.canonical({"error": document, "id": id_, "jsonrpc": "2.0"}).encode()


def request(id_: Id, method: str, params: Mapping[str, Any]) -> bytes:
    """Return a request to a client."""
    return schema.canonical({"id": id_, "jsonrpc": "2.0", "method": method, "params": params}).encode()


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Return a notification."""
    document: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params:
        document["params"] = params
    return schema.canonical(document).encode()


def event(message: bytes, id_: str | None = None) -> bytes:
    """Return a message as an event of a stream, on one line, even for clients that recognize more line breaks."""
    for break_, escaped in _BREAKS:
        message = message.replace(break_, escaped)
    identified = b"" if id_ is None else b"id: " + id_.encode() + b"\n"
    return b"event: message\n" + identified + b"data: " + message + b"\n\n"


def id_as_json(id_: Id | None) -> bytes:
    """Return the id of a request as JSON."""
    return b"%d" % id_ if isinstance(id_, int) else json.dumps(id_, ensure_ascii=False).encode()


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ID_LENGTH
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER_ID


def _check_envelope(message: Message) -> None:
    missing = [key for key in (VERSION, CAPABILITIES) if key not in message.meta]
    if missing:
        raise ProtocolError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.", status=400)
    if not isinstance(message.meta[CAPABILITIES], dict):
        raise ProtocolError(
            INVALID_PARAMS, f"params._meta: {CAPABILITIES} must be a JSON object.", status=400
        )


def _modern(name: Any) -> revisions.Revision:
    revision = revisions.REVISIONS.get(name) if isinstance(name, str) else None
    if revision is None or not revision.is_modern:
        requested = str(name)[:MAX_REVISION_LENGTH]
        raise ProtocolError(
            UNSUPPORTED_VERSION,
            f"Revision {requested!r} is not supported here. Supported: {', '.join(revisions.SUPPORTED)}.",
            status=400,
            data={"supported": list(revisions.SUPPORTED), "requested": requested},
        )
    return revision


def _decoded(header: str | None) -> str | None:
    """Return the value of a header, which may be encoded in base64; None if it cannot be decoded."""
    if header is None or (wrapped := _IN_BASE64.fullmatch(header)) is None:
        return header
    try:
        raw = base64.b64decode(wrapped[1], validate=True)
        # Accept only the canonical encoding, so that all parsers see the same value.
        return raw.decode() if base64.b64encode(raw).decode() == wrapped[1] else None
    except ValueError:
        return None
