"""Tests that copying the rows of a comparison makes two agents equal."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import belts
from toolbelt.core.belts import comparing

Entry = dict[str, Any]

_KEYS = ("dev", "ops", "git", "clock")
_USES = st.sampled_from(_KEYS) | st.builds(
    lambda key, depth: {"tool": key, "options": {"depth": depth}},
    st.sampled_from(_KEYS),
    st.sampled_from([1, True, {}]),
)


@st.composite
def agents(draw: st.DrawFn) -> Entry:
    """Return an agent's entry without its key."""
    allowed = draw(st.lists(st.sampled_from(_KEYS), max_size=3, unique=True))
    initial = draw(st.sets(st.sampled_from(allowed))) if allowed else ()
    entry = {
        "title": draw(st.sampled_from([None, "Ada"])),
        "kind": draw(st.sampled_from([None, "plan", "task"])),
        "budget": draw(st.sampled_from([None, {"max_tools": 3}, {"max_tools": 4}])),
        "protected": draw(st.sampled_from([None, True])),
        "tools_config": dict(
            sorted(draw(st.dictionaries(st.sampled_from(_KEYS), st.booleans(), max_size=3)).items())
        ),
        "tools": draw(
            st.lists(_USES, max_size=3, unique_by=lambda use: use if isinstance(use, str) else use["tool"])
        ),
        "allowed_toolkits": allowed,
        "initial_toolkits": [key for key in allowed if key in initial],
    }
    return {name: value for name, value in entry.items() if value not in (None, [], {})}


@given(agents(), agents(), st.data())
def test_copying_rows_removes_exactly_those_differences(a: Entry, b: Entry, data: st.DataObject) -> None:
    rows = belts.differences(a, b)
    assert belts.differences(a, belts.copy_rows(b, rows)) == ()
    assert belts.copy_rows(b, ()) == b
    copied = data.draw(st.lists(st.sampled_from(rows), unique_by=lambda row: row.id)) if rows else []
    remaining = {row.id for row in belts.differences(a, belts.copy_rows(b, copied)) if row.part != "order"}
    assert remaining == {row.id for row in rows if row.part != "order"} - {row.id for row in copied}


def test_each_difference_is_listed_as_a_row() -> None:
    a = {
        "key": "ada",
        "title": "Ada",
        "loadout": "developer",
        "tools": ["clock", {"tool": "log", "options": {"depth": 9}}],
        "tools_config": {"dev": True, "ops": False},
        "allowed_toolkits": ["dev", "ops"],
        "initial_toolkits": ["dev"],
    }
    b = {
        "key": "bob",
        "tools": ["log", "clock"],
        "tools_config": {"dev": True, "git": True},
        "allowed_toolkits": ["ops", "dev"],
    }
    names = [name for name in comparing.SETTINGS if name not in comparing.IDENTITY]
    assert [(row.id, row.a, row.b) for row in belts.differences(a, b, names)] == [
        ("setting:loadout", "developer", None),
        ("switch:git", None, True),
        ("switch:ops", False, None),
        ("always-on:log", {"depth": 9}, True),
        ("order:always-on", ["clock", "log"], ["log", "clock"]),
        ("loadable:dev", "initial", "allowed"),
        ("order:loadable", ["dev", "ops"], ["ops", "dev"]),
    ]


def test_copying_rows_removes_fields_that_the_source_lacks() -> None:
    a: Entry = {"key": "ada"}
    b = {"key": "bob", "loadout": "minimal", "tools": ["clock"], "tools_config": {"dev": False}}
    assert belts.copy_rows(b, belts.differences(a, b)) == {"key": "bob"}


def test_a_switch_is_copied_with_its_end_time() -> None:
    end = {"at": "2026-11-22T14:05:00Z", "then": False}
    a = {"tools_config": {"dev": True, "ops": True}, "ends": {"dev": end}}
    b = {"tools_config": {"dev": True, "ops": True}, "ends": {"ops": end}}
    rows = belts.differences(a, b)
    expiring = {"on": True, "ends": end["at"], "then": False}
    assert [(row.id, row.a, row.b) for row in rows] == [
        ("switch:dev", expiring, True),
        ("switch:ops", True, expiring),
    ]
    assert belts.copy_rows(b, rows) == a


def test_options_that_differ_only_in_type_are_a_difference() -> None:
    a, b = ({"tools": [{"tool": "log", "options": {"depth": depth}}]} for depth in (1, True))
    assert [row.id for row in belts.differences(a, b)] == ["always-on:log"]
