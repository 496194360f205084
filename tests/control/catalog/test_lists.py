"""Lists return the right page of entries for any filter."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt.control import writing
from toolbelt.control.catalog import entries, lists
from toolbelt.core import belts, errors

pytestmark = pytest.mark.usefixtures("stored")


def names(kind: belts.KindName, **asked: Any) -> list[str]:
    return [entry[entries.name_field(kind)] for entry in lists.page(kind, **asked).entries]


def test_entries_are_listed_as_they_are_read() -> None:
    for kind in belts.KINDS:
        assert [entries.read(kind, name) for name in names(kind)] == list(lists.page(kind).entries)


def test_a_page_is_cut_out_of_the_whole() -> None:
    every = names("tool")
    assert names("tool", offset=1, limit=2) == every[1:3]
    assert lists.page("tool", offset=1, limit=2).total == len(every) == 4
    assert lists.page("tool", offset=9).entries == ()


def test_a_tool_is_found_by_the_category_of_its_plugin() -> None:
    assert names("tool", filters={"category": "git"}) == ["git__log", "git__push", "git__status"]
    assert names("tool", filters={"category": "git", "toolkit": "verbose"}) == ["git__log"]


def test_an_agent_is_found_by_the_loadout_of_its_kind(operator: writing.Write) -> None:
    entries.change(operator.replace(confirm=True), "agent", "ada", {"kind": "plan"})
    assert names("agent", filters={"loadout": "developer"}) == ["ada"]


def test_a_text_is_found_whatever_its_case_and_no_pattern(operator: writing.Write) -> None:
    assert names("tool", text="SHOW") == ["git__log", "git__status"]
    assert names("tool", text="%") == []
    entries.change(operator, "agent", "bob", {"role": "Straße"})
    assert names("agent", text="STRASSE") == ["bob"]


def test_what_is_not_asked_for_narrows_nothing() -> None:
    assert names("tool", filters={"blocked": None}) == names("tool")


def test_a_trait_that_there_is_not_is_told() -> None:
    with pytest.raises(errors.NotFound, match="Did you mean blocked"):
        lists.page("tool", filters={"bloked": True})


def test_looking_through_the_catalog_costs_one_query() -> None:
    lists.page("tool")
    with CaptureQueriesContext(connection) as asked:
        lists.page("tool", text="git", filters={"category": "git"})
    assert len(asked) == 1
