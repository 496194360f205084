"""Tests that stepping back through the log restores the configuration as it was, and says where that is uncertain."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import belts
from toolbelt.core.belts import history, vocabulary

Entry = dict[str, Any]

_KEYS = ("dev", "ops", "git__push", "clock")
_NAMES = st.lists(st.sampled_from(_KEYS), max_size=3, unique=True)
_ENTRIES: st.SearchStrategy[Entry] = st.fixed_dictionaries(
    {"key": st.just("ada")},
    optional={
        "title": st.sampled_from(["Ada", "The first"]),
        "loadout": st.sampled_from(["minimal", "developer"]),
        "tools": st.lists(st.sampled_from(["clock", {"tool": "clock", "options": {"zone": 1}}]), max_size=1),
        "tools_config": st.dictionaries(st.sampled_from(_KEYS), st.booleans(), max_size=3),
        "allowed_toolkits": _NAMES,
        "protected": st.just(True),
    },
).map(lambda entry: {name: value for name, value in entry.items() if value not in ([], {})})
# Successive versions of an agent. None: the agent did not exist.
_HISTORIES = st.lists(st.none() | _ENTRIES, min_size=2, max_size=7)


def document(ada: Entry | None) -> dict[str, Any]:
    """Return a configuration with this agent between two others."""
    return {"agents": [{"key": "eve"}, *([ada] if ada else []), {"key": "zoe", "role": "Last"}]}


def changed(before: Any, after: Any, key: str = "", action: str = "agent.change") -> belts.LoggedChange:
    return belts.LoggedChange(action=action, kind="agent", name="ada", key=key, before=before, after=after)


def logged(now: Entry | None, then: Entry | None) -> list[belts.LoggedChange]:
    """Return the log of a change as Toolbelt writes it: switches key by key, other fields in one change."""
    if now == then:
        return []
    if now is None or then is None:
        action = "agent.create" if now is None else "agent.remove"
        return [changed(None if now is None else {**now, "place": 1}, then, action=action)]
    had, has = now.get("tools_config", {}), then.get("tools_config", {})
    changes = [
        changed(had.get(key), has.get(key), key, "switch.set")
        for key in sorted({**had, **has})
        if had.get(key) is not has.get(key)
    ]
    fields = [name for name in {**now, **then} if name != "tools_config" and now.get(name) != then.get(name)]
    if fields:
        was, becomes = ({name: side.get(name) for name in fields} for side in (now, then))
        changes.append(changed(was, becomes))
    return changes


def stepped_back(now: Entry | None, changes: list[belts.LoggedChange]) -> belts.History:
    """Return the configuration before these changes, the newest of which is first."""
    past = belts.History(document(now))
    for change in changes:
        past.step_back(change)
    return past


@given(_HISTORIES)
def test_stepping_back_restores_every_earlier_version(versions: list[Entry | None]) -> None:
    steps = [logged(now, then) for now, then in itertools.pairwise(versions)]
    for position, was in enumerate(versions):
        newer = [change for step in steps[position:] for change in step]
        past = stepped_back(versions[-1], newer[::-1])
        assert (past.find("agent", "ada"), past.gaps) == (was, ())
        # What was created last is at the end, until its removal says where it was.
        by_key = [
            sorted(side["agents"], key=lambda entry: entry["key"])
            for side in (past.document(), document(was))
        ]
        assert by_key[0] == by_key[1]


def test_what_the_log_does_not_expect_is_a_gap_and_the_log_wins() -> None:
    now = {"key": "ada", "loadout": "developer", "tools_config": {"dev": True, "ops": True}}
    past = stepped_back(
        now, [changed(None, False, "dev", "switch.set"), changed({"loadout": None}, {"loadout": "minimal"})]
    )
    assert past.find("agent", "ada") == {"key": "ada", "tools_config": {"ops": True}}
    assert past.gaps_of("agent", "ada") == ("dev", "loadout")
    assert past.gaps == (history.Gap("agent", "ada", "dev"), history.Gap("agent", "ada", "loadout"))
    assert past.gaps_of("agent", "eve") == ()


@pytest.mark.parametrize(
    ("now", "change", "fields"),
    [
        # It should not exist, should exist, and had other fields when it was created.
        ({"key": "ada"}, changed({"key": "ada", "role": "x"}, None, action="agent.remove"), {"key"}),
        (None, changed(None, {"key": "ada", "role": "x"}, action="agent.create"), {"key", "role"}),
        ({"key": "ada", "role": "y"}, changed(None, {"key": "ada"}, action="agent.create"), {"role"}),
        (
            {"key": "ada"},
            changed({"order": ["zoe", "eve"]}, {"order": ["zoe", "eve"]}, action="agent.order"),
            {"order"},
        ),
    ],
)
def test_each_kind_of_change_notices_what_it_does_not_expect(
    now: Entry | None, change: belts.LoggedChange, fields: set[str]
) -> None:
    assert set(stepped_back(now, [change]).gaps_of("agent", "ada")) == fields


def test_the_end_of_a_switch_goes_and_comes_with_it_and_others_stay() -> None:
    ending = {"on": True, "ends": "2026-11-22T14:05:00Z", "then": None}
    newest, oldest = changed(ending, None, "dev", "switch.end"), changed(False, ending, "dev", "switch.set")
    ops: dict[str, Any] = {
        "tools_config": {"ops": False},
        "ends": {"ops": {"at": "2031-01-01T00:00:00Z", "by": "olive"}},
    }
    during = stepped_back({"key": "ada", **ops}, [newest]).find("agent", "ada")
    assert during == {
        "key": "ada",
        "tools_config": {"dev": True, "ops": False},
        "ends": {"dev": {"at": "2026-11-22T14:05:00Z"}, **ops["ends"]},
    }
    before = stepped_back({"key": "ada", **ops}, [newest, oldest]).find("agent", "ada")
    assert before == {"key": "ada", "tools_config": {"dev": False, "ops": False}, "ends": ops["ends"]}


def test_an_order_and_a_position_are_restored() -> None:
    past = belts.History({"toolkits": [{"key": key} for key in "cab"], "categories": ["x", "z"]})

    def step(action: str, name: str, before: Any, after: Any) -> None:
        kind = action.partition(".")[0]
        past.step_back(belts.LoggedChange(action=action, kind=kind, name=name, before=before, after=after))

    step("toolkit.order", "c", {"order": ["b", "c"]}, {"order": ["c", "b"]})
    assert [entry["key"] for entry in past.document()["toolkits"]] == ["b", "a", "c"]
    step("toolkit.remove", "d", {"key": "d", "place": 1}, None)
    assert [entry["key"] for entry in past.document()["toolkits"]] == ["b", "d", "a", "c"]
    step("category.remove", "y", {"name": "y"}, None)
    step("category.create", "x", None, {"name": "x"})
    assert past.document()["categories"] == ["y", "z"]
    assert past.gaps == ()


def test_what_was_written_around_the_log_is_uncertain_before_the_entry_that_says_so() -> None:
    past = belts.History(document({"key": "ada"}))
    note = {"since": 7, "catalog": False, "agents": ["ada"]}
    step = changed(None, True, "dev", "switch.set")
    past.step_back(
        belts.LoggedChange(**{name: getattr(step, name) for name in step.__slots__} | {"unlogged": note})
    )
    assert [past.is_uncertain(agent) for agent in ("ada", "eve")] == [True, False]
    user: dict[str, Any] = {
        "action": "user.create",
        "kind": "user",
        "name": "olive",
        "before": None,
        "after": None,
    }
    past.step_back(belts.LoggedChange(**user, unlogged={"since": 5, "catalog": True, "agents": []}))
    assert past.is_uncertain("eve")


@pytest.mark.parametrize("action", ["agent.operators", "toolkit.purge", "session.evict", "token.issue"])
def test_what_is_no_configuration_is_ignored(action: str) -> None:
    kind = action.partition(".")[0]
    past = stepped_back({"key": "ada"}, [])
    past.step_back(belts.LoggedChange(action=action, kind=kind, name="ada", before={"x": 1}, after=None))
    assert (past.document(), past.gaps) == (document({"key": "ada"}), ())


def test_every_kind_of_entry_steps_back() -> None:
    for kind, spec in vocabulary.KINDS.items():
        entry: Any = {spec.named_by: "x"} if spec.named_by else "x"
        past = belts.History({spec.section: [entry]})
        created = entry if spec.named_by else {"name": "x"}
        past.step_back(
            belts.LoggedChange(action=f"{kind}.create", kind=kind, name="x", before=None, after=created)
        )
        assert (past.document(), past.gaps) == ({}, ()), kind
