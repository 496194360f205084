"""Encryption of what is stored and must not be readable there, with the keys of `TOOLBELT_ENCRYPTION_KEYS`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cryptography import fernet

from toolbelt import conf
from toolbelt.core import errors

NO_KEY = (
    "Signing in to servers needs a key that encrypts their tokens: set TOOLBELT_ENCRYPTION_KEYS to what"
    " `{} encryption new-key` prints, and restart Toolbelt's servers."
)


class UnreadableError(errors.Refused):
    """No key of the setting decrypts this text. Whoever has the old key can add it."""


def check_is_possible() -> None:
    """Raise Refused if there is no key."""
    if not conf.ENCRYPTION_KEYS:
        raise errors.Refused(NO_KEY.format(conf.COMMAND))


def new_key() -> str:
    """Return a new key."""
    return fernet.Fernet.generate_key().decode()


def encrypt(text: str) -> str:
    """Return the text, encrypted with the first key. Raise Refused if there is none."""
    return _keys().encrypt(text.encode()).decode()


def decrypt(text: str) -> str:
    """Return the text that was encrypted. Raise Refused without a key, or UnreadableError."""
    with _readable():
        return _keys().decrypt(text).decode()


def encrypt_again(text: str) -> str:
    """Return what was encrypted, encrypted with the first key. Raise as :func:`decrypt` does."""
    with _readable():
        return _keys().rotate(text).decode()


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except fernet.InvalidToken as error:
        raise UnreadableError(
            "The tokens of the sign-in were encrypted with a key that TOOLBELT_ENCRYPTION_KEYS no longer has: add it,"
            " or sign in again."
        ) from error


def _keys() -> fernet.MultiFernet:
    check_is_possible()
    return fernet.MultiFernet([fernet.Fernet(key) for key in conf.ENCRYPTION_KEYS])
