"""Tests of the command ``alerts``."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.receivers import receiving

pytestmark = pytest.mark.django_db


def test_a_test_is_sent_and_a_failure_named(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TOOLBELT_ALLOW_PRIVATE_HTTP = True
    file = tmp_path / "alerts.yaml"
    file.write_text("address: https://toolbelt.example.com\ndestinations: [{name: chat, slack: '${CHAT}'}]\n")
    settings.TOOLBELT_ALERTS_FILE = str(file)
    out = StringIO()
    with receiving() as receiver:
        monkeypatch.setenv("CHAT", receiver.address)
        call_command("alerts", "test", "chat", stdout=out)
        receiver.status = 500
        with pytest.raises(CommandError, match="it answered 500"):
            call_command("alerts", "test", "chat")
    call_command("alerts", stdout=out)
    assert [line.split()[:2] for line in out.getvalue().splitlines()][-2:] == [
        ["chat", "waiting"],
        ["chat", "delivered"],
    ]
