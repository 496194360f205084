"""Reading of messages as programs really write them, where the official client reads none.

A message has one reading even with half a character, bytes that are not UTF-8, a log line in front of it, nulls for
what is left out, or an error that is only a text. What cannot be read but can only be one answer becomes an error with
the id of that request, so that its caller does not wait.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import mcp_types
from mcp.shared import message

Id = int | str

_DECODER = json.JSONDecoder()
# How many lines a message may have.
MAX_LINES = 10_000
_ANSWERS = re.compile(r"""["'](?:result|error)["']\s*:""")
_CANCELLED, _INITIALIZE = "notifications/cancelled", "initialize"
_UNREADABLE = "The server's answer cannot be read."
_GLUED = (
    "The server wrote something else in front of its answer, on the same line, so the answer is not read."
)
# How a message may begin that is not at the beginning of its line, and how many of these are tried.
_INNER = re.compile(r"""\{\s*"(?:jsonrpc|id|result|error)"\s*:""")
_MAX_INNER = 3


class Joined:
    """Joins the lines of a message that a program prints with line breaks: from a line with a bracket alone to one that
    completes it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def of(self, line: bytes) -> bytes | None:
        """Return the line, or the lines that it completes; None if they are not complete."""
        if not self._parts and line.strip() not in (b"{", b"["):
            return line
        self._parts.append(line)
        self._size += len(line) + 1
        # An indented line is inside of the message, and a whole message is not.
        is_last = line.rstrip() in (b"}", b"]") and line == line.lstrip()
        is_message = line.startswith(b'{"') and len(self._parts) > 1
        if not (is_last or is_message or self._size > self._max_bytes or len(self._parts) > MAX_LINES):
            return None
        whole = line if is_message else b"\n".join(self._parts)
        self._parts, self._size = [], 0
        return whole


def messages(line: bytes, waiting: Collection[Id]) -> list[message.SessionMessage] | None:
    """Return the messages in a line; None if it is none, such as a log message.

    ``waiting`` are the ids of the requests that have no answer yet.
    """
    text = line.decode("utf-8", "replace").lstrip("\ufeff")
    found = [read for value in _values(text) if (read := _message(value, waiting)) is not None]
    if found:
        return found
    id_ = _id_of_unreadable(text, waiting)
    return None if id_ is None else [_failed(id_)]


def glued(line: bytes, waiting: Collection[Id]) -> Id | None:
    """Return the id of the waiting request whose answer ends a line that begins with something else; None if there is
    none. It may be a quote in a log, so it is not the answer.
    """
    text = line.decode("utf-8", "replace").rstrip()
    for begin in itertools.islice(_INNER.finditer(text), _MAX_INNER):
        try:
            value, end = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        if end == len(text) and _is_message(value) and "method" not in value:
            id_ = _id(value["id"], waiting)
            id_ = int(id_) if isinstance(id_, str) and id_ not in waiting and id_.isdecimal() else id_
            return id_ if id_ in waiting else None
    return None


def not_read(id_: Id) -> message.SessionMessage:
    """Return the error for a request whose answer may have been glued to something else."""
    return _failed(id_, _GLUED)


def unread(error: ValueError, waiting: Collection[Id]) -> list[message.SessionMessage]:
    """Return the messages in a text that the official client refused with this error of its schema."""
    read = getattr(error, "errors", None)
    inputs = (
        [wrong["input"] for wrong in read(include_url=False) if len(wrong["loc"]) < 3]
        if callable(read)
        else []
    )
    # The text if it is no JSON; else its value, with which each kind of message finds something missing.
    for given in inputs:
        text = given if isinstance(given, str) else json.dumps(given)
        if isinstance(given, dict | list) or len(inputs) == 1:
            return messages(text.encode("utf-8", "replace"), waiting) or []
    return []


def asked(sent: mcp_types.JSONRPCMessage, waiting: dict[Id, None]) -> None:
    """Note what is sent: a request waits for its answer, until it is cancelled."""
    if isinstance(sent, mcp_types.JSONRPCRequest):
        if sent.method == _INITIALIZE:
            # What came before was a probe, whose answer nothing waits for anymore.
            waiting.clear()
        waiting[sent.id] = None
    elif isinstance(sent, mcp_types.JSONRPCNotification) and sent.method == _CANCELLED:
        waiting.pop((sent.params or {}).get("requestId", ""), None)


def answered(received: mcp_types.JSONRPCMessage, waiting: dict[Id, None]) -> None:
    """Note what is received: an answer ends the waiting for it, also if its id is the text of a number."""
    if isinstance(received, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
        id_ = received.id
        if isinstance(id_, str) and id_ not in waiting and id_.isascii() and id_.isdigit():
            id_ = int(id_)
        waiting.pop("" if id_ is None else id_, None)


def _values(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON object with which a line begins, or those of a list.

    Not one that begins later: a log may quote what another agent passed to a tool.
    """
    try:
        value, _end = _DECODER.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and _is_message(each):
            yield each


def _is_message(value: dict[str, Any]) -> bool:
    return isinstance(value.get("method"), str) or ("id" in value and ("result" in value or "error" in value))


def _message(value: dict[str, Any], waiting: Collection[Id]) -> message.SessionMessage | None:
    """Return a JSON object as a message; None if it is none."""
    if isinstance(value.get("method"), str):
        kept = {name: value[name] for name in ("id", "method", "params") if value.get(name) is not None}
        return _checked({"jsonrpc": "2.0", **kept})
    # An answer to no request can only be an error.
    id_ = _id(value["id"], waiting if value.get("error") is not None else ())
    if id_ is None:
        return None
    if value.get("error") is not None:
        return _checked({"jsonrpc": "2.0", "id": id_, "error": _error(value["error"])})
    result = {} if value.get("result") is None else value["result"]
    return _checked({"jsonrpc": "2.0", "id": id_, "result": result})


def _checked(value: dict[str, Any]) -> message.SessionMessage | None:
    try:
        adapter = mcp_types.jsonrpc_message_adapter
        return message.SessionMessage(adapter.validate_python(_clean(value), by_name=False))
    except (ValueError, RecursionError):
        return _failed(value["id"]) if "id" in value and "method" not in value else None


def _id(given: Any, waiting: Collection[Id]) -> Id | None:
    """Return the id of the request that an answer with this id is for; None if it is for none."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if given is None:
        # The server could not read which request it was.
        return next(iter(waiting)) if len(waiting) == 1 else None
    return given if isinstance(given, int | str) and not isinstance(given, bool) else None


def _error(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        return {"code": mcp_types.INTERNAL_ERROR, "message": _words(given)}
    code, words = given.get("code"), given.get("message")
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    is_number = isinstance(code, int) and not isinstance(code, bool)
    error: dict[str, Any] = {
        "code": code if is_number else mcp_types.INTERNAL_ERROR,
        "message": words if isinstance(words, str) else _words("" if words is None else words),
    }
    return error | ({"data": given["data"]} if given.get("data") is not None else {})


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _clean(value: Any) -> Any:
    """Return a value without halves of characters, which no text may contain."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_clean(name): _clean(each) for name, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value


def _id_of_unreadable(text: str, waiting: Collection[Id]) -> Id | None:
    """Return the id of the only request that a line may answer which cannot be read; None if it is no answer."""
    is_answer = text.lstrip().startswith(("{", "[")) and "jsonrpc" in text and _ANSWERS.search(text)
    if not is_answer:
        return None
    return next(iter(waiting)) if len(waiting) == 1 else None


def _failed(id_: Id, words: str = _UNREADABLE) -> message.SessionMessage:
    error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message=words)
    return message.SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=id_, error=error))
