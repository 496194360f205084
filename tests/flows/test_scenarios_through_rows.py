"""Every scenario has the same result through the database as in the core alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from toolbelt import testing

HERE = Path(__file__).parent.parent / "scenarios"
# A rule is decided from values, wherever they were read. So on PostgreSQL, these do: scenarios that write while they
# run, those with values that no form would accept, and those that have a bit of everything.
ON_POSTGRESQL = {"availability", "calls", "combined", "ends", "lenient", "reasons", "sessions", "subagents"}
SCENARIOS: list[dict[str, Any]] = [
    s
    for file in sorted(HERE.rglob("*.json"))
    if connection.vendor == "sqlite" or file.stem in ON_POSTGRESQL
    for s in json.loads(file.read_text())
]


@pytest.mark.django_db
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_a_scenario_holds_through_rows_and_doors(scenario: dict[str, Any]) -> None:
    assert [str(failure) for failure in testing.run_through_rows(scenario)] == []
