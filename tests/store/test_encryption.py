"""Tests of the encryption of stored tokens, and of replacing its key."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import Fernet

from toolbelt.core import errors
from toolbelt.store import encryption

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def test_a_text_is_read_with_any_key_and_written_with_the_first(settings: Any) -> None:
    settings.TOOLBELT_ENCRYPTION_KEYS = [OLD]
    sealed = encryption.encrypt("token")
    assert "token" not in sealed
    settings.TOOLBELT_ENCRYPTION_KEYS = [NEW, OLD]
    assert encryption.decrypt(sealed) == "token"
    again = encryption.encrypt_again(sealed)
    settings.TOOLBELT_ENCRYPTION_KEYS = [NEW]
    assert encryption.decrypt(again) == "token"
    with pytest.raises(encryption.UnreadableError, match="TOOLBELT_ENCRYPTION_KEYS"):
        encryption.decrypt(sealed)


def test_without_a_key_nothing_is_encrypted(settings: Any) -> None:
    settings.TOOLBELT_ENCRYPTION_KEYS = []
    for act in (encryption.encrypt, encryption.decrypt):
        with pytest.raises(errors.Refused, match="TOOLBELT_ENCRYPTION_KEYS"):
            act("token")
