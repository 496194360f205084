"""Format, checksum and digest of API tokens: ``tb_``, 51 letters and digits, and a checksum of six more.

The first eight characters after ``tb_`` identify the token and may be shown; the 43 after them are the secret (256
bits). The checksum tells a typo from an unknown token, and lets secret scanners recognize real tokens:
``tb_[0-9A-Za-z]{57}``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import string
import zlib
from collections.abc import Callable

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
MARK = "tb_"
NAME, SECRET, CHECKSUM = 8, 43, 6
PREFIX = len(MARK) + NAME

_FORM = re.compile(rf"{MARK}[0-9A-Za-z]{{{NAME + SECRET + CHECKSUM}}}", re.ASCII)


def make(choose: Callable[[str], str]) -> str:
    """Return a new token; ``choose`` picks a random character from the alphabet that it is passed."""
    body = MARK + "".join(choose(ALPHABET) for _ in range(NAME + SECRET))
    return body + _checksum(body)


def is_well_formed(text: str) -> bool:
    """Return whether a text has the format of a token and a valid checksum."""
    return _FORM.fullmatch(text) is not None and _checksum(text[:-CHECKSUM]) == text[-CHECKSUM:]


def prefix(text: str) -> str:
    """Return the public part of a token, which identifies it."""
    return text[:PREFIX]


def redact(text: str) -> str:
    """Return the text with each token in it cut to its public part."""
    return _FORM.sub(lambda match: f"{prefix(match[0])}[withheld]", text)


def digest(text: str) -> str:
    """Return the hash of a token that is stored. Tokens are long and random, so it cannot be reversed."""
    return hashlib.sha256(text.encode()).hexdigest()


def matches_digest(stored: str, text: str) -> bool:
    """Return whether the stored hash belongs to the token, in constant time."""
    return hmac.compare_digest(stored, digest(text))


def _checksum(body: str) -> str:
    number, letters = zlib.crc32(body.encode()), ""
    for _ in range(CHECKSUM):
        number, digit = divmod(number, len(ALPHABET))
        letters = ALPHABET[digit] + letters
    return letters
