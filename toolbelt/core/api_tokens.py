"""What does a token of the API look like? ``tb_``, 51 letters and digits, and six more that check them.

The first eight of those name the token and may be shown; the 43 after them are the secret (256 bits). The last six
are a checksum, so that a typo is told from a token that is not known, and so that whoever scans texts for secrets
finds the real ones: ``tb_[0-9A-Za-z]{57}``.
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
    """Put a token together; ``choose`` picks one of the letters that it is given, at random."""
    body = MARK + "".join(choose(ALPHABET) for _ in range(NAME + SECRET))
    return body + _checksum(body)


def is_well_formed(text: str) -> bool:
    """Say whether a text has the form of a token, and its checksum holds."""
    return _FORM.fullmatch(text) is not None and _checksum(text[:-CHECKSUM]) == text[-CHECKSUM:]


def prefix(text: str) -> str:
    """Give the part of a token that names it, and may be shown."""
    return text[:PREFIX]


def withheld(text: str) -> str:
    """Leave in a text, of each token that stands in it, only the part that may be shown."""
    return _FORM.sub(lambda found: f"{prefix(found[0])}[withheld]", text)


def digest(text: str) -> str:
    """Give what is kept of a token: nobody gets from there to the token, for it is long and random."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_digest_of(kept: str, text: str) -> bool:
    """Compare in a time that says nothing about where the two differ."""
    return hmac.compare_digest(kept, digest(text))


def _checksum(body: str) -> str:
    number, letters = zlib.crc32(body.encode()), ""
    for _ in range(CHECKSUM):
        number, rest = divmod(number, len(ALPHABET))
        letters = ALPHABET[rest] + letters
    return letters
