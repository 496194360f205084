"""Removal of known secrets from texts, in every form in which they are likely to occur.

A secret is known from its first use (:func:`add`) until the process ends. It is recognized verbatim, URL-encoded,
escaped as in JSON and in Python's ``repr``, and in base64. In a value with a scheme, such as ``Bearer X``, X is a
secret as well, and so is the password in ``user:password``, plain or in base64.

This module does not import Django, because logging uses it.
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

from toolbelt.core import secret_texts

MASK = secret_texts.WITHHELD
# Shorter ones are too likely to be part of a word.
MIN_LENGTH = 6

_SCHEME = re.compile(r"(?:bearer|basic|digest|token|api-?key|key) +(\S+) *", re.IGNORECASE)
# Enough for thousands of secrets; beyond it, they are searched one by one.
_MAX_EXPRESSION_BYTES = 64 * 1024 * 1024


class _Secrets(NamedTuple):
    """All forms of the known secrets, and one expression that matches any of them."""

    forms: tuple[str, ...] = ()
    expression: Any = None


_secrets: set[str] = set()
_known_secrets = _Secrets()
_lock = threading.Lock()


def add(secret: str) -> None:
    """Mask this text from now on. A text that is too short is ignored."""
    global _known_secrets
    if len(secret) < MIN_LENGTH or secret in _secrets:
        return
    with _lock:
        _secrets.add(secret)
        forms = {*_known_secrets.forms, *_forms(secret)}
        _known_secrets = _Secrets(
            tuple(sorted(forms, key=lambda form: (-len(form), form))), _expression(forms)
        )


def discard(secret: str) -> None:
    """Mask this text no longer, because it is valid no longer."""
    global _known_secrets
    with _lock:
        if secret in _secrets:
            _secrets.discard(secret)
            forms = {form for known in _secrets for form in _forms(known)}
            _known_secrets = _Secrets(
                tuple(sorted(forms, key=lambda form: (-len(form), form))), _expression(forms)
            )


def mask(text: str) -> str:
    """Return the text without known secrets. Overlapping secrets are replaced together."""
    known_secrets = _known_secrets
    if not _occurs(text, known_secrets):
        return text
    parts, end = [], 0
    for begin, span_end in _spans(text, known_secrets.forms):
        parts += [text[end:begin], MASK]
        end = span_end
    return "".join([*parts, text[end:]])


def mask_json(document: str) -> str:
    """Return a JSON document without known secrets in its strings and keys; unchanged if it contains none."""
    if not _occurs(document, _known_secrets):
        return document
    try:
        value = json.loads(document)
    except ValueError:
        return mask(document)
    return json.dumps(mask_value(value), ensure_ascii=document.isascii())


def mask_value(value: Any) -> Any:
    """Return a JSON value without known secrets. A number that is a secret is replaced by a string."""
    match value:
        case str():
            return mask(value)
        case Mapping():
            return {mask(key): mask_value(item) for key, item in value.items()}
        case list() | tuple():
            return [mask_value(item) for item in value]
        case bool() | None:
            return value
    text = json.dumps(value)
    return value if mask(text) == text else MASK


def forget() -> None:
    """Forget all secrets. For tests."""
    global _known_secrets
    with _lock:
        _secrets.clear()
        _known_secrets = _Secrets()


def _occurs(text: str, known_secrets: _Secrets) -> bool:
    if not known_secrets.forms:
        return False
    if known_secrets.expression is not None:
        try:
            return known_secrets.expression.search(text) is not None
        except UnicodeEncodeError:
            pass  # a lone surrogate, which only Python's own search accepts
    return any(form in text for form in known_secrets.forms)


def _spans(text: str, forms: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of secrets in order. Overlapping secrets share a span."""
    spans = sorted((begin, begin + len(form)) for form in forms for begin in _positions(text, form))
    begin, end = spans[0]
    for next_begin, next_end in spans[1:]:
        if next_begin >= end:
            yield begin, end
            begin = next_begin
        end = max(end, next_end)
    yield begin, end


def _positions(text: str, form: str) -> Iterator[int]:
    position = text.find(form)
    while position >= 0:
        yield position
        position = text.find(form, position + 1)


def _expression(forms: Iterable[str]) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_EXPRESSION_BYTES
    try:
        return re2.compile("|".join(map(re2.escape, sorted(forms))), options=options)
    except (re2.error, UnicodeEncodeError):
        return None


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms in which a secret, and the secrets within it, may occur in a text."""
    for variant in {secret, *_inner_secrets(secret)}:
        encoded = variant.encode(errors="surrogatepass")
        forms = {
            variant,
            urllib.parse.quote(encoded, safe=""),
            urllib.parse.quote(encoded),
            urllib.parse.quote_plus(encoded),
            json.dumps(variant)[1:-1],
            json.dumps(variant, ensure_ascii=False)[1:-1],
            repr(variant)[1:-1],
            base64.b64encode(encoded).decode().rstrip("="),
            base64.urlsafe_b64encode(encoded).decode().rstrip("="),
        }
        yield from (form for form in forms if len(form) >= MIN_LENGTH)


def _inner_secrets(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that are secrets themselves."""
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
    # A log may show a single line of a multi-line key.
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= 16 and not line.startswith("-----"))


def _decoded(text: str) -> str:
    """Return the ``user:password`` that the text encodes in base64; empty if it encodes none."""
    try:
        decoded = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
    return decoded if ":" in decoded and decoded.isprintable() else ""
