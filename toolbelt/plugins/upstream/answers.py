"""What the bodies of a server's answers over HTTP say: that a session is unknown, a message, and whose answer it is.

Nothing is sent here, and ``mcp`` is not required.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

# How servers say that they do not know a session. (MCP requires 404, with any wording.) With HTTP 400, they may also
# only name what they keep a session in. Tools use such words as well, so the server is asked whether it knows the
# session; not if the words are about an argument.
GONE = frozenset({404, 410})
_UNKNOWN = re.compile(
    r"session.{0,30}\b(unknown|expired|invalid|terminated|closed|ended|gone|lost|stale|missing|required|no longer"
    r"|(not|n't) (be )?(found|exist|valid|know|recogni[sz]e|active))"
    r"|\b(no|unknown|invalid|expired|stale|missing|bad|(not|n't) (find|know|recogni[sz]e))\b.{0,30}session"
    r"|not (been )?initiali[sz]ed|expect.{0,12}initiali[sz]e",
    re.IGNORECASE,
)
_MENTIONED = re.compile(
    r"session.?(id|identifier|key|token)\b|(connection|transport).{0,20}\b(id|found)\b", re.IGNORECASE
)
_PARAMETER = r"(parameter|argument|field|property|properties|option|input|value)"
_ARGUMENT = re.compile(
    rf"\b{_PARAMETER}s?\b.{{0,20}}\bsession|\bsession\w*\W{{1,4}}{_PARAMETER}\b", re.IGNORECASE
)
_HEADER = re.compile(r"mcp-session-id", re.IGNORECASE)
# How much of an answer is searched for such words; one with HTTP 200 is a result if it is longer.
MAX_REFUSAL_BYTES = 4 * 1024
# How the lines of a stream of events begin.
_FIELDS = (b"event:", b"data:", b"id:", b"retry:", b":")
_IDS = re.compile(rb'"id"\s*:\s*"?([^"\s,}]++)')


def is_refusal(status: int, body: bytes) -> bool:
    """Return whether an answer with this body may mean that the session is unknown."""
    if status in GONE:
        return True
    text = body[:MAX_REFUSAL_BYTES].decode(errors="replace")
    if status < 400:
        text = _failure(body) if len(body) <= MAX_REFUSAL_BYTES else ""
    elif status == 400 and (not text.strip() or _HEADER.search(text)):
        return True
    if _ARGUMENT.search(text):
        return False
    return bool(_UNKNOWN.search(text) or (status == 400 and _MENTIONED.search(text)))


def _failure(body: bytes) -> str:
    """Return the text of an error, or of a tool's result that is one; empty for anything else."""
    for document in documents(body):
        if (error := document.get("error")) is not None:
            return json.dumps(error)
        if isinstance(result := document.get("result"), dict) and result.get("isError"):
            return json.dumps(result.get("content"))
    return ""


def message_of(body: bytes) -> str:
    """Return the message of a JSON-RPC error; empty for anything else."""
    errors = (document.get("error") for document in documents(body))
    words = next((error.get("message") for error in errors if isinstance(error, dict)), "")
    return words if isinstance(words, str) else ""


def is_result(body: bytes) -> bool:
    """Return whether a tool has answered: it has run, whatever its text says."""
    return any(document.get("result") is not None for document in documents(body))


def documents(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of an answer, which is one, or a stream of events."""
    for event in re.split(rb"\r?\n\r?\n|\r\r", body) if body.lstrip().startswith(_FIELDS) else [body]:
        lines = event.splitlines()
        data = b"\n".join(line.removeprefix(b"data:") for line in lines if line.startswith(b"data:")) or event
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            yield document


def with_id(body: bytes, id_: Any) -> bytes:
    """Return an answer with the id of its request: it answers no other, whatever id the server gives."""
    wanted = str(id_).encode()
    if id_ is None or any(given[1] == wanted for given in _IDS.finditer(body)):
        return body
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return body
    is_answer = isinstance(document, dict) and "method" not in document
    return json.dumps({**document, "id": id_}).encode() if is_answer else body
