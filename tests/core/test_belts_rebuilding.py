"""Tests that rewinding the log restores earlier versions, and that replaying it restores the current one."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import belts
from toolbelt.core.belts import vocabulary

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


def canonical(entry: Entry | None) -> Entry | None:
    """Return the entry with its fields in the order of a belt."""
    if entry is None:
        return None
    written = {name: entry[name] for name in vocabulary.KINDS["agent"].fields if name in entry}
    if "tools_config" in written:
        written["tools_config"] = dict(sorted(written["tools_config"].items()))
    return written


def logged(now: Entry | None, then: Entry | None) -> list[belts.LoggedChange]:
    """Return the log of a change as Toolbelt writes it: switches key by key, other fields in one change."""
    if now == then:
        return []
    if now is None or then is None:
        with_place = None if now is None else {**now, "place": 3}
        return [belts.LoggedChange(key="", before=with_place, after=then)]
    had, has = now.get("tools_config", {}), then.get("tools_config", {})
    changes = [
        belts.LoggedChange(key=key, before=had.get(key), after=has.get(key))
        for key in sorted({**had, **has})
        if had.get(key) is not has.get(key)
    ]
    fields = [name for name in {**now, **then} if name != "tools_config" and now.get(name) != then.get(name)]
    if fields:
        changes.append(
            belts.LoggedChange(
                key="",
                before={name: now.get(name) for name in fields},
                after={name: then.get(name) for name in fields},
            )
        )
    return changes


@given(_HISTORIES)
def test_rewinding_the_log_restores_every_earlier_version(history: list[Entry | None]) -> None:
    steps = [logged(now, then) for now, then in itertools.pairwise(history)]
    for position, was in enumerate(history):
        newer = [change for step in steps[position:] for change in step]
        rebuilt = belts.rewind(history[-1], reversed(newer))
        assert rebuilt == belts.Rebuilt(entry=canonical(was), gaps=())


@given(_HISTORIES)
def test_replaying_the_log_restores_the_current_version(history: list[Entry | None]) -> None:
    log = [change for now, then in itertools.pairwise(history) for change in logged(now, then)]
    then = belts.rewind(history[-1], reversed(log))
    assert belts.replay(then.entry, log) == belts.Rebuilt(entry=canonical(history[-1]), gaps=())


def test_unlogged_changes_are_reported_as_gaps_and_the_log_wins() -> None:
    log = [
        belts.LoggedChange(key="dev", before=None, after=False),
        belts.LoggedChange(key="", before={"loadout": None}, after={"loadout": "minimal"}),
    ]
    now = {"key": "ada", "loadout": "developer", "tools_config": {"dev": True, "ops": True}}
    assert belts.rewind(now, log) == belts.Rebuilt(
        entry={"key": "ada", "tools_config": {"ops": True}}, gaps=("dev", "loadout")
    )


def test_the_end_time_of_a_switch_is_removed_and_restored_with_it() -> None:
    ending = {"on": True, "ends": "2026-11-22T14:05:00Z", "then": None}
    log = [
        belts.LoggedChange(key="dev", before=ending, after=None),
        belts.LoggedChange(key="dev", before=False, after=ending),
    ]
    during = {
        "key": "ada",
        "tools_config": {"dev": True},
        "ends": {"dev": {"at": "2026-11-22T14:05:00Z"}},
    }
    assert belts.rewind({"key": "ada"}, log[:1]) == belts.Rebuilt(entry=during)
    before = {"key": "ada", "tools_config": {"dev": False}}
    assert belts.rewind({"key": "ada"}, log) == belts.Rebuilt(entry=before)
    assert belts.replay(before, reversed(log)) == belts.Rebuilt(entry={"key": "ada"})


def test_a_recreated_agent_has_no_fields_of_its_predecessor() -> None:
    log = [
        belts.LoggedChange(key="", before=None, after={"key": "ada"}),
        belts.LoggedChange(key="", before={"key": "ada", "role": "Old", "place": 4}, after=None),
    ]
    assert belts.rewind({"key": "ada"}, log).entry == {"key": "ada", "role": "Old"}
    assert belts.rewind({"key": "ada"}, log[:1]).entry is None
