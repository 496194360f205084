"""Tests that concurrent changes by operators are not lost."""

import pytest

from tests import concurrently
from tests.control.conftest import BELT
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.reports import queries

pytestmark = pytest.mark.django_db(transaction=True)
OPERATOR = writing.by("olive", via="screen")


def test_concurrent_changes_of_different_keys_all_succeed() -> None:
    tools = [{"key": f"tool{n}", "description": "x", "annotations": {"readOnlyHint": True}} for n in range(8)]
    belts.import_(OPERATOR, {"tools": tools, "agents": [{"key": "ada"}]})

    results = concurrently.done(
        [lambda n=n: switches.override(OPERATOR, "ada", f"tool{n}", True, was=None) for n in range(8)]  # type: ignore[misc]
    )

    assert [change.after for change in results] == [True] * 8
    assert entries.read("agent", "ada")["tools_config"] == {f"tool{n}": True for n in range(8)}
    assert queries.changes(action="override.set").total == 8


def test_of_two_concurrent_changes_of_one_key_the_second_is_stale() -> None:
    belts.import_(OPERATOR, BELT)

    results = concurrently.done(
        [
            lambda: switches.flip(OPERATOR, "bob", "reading", False, was=True),
            lambda: switches.flip(OPERATOR, "bob", "reading", None, was=True),
        ]
    )

    assert sorted(type(result).__name__ for result in results) == ["Change", "Stale"]
    assert queries.changes(agent="bob", key="reading").total == 1
