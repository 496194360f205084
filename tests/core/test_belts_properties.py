"""Properties that hold for every belt, valid or not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given

from tests.core import junk, strategies
from toolbelt.core import belts, errors

pytestmark = pytest.mark.slow


def _values(belt: belts.Belt) -> dict[str, Any]:
    """Return the values in which equal belts agree, since catalogs compare by identity."""
    stored = {field.name: getattr(belt.catalog, field.name) for field in dataclasses.fields(belt.catalog)}
    del stored["derived"]
    return {
        **stored,
        "order": [list(stored[name]) for name in ("plugins", "tools", "loadouts")],
        "agents": belt.agents,
    }


@given(strategies.documents())
def test_a_generated_valid_document_has_no_problems(document: strategies.Document) -> None:
    assert belts.check(document) == []


@given(strategies.belts())
def test_a_dumped_belt_loads_as_the_same_values(belt: belts.Belt) -> None:
    assert _values(belts.load(belts.dump(belt), count_tokens=len)) == _values(belt)


@given(strategies.belts())
def test_a_loaded_belt_dumps_as_the_same_document(belt: belts.Belt) -> None:
    document = belts.dump(belt)
    again = belts.dump(belts.load(document))
    assert again == document
    assert [list(entry) for entry in again.get("tools", [])] == [
        list(entry) for entry in document.get("tools", [])
    ]


@given(strategies.documents())
def test_every_entry_of_a_valid_belt_is_valid_on_its_own(document: strategies.Document) -> None:
    belt = belts.load(document)
    names = belts.NameIndex.of_catalog(belt.catalog, belt.agents)
    for name, kind in belts.KINDS.items():
        for entry in belts.dump(belt).get(kind.section, []):
            assert belts.check_entry(name, entry, names) == []
            assert belts.entry(name, belts.value(name, entry, belt.catalog)) == entry


@given(junk.spoiled_documents() | junk.junk_documents())
def test_checking_or_leniently_loading_any_document_never_raises(document: Any) -> None:
    problems = belts.check(document)
    assert all(problem.message for problem in problems)
    belt = belts.load(document, lenient=True, count_tokens=len)
    assert belts.dump(belt) == belts.dump(belts.load(belts.dump(belt), lenient=True))
    names = belts.NameIndex.of_catalog(belt.catalog, belt.agents)
    for name, kind in belts.KINDS.items():
        section = document.get(kind.section) if isinstance(document, dict) else None
        for entry in section if isinstance(section, list) else []:
            assert all(problem.message for problem in belts.check_entry(name, entry, names))
    if problems:
        with pytest.raises(errors.Invalid) as refused:
            belts.load(document)
        assert list(refused.value.problems) == problems
    else:
        assert _values(belts.load(document, count_tokens=len)) == _values(belt)
