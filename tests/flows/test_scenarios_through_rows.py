"""Tests that every scenario has the same result through the database as in the core alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from toolbelt import testing

HERE = Path(__file__).parent.parent / "scenarios"
# Rules are decided from values, wherever they were read, so PostgreSQL only needs these: scenarios that write while
# they run, that have values that no form would accept, or that combine many features.
ON_POSTGRESQL = {"availability", "calls", "combined", "ends", "lenient", "reasons", "sessions", "subagents"}
SCENARIOS: list[dict[str, Any]] = [
    s
    for file in sorted(HERE.rglob("*.json"))
    if connection.vendor == "sqlite" or file.stem in ON_POSTGRESQL
    for s in json.loads(file.read_text())
]


@pytest.mark.django_db
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_a_scenario_holds_through_the_database(scenario: dict[str, Any]) -> None:
    assert [str(failure) for failure in testing.run_through_rows(scenario)] == []
