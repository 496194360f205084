"""Tests of what `manage.py serve` checks before it serves."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from toolbelt.control.doctor import machine


def test_a_missing_directory_for_metrics_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "missing"))
    with pytest.raises(
        CommandError, match=r"No file can be written in .*missing.*change PROMETHEUS_MULTIPROC"
    ):
        call_command("serve", port=0)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert not [*machine.metrics_directory()]
