"""Take known secrets out of texts, in whatever form they are likely to stand there.

A secret is known from the moment that somebody is given it (:func:`add`), and until the process ends. It is looked for
as it is, and URL-encoded, escaped as in JSON and in Python's ``repr``, and in base64. Of a value with a scheme in
front, such as ``Bearer X``, X is a secret as well, and so is the password of ``user:password``, plain or in base64.

Imports nothing of Django, as the log uses it, too.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import threading
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import re2

MASK = "[withheld]"
# Shorter ones are too likely to be part of a word.
SHORTEST = 6

_SCHEME = re.compile(r"(?:bearer|basic|digest|token|api-?key|key) +(\S+) *", re.IGNORECASE)
# Enough for thousands of secrets; beyond it, they are looked for one by one.
_ROOM = 64 * 1024 * 1024


class _Known(NamedTuple):
    """All forms that are looked for, and one expression that finds any of them."""

    forms: tuple[str, ...] = ()
    expression: Any = None


_secrets: set[str] = set()
_known = _Known()
_lock = threading.Lock()


def add(secret: str) -> None:
    """Know a text as a secret from now on. One that is too short is not looked for."""
    global _known
    if len(secret) < SHORTEST or secret in _secrets:
        return
    with _lock:
        _secrets.add(secret)
        forms = {*_known.forms, *_forms(secret)}
        _known = _Known(tuple(sorted(forms, key=lambda form: (-len(form), form))), _expression(forms))


def mask(text: str) -> str:
    """Return the text without any secret; secrets that overlap are taken out together."""
    known = _known
    if not _occurs(text, known):
        return text
    parts, end = [], 0
    for begin, over in _spans(text, known.forms):
        parts += [text[end:begin], MASK]
        end = over
    return "".join([*parts, text[end:]])


def mask_json(document: str) -> str:
    """Return a JSON document without any secret in its texts and keys; the same text where there is none."""
    if not _occurs(document, _known):
        return document
    try:
        found = json.loads(document)
    except ValueError:
        return mask(document)
    return json.dumps(mask_value(found), ensure_ascii=document.isascii())


def mask_value(value: Any) -> Any:
    """Return a JSON value without any secret. A number that is one is replaced by a text."""
    match value:
        case str():
            return mask(value)
        case Mapping():
            return {mask(key): mask_value(one) for key, one in value.items()}
        case list() | tuple():
            return [mask_value(one) for one in value]
        case bool() | None:
            return value
    text = json.dumps(value)
    return value if mask(text) == text else MASK


def forget() -> None:
    """Know no secrets. For tests."""
    global _known
    with _lock:
        _secrets.clear()
        _known = _Known()


def _occurs(text: str, known: _Known) -> bool:
    if not known.forms:
        return False
    if known.expression is not None:
        try:
            return known.expression.search(text) is not None
        except UnicodeEncodeError:
            pass  # half a character, which only Python's own search can pass over
    return any(form in text for form in known.forms)


def _spans(text: str, forms: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield where secrets stand, in order; what overlaps is one."""
    found = sorted((begin, begin + len(form)) for form in forms for begin in _places(text, form))
    begin, end = found[0]
    for next_begin, next_end in found[1:]:
        if next_begin >= end:
            yield begin, end
            begin = next_begin
        end = max(end, next_end)
    yield begin, end


def _places(text: str, form: str) -> Iterator[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)


def _expression(forms: Iterable[str]) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _ROOM
    try:
        return re2.compile("|".join(map(re2.escape, sorted(forms))), options=options)
    except (re2.error, UnicodeEncodeError):
        return None


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms in which a secret, and what is secret inside it, may stand in a text."""
    for part in {secret, *_parts(secret)}:
        encoded = part.encode(errors="surrogatepass")
        forms = {
            part,
            urllib.parse.quote(encoded, safe=""),
            urllib.parse.quote(encoded),
            urllib.parse.quote_plus(encoded),
            json.dumps(part)[1:-1],
            json.dumps(part, ensure_ascii=False)[1:-1],
            repr(part)[1:-1],
            base64.b64encode(encoded).decode().rstrip("="),
            base64.urlsafe_b64encode(encoded).decode().rstrip("="),
        }
        yield from (form for form in forms if len(form) >= SHORTEST)


def _parts(secret: str) -> Iterator[str]:
    """Yield what is a secret by itself inside a longer one."""
    scheme = _SCHEME.fullmatch(secret)
    if scheme is not None:
        yield scheme[1]
    for text in filter(None, (secret, _decoded(scheme[1] if scheme else secret))):
        if text != secret:
            yield text
        user, colon, password = text.partition(":")
        if colon and user and password and not password.startswith("//"):
            yield password
    try:
        address = urllib.parse.urlsplit(secret)
        if address.password:
            yield from (address.password, urllib.parse.unquote(address.password))
    except ValueError:
        pass
    # Of a key in several lines, a log may show one.
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= 16 and not line.startswith("-----"))


def _decoded(text: str) -> str:
    """Return what stands in base64 as ``user:password``; empty if it is not that."""
    try:
        found = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
    return found if ":" in found and found.isprintable() else ""
