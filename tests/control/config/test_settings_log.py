"""Tests that the audit log has the settings that decide on calls."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.control import undo
from toolbelt.control.config import settings_log
from toolbelt.core import agents, errors
from toolbelt.store import audit
from toolbelt.testing import OPERATOR

pytestmark = pytest.mark.django_db


def test_a_server_records_its_loadouts_of_kinds_only_if_they_have_changed(settings: Any) -> None:
    assert settings_log.record() is None
    settings.TOOLBELT_KIND_LOADOUTS = {**agents.KIND_LOADOUTS, "task": "full"}
    entry = audit.find(settings_log.record() or 0)
    assert entry is not None
    assert (entry.action, entry.before["task"], entry.after["task"]) == ("settings.change", "minimal", "full")
    assert settings_log.record() is None
    settings.TOOLBELT_KIND_LOADOUTS = dict(agents.KIND_LOADOUTS)
    assert settings_log.record() is not None


def test_a_setting_is_not_changed_by_undoing_its_entry(settings: Any) -> None:
    settings.TOOLBELT_KIND_LOADOUTS = {**agents.KIND_LOADOUTS, "task": "full"}
    entry = settings_log.record()
    assert entry is not None
    with pytest.raises(errors.Refused, match="restart the servers"):
        undo.undo(OPERATOR, entry)
