"""What the tests of calls share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime import sample_plugins
from tests.runtime.calls import asked
from tests.runtime.conftest import Install


@pytest.fixture
def ran(db: None, install: Install, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the arguments with which the tool has run."""
    install("Kb", config="api_key: sesame-2000", **asked.BELT)
    return sample_plugins.recorded_searches(monkeypatch)
