"""Tests that lists return the right page of entries for any filter."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt.control import writing
from toolbelt.control.catalog import entries, lists
from toolbelt.core import belts, errors

pytestmark = pytest.mark.usefixtures("stored")


def names(kind: belts.KindName, **filters: Any) -> list[str]:
    return [entry[entries.name_field(kind)] for entry in lists.page(kind, **filters).entries]


def test_a_list_contains_the_same_entries_as_reading_them_singly() -> None:
    for kind in belts.KINDS:
        assert [entries.read(kind, name) for name in names(kind)] == list(lists.page(kind).entries)


def test_a_page_is_a_slice_of_the_full_list() -> None:
    all_names = names("tool")
    assert names("tool", offset=1, limit=2) == all_names[1:3]
    assert lists.page("tool", offset=1, limit=2).total == len(all_names) == 4
    assert lists.page("tool", offset=9).entries == ()


def test_tools_are_filtered_by_the_category_of_their_plugin() -> None:
    assert names("tool", filters={"category": "git"}) == ["git__log", "git__push", "git__status"]
    assert names("tool", filters={"category": "git", "toolkit": "verbose"}) == ["git__log"]


def test_agents_are_filtered_by_the_loadout_of_their_kind(operator: writing.Write) -> None:
    entries.change(operator.replace(confirm=True), "agent", "ada", {"kind": "plan"})
    assert names("agent", filters={"loadout": "developer"}) == ["ada"]


def test_text_search_ignores_case_and_treats_wildcards_literally(operator: writing.Write) -> None:
    assert names("tool", text="SHOW") == ["git__log", "git__status"]
    assert names("tool", text="%") == []
    entries.change(operator, "agent", "bob", {"role": "Straße"})
    assert names("agent", text="STRASSE") == ["bob"]


def test_a_filter_without_a_value_is_ignored() -> None:
    assert names("tool", filters={"blocked": None}) == names("tool")


def test_an_unknown_filter_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(errors.NotFound, match="Did you mean blocked"):
        lists.page("tool", filters={"bloked": True})


def test_filtering_the_catalog_takes_one_query() -> None:
    lists.page("tool")
    with CaptureQueriesContext(connection) as queries:
        lists.page("tool", text="git", filters={"category": "git"})
    assert len(queries) == 1
