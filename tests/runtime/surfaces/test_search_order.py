"""Tests that a search of stored tools has the same results in the same order on every database."""

from __future__ import annotations

import pytest

from toolbelt import testing
from toolbelt.control.config import belts
from toolbelt.core import admitting
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime.calls import own_tools

pytestmark = pytest.mark.django_db

# Databases sort these differently, and they score the same.
TWINS = ["Zzqb", "_zzqc", "zzqa", "zzqd"]
TOOLS = {
    **dict.fromkeys(TWINS, "Send a letter."),
    "weather": "查询城市天气。",
    "meteo": "La météo de demain.",
    "tokyo": "東京の電車の時刻。",
}


@pytest.fixture(autouse=True)
def stored(db: None) -> None:
    belts.import_(
        testing.OPERATOR,
        {
            "tools": [{"key": key, "description": text} for key, text in reversed(TOOLS.items())],
            "toolkits": [{"key": "all", "members": sorted(TOOLS)}],
            "agents": [{"key": "ada", "allowed_toolkits": ["all"]}],
        },
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("send a letter", sorted(TWINS)),
        ("天气", ["weather"]),
        ("meteo", ["meteo"]),
        ("MÉTÉO", ["meteo"]),
        ("電車", ["tokyo"]),
    ],
)
def test_results_are_ordered_by_rank_and_then_by_key(query: str, expected: list[str]) -> None:
    answer = own_tools.call(RequestKey("ada", "s", "r"), "search_tools", {"query": query})
    assert isinstance(answer, admitting.MetaAnswer)
    assert [result["tool"] for result in answer.content["results"]] == expected
