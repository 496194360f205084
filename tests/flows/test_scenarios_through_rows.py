"""Tests that scenarios have the same result through the database as in the core alone.

`test_scenarios_over_http` loads, edits and asks through the database too, in every scenario, so this file needs only
those with calls.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from toolbelt import testing

HERE = Path(__file__).parent.parent / "scenarios"
FILES = sorted(HERE.rglob("*.json"))
# Rules are decided from values, wherever they were read, so PostgreSQL only needs these: scenarios that write while
# they run, that have values that no form would accept, or that combine many features.
ON_POSTGRESQL = {"availability", "calls", "combined", "ends", "lenient", "reasons", "sessions", "subagents"}
SCENARIOS: list[dict[str, Any]] = [
    scenario
    for file in FILES
    for scenario in json.loads(file.read_text())
    if (
        file.stem in ON_POSTGRESQL
        if connection.vendor == "postgresql"
        else any("call" in step for step in scenario.get("steps", ()))
    )
]


@pytest.mark.django_db
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_a_scenario_holds_through_the_database(scenario: dict[str, Any]) -> None:
    assert [str(failure) for failure in testing.run_through_rows(scenario)] == []
