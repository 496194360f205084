"""What does this message say, and how is it answered? JSON-RPC as MCP has it, without any I/O.

One message a body. What cannot be answered otherwise is a :class:`Fault`: an error as the specification numbers it,
with the HTTP status that goes with it. Up to 2025-11-25 an error in answer to a sound request comes with 200; from
2026-07-28 on the status says it, too.
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
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
CANCELLED = -32800

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
SERVER = "io.modelcontextprotocol/serverInfo"

LIST_CHANGED = "notifications/tools/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED_BY_CLIENT = "notifications/cancelled"
PROGRESS = "notifications/progress"

LONGEST_ID = 1000
# Larger numbers are not the same everywhere.
LARGEST_ID = 2**53
LONGEST_CURSOR = 400
LONGEST_REVISION = 40

_STATUS: Mapping[int, int] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
}
# The parameter that stands in Mcp-Name, too.
_NAMED_BY: Mapping[str, str] = {"tools/call": "name", "resources/read": "uri"}
# Canonical JSON holds no other.
_BREAKS = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))
_IN_BASE64 = re.compile(r"=\?base64\?(.*)\?=")

Id = str | int


class Fault(Exception):
    """What is answered instead: the error's ``code``, its words and ``data``, and the HTTP ``status`` with ``headers``.

    ``id`` is that of the request, where it is known.
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
        """Give the HTTP status, in answer to a request of this era."""
        if self._status is not None:
            return self._status
        return (
            _STATUS.get(self.code, 200) if is_modern or self.code in (PARSE_ERROR, INVALID_REQUEST) else 200
        )


class Message(NamedTuple):
    """A message of a client's. A request has an ``id``; what it answers to a server has no ``method``."""

    id: Id | None
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """Give what is said about the request itself."""
        found = self.params.get("_meta")
        return found if isinstance(found, dict) else {}


class Headers(NamedTuple):
    """What stands in headers about a message; ``twice`` names one of them that came twice."""

    version: str | None
    method: str | None
    name: str | None
    twice: str = ""


def read(document: Any) -> Message:
    """Read a message. Raises Fault."""
    if isinstance(document, list):
        raise Fault(INVALID_REQUEST, "Send one message at a time: this revision knows no batches.")
    if not isinstance(document, dict) or document.get("jsonrpc") != "2.0":
        raise Fault(INVALID_REQUEST, 'A message is a JSON object with "jsonrpc": "2.0".')
    method, params = document.get("method"), document.get("params", {})
    if method is None and "id" in document and ("result" in document or "error" in document):
        return Message(None, "", {})
    id_ = document.get("id")
    if "id" in document and not _is_id(id_):
        raise Fault(INVALID_REQUEST, "The id of a request is a text or a whole number.")
    if not isinstance(method, str) or not method:
        raise Fault(INVALID_REQUEST, "A message names its method.")
    if not isinstance(params, dict):
        # Known by its id, so that whoever waits for an answer gets one.
        raise answering(Fault(INVALID_PARAMS, "params is a JSON object.", status=400), id_)
    return Message(id_, method, params)


def answering(fault: Fault, id_: Id | None) -> Fault:
    """Say which request a fault answers."""
    fault.id = id_
    return fault


def revision(message: Message, headers: Headers) -> revisions.Revision:
    """Say which revision a message is of, and hold what it says against what its headers say. Raises Fault.

    A message says it itself in the second era; before that, the header does, and the handshake needs none.
    """
    said = message.meta.get(VERSION)
    named = headers.version
    if said is None and (named is None or named in revisions.HANDSHAKE):
        return revisions.REVISIONS[named or revisions.ASSUMED]
    if said is None and named not in revisions.MODERN:
        return _modern(named)
    if message.id is None:
        # It is told of the header alone: what else a notification has to say is not defined.
        return _modern(named if named is not None else said)
    if headers.twice:
        raise Fault(HEADER_MISMATCH, f"{headers.twice} stands twice in the head of the request.")
    _check_envelope(message)
    if named != said:
        raise Fault(HEADER_MISMATCH, "MCP-Protocol-Version does not say what the request's _meta says.")
    if headers.method != message.method:
        raise Fault(HEADER_MISMATCH, "Mcp-Method does not name the method that the request names.")
    named_by = _NAMED_BY.get(message.method)
    wanted = message.params.get(named_by) if named_by is not None else None
    if isinstance(wanted, str) and _decoded(headers.name) != wanted:
        raise Fault(HEADER_MISMATCH, "Mcp-Name does not name what the request names.")
    return _modern(said)


def progress_token(message: Message) -> Id | None:
    """Give the token under which the client wants to hear of progress, if it does."""
    token = message.meta.get("progressToken")
    return token if _is_id(token) else None


def cursor(message: Message) -> str | None:
    """Give the name after which the page begins; None: from the beginning. Raises Fault."""
    given = message.params.get("cursor")
    if given is None:
        return None
    try:
        if not isinstance(given, str) or len(given) > LONGEST_CURSOR:
            raise ValueError
        name = base64.b64decode(given, altchars=b"-_", validate=True).decode()
        if not name.startswith(">"):
            raise ValueError
    except (ValueError, binascii.Error):
        raise Fault(INVALID_PARAMS, "This is no cursor that was given here: begin without one.") from None
    return name[1:]


def cursor_after(name: str) -> str:
    """Give the cursor of the page that begins after this name."""
    return base64.urlsafe_b64encode(f">{name}".encode()).decode()


def answer(id_: Id | None, result: Mapping[str, Any]) -> bytes:
    """Write the answer to a request."""
    return schema.canonical({"id": id_, "jsonrpc": "2.0", "result": result}).encode()


def error(id_: Id | None, fault: Fault) -> bytes:
    """Write the error that answers a request; without an id where the request did not say it."""
    told: dict[str, Any] = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        told["data"] = fault.data
    return schema.canonical({"error": told, "id": id_, "jsonrpc": "2.0"}).encode()


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Write a message that wants no answer."""
    said: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params:
        said["params"] = params
    return schema.canonical(said).encode()


def event(message: bytes, id_: str | None = None) -> bytes:
    """Write a message as an event of a stream: one line, also for clients that take more for the end of one."""
    for break_, escaped in _BREAKS:
        message = message.replace(break_, escaped)
    identified = b"" if id_ is None else b"id: " + id_.encode() + b"\n"
    return b"event: message\n" + identified + b"data: " + message + b"\n\n"


def id_as_json(id_: Id) -> bytes:
    """Write the id of a request."""
    return b"%d" % id_ if isinstance(id_, int) else json.dumps(id_, ensure_ascii=False).encode()


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_ID
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_ID


def _check_envelope(message: Message) -> None:
    missing = [key for key in (VERSION, CAPABILITIES) if key not in message.meta]
    if missing:
        raise Fault(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.", status=400)
    if not isinstance(message.meta[CAPABILITIES], dict):
        raise Fault(INVALID_PARAMS, f"params._meta: {CAPABILITIES} is a JSON object.", status=400)


def _modern(name: Any) -> revisions.Revision:
    found = revisions.REVISIONS.get(name) if isinstance(name, str) else None
    if found is None or not found.is_modern:
        requested = str(name)[:LONGEST_REVISION]
        raise Fault(
            UNSUPPORTED_VERSION,
            f"Revision {requested!r} is not spoken so here: it is one of {', '.join(revisions.SUPPORTED)}.",
            status=400,
            data={"supported": list(revisions.SUPPORTED), "requested": requested},
        )
    return found


def _decoded(header: str | None) -> str | None:
    """Read a header whose value may stand in base64; None where that cannot be read."""
    if header is None or (wrapped := _IN_BASE64.fullmatch(header)) is None:
        return header
    try:
        raw = base64.b64decode(wrapped[1], validate=True)
        # Two ways to write one value would let two readers see two values.
        return raw.decode() if base64.b64encode(raw).decode() == wrapped[1] else None
    except ValueError:
        return None
