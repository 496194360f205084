"""Tests that the tokens of a tool are counted when it is saved, and quickly for any input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from tests import factories
from toolbelt import models
from toolbelt.core import catalog
from toolbelt.store import token_counts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        ("<|endoftext|>", 7),
        ('{"description":"Shows the working tree status","name":"git_status"}', 14),
    ],
)
def test_tokens_are_counted_with_o200k(text: str, expected: int) -> None:
    assert token_counts.count(text) == expected


@pytest.mark.parametrize(
    "unit", ["a", "aA", "é", "e\u0301", " ", "\n", "#=", "!/\n", "—-", "漢", "1", "\U0001f600"]
)
def test_a_very_long_text_is_counted_in_pieces(unit: str) -> None:
    once = token_counts.count(unit * 2_000)

    assert 0 < once <= token_counts.count(unit * 20_000)


@pytest.mark.django_db
def test_saving_a_tool_counts_the_tokens_that_are_sent() -> None:
    row = factories.tool("run", description="Runs a command.")
    assert row.tokens == token_counts.count(catalog.model_json("run", "Runs a command.", row.input_schema))

    row.description = "Runs a command and waits until it is done."
    row.save()
    longer = models.Tool.objects.get().tokens
    row.input_schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    row.save(update_fields=["input_schema"])

    assert models.Tool.objects.get().tokens > longer


@pytest.mark.django_db
def test_saving_other_fields_does_not_recount(monkeypatch: pytest.MonkeyPatch) -> None:
    row = factories.tool("run")
    monkeypatch.setattr(token_counts, "of", lambda row: 10_000)

    row.blocked = True
    row.save(update_fields=["blocked"])

    assert models.Tool.objects.get().tokens < 10_000


@pytest.mark.django_db
@pytest.mark.parametrize(("given", "expected"), [({}, token_counts.count), ({"tokens": 7}, 7)])
def test_loading_a_fixture_counts_tokens_unless_it_includes_them(
    given: dict[str, int], expected: object, tmp_path: Path
) -> None:
    fixture = tmp_path / "tool.json"
    fixture.write_text(json.dumps([{"model": "toolbelt.tool", "fields": {"key": "run", **given}}]))

    call_command("loaddata", str(fixture), verbosity=0)

    row = models.Tool.objects.get()
    assert row.tokens == (token_counts.of(row) if expected is token_counts.count else expected)


@pytest.mark.django_db
def test_recounting_updates_rows_written_without_save() -> None:
    models.Tool.objects.bulk_create([models.Tool(key="a"), models.Tool(key="b", tokens=1)])
    factories.tool("c")

    assert token_counts.recount() == 2

    assert all(row.tokens == token_counts.of(row) for row in models.Tool.objects.all())
    assert token_counts.recount() == 0
