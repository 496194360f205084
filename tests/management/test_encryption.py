"""Tests of the command for the keys that encrypt tokens."""

from __future__ import annotations

import io
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from toolbelt import models
from toolbelt.store import encryption, server_sign_ins

pytestmark = pytest.mark.django_db

OLD, NEW, LOST = (Fernet.generate_key().decode() for _ in range(3))


def run(act: str) -> str:
    out = io.StringIO()
    call_command("encryption", act, stdout=out)
    return out.getvalue()


def sign_in(name: str) -> None:
    models.Plugin.objects.create(name=name)
    server_sign_ins.put(
        name, signed_in_by="kim", url="https://x.example", issuer="", scopes="", grant="token", expires=None
    )


def grant(name: str) -> str:
    found = server_sign_ins.find(name)
    assert found is not None
    return found.grant()


def test_a_new_key_can_be_used(settings: Any) -> None:
    settings.TOOLBELT_ENCRYPTION_KEYS = [run("new-key").strip()]
    assert encryption.decrypt(encryption.encrypt("token")) == "token"


def test_after_a_rotation_the_old_key_can_be_removed(settings: Any) -> None:
    settings.TOOLBELT_ENCRYPTION_KEYS = [OLD]
    sign_in("notes")
    settings.TOOLBELT_ENCRYPTION_KEYS = [NEW, OLD]
    assert "1 sign-in " in run("rotate")
    settings.TOOLBELT_ENCRYPTION_KEYS = [NEW]
    assert grant("notes") == "token"


def test_a_rotation_says_what_no_key_decrypts(settings: Any) -> None:
    settings.TOOLBELT_ENCRYPTION_KEYS = [LOST]
    sign_in("lost")
    settings.TOOLBELT_ENCRYPTION_KEYS = [NEW]
    sign_in("notes")
    with pytest.raises(CommandError, match="1 sign-in"):
        run("rotate")
    assert grant("notes") == "token"
