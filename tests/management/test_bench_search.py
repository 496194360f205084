"""``manage.py bench_search``: a table, JSON, and folders that cannot be read."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from django.core import management

SETS = Path(__file__).parents[2] / "docs/examples/requests"


def run(*arguments: str) -> str:
    out = io.StringIO()
    management.call_command("bench_search", *arguments, stdout=out)
    return out.getvalue()


def test_the_table_has_a_row_for_each_set_and_the_means() -> None:
    heading, office, mean = run(str(SETS)).splitlines()
    assert heading.split()[:4] == ["set", "tools", "queries", "recall@1"]
    assert office.split()[:3] == ["office", "5", "3"]
    assert mean.split()[0] == "mean"
    assert len(mean.split()) == 6


def test_the_json_has_the_same_figures() -> None:
    document = json.loads(run(str(SETS / "office"), "--json"))
    (office,) = document["sets"]
    assert (office["name"], office["tools"], office["queries"]) == ("office", 5, 3)
    assert document["mean"] == {name: office[name] for name in document["mean"]}
    assert office["recall_5"] == 1.0


def test_the_share_of_needed_tools_among_the_first_results_is_counted(tmp_path: Path) -> None:
    tools = [{"id": key, "name": key, "description": key} for key in ("apple", "banana", "cherry")]
    queries = [
        {"text": "apple", "groups": [["apple"]]},
        {"text": "apple", "groups": [["apple"], ["banana"]]},
        {"text": "apple banana", "groups": [["banana", "apple"]]},
        {"text": "apple", "groups": []},
    ]
    (tmp_path / "tools.jsonl").write_text("\n".join(map(json.dumps, tools)))
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (figures,) = json.loads(run(str(tmp_path), "--json"))["sets"]
    assert figures["queries"] == 3
    assert figures["recall_1"] == pytest.approx((1 + 0.5 + 1) / 3, abs=1e-4)
    assert figures["mrr"] == 1.0
    assert figures["ndcg_10"] == pytest.approx((1 + 1 / (1 + 0.63093) + 1) / 3, abs=1e-4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "has no set: a set is a folder with tools.jsonl and queries.jsonl"),
        ("not json", "is not a readable set: JSONDecodeError"),
        ('{"id": "a"}', "is not a readable set: KeyError: 'groups'"),
        ("", "has no request with groups"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused_with_the_reason(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "tools.jsonl").write_text(content)
        (tmp_path / "queries.jsonl").write_text(content)
    with pytest.raises(management.CommandError, match=re.escape(message)):
        run(str(tmp_path))
