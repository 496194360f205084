"""Tests of restoring: what is left if a step fails."""

from __future__ import annotations

import types
from pathlib import Path
from typing import NoReturn

import pytest

from toolbelt.control.config import backups
from toolbelt.core import errors
from toolbelt.store.backups import archives, table_rows


def test_an_archive_whose_migrations_fail_is_restored_and_the_message_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restored = []

    def fail(alias: str) -> NoReturn:
        raise errors.Refused("The disk is full.")

    monkeypatch.setattr(backups, "connection", types.SimpleNamespace(vendor="postgresql"))
    monkeypatch.setattr(backups, "connections", types.SimpleNamespace(close_all=lambda: None))
    monkeypatch.setattr(backups, "_check", lambda file: archives.HEADER)
    monkeypatch.setattr(backups, "_migrate", fail)
    monkeypatch.setattr(table_rows, "counts", dict)
    monkeypatch.setattr(archives, "restore", lambda connection, file: restored.append(file))

    with pytest.raises(errors.Refused, match=r"was restored, but .*: The disk is full\. .* migrate`\.$"):
        backups.restore(Path("backup.dump"))

    assert restored == [Path("backup.dump")]
