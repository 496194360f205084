"""Properties of earlier versions: undoing the log backwards and replaying it forwards agree."""

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
# What an agent was, one after the other; None: it was not there.
_LIVES = st.lists(st.none() | _ENTRIES, min_size=2, max_size=7)


def tidy(entry: Entry | None) -> Entry | None:
    """Return the entry as it is written."""
    if entry is None:
        return None
    written = {name: entry[name] for name in vocabulary.KINDS["agent"].fields if name in entry}
    if "tools_config" in written:
        written["tools_config"] = dict(sorted(written["tools_config"].items()))
    return written


def logged(now: Entry | None, then: Entry | None) -> list[belts.LoggedChange]:
    """Log a change as the door does: flips key by key, the rest by the fields that differ."""
    if now == then:
        return []
    if now is None or then is None:
        kept = None if now is None else {**now, "place": 3}
        return [belts.LoggedChange(key="", before=kept, after=then)]
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


@given(_LIVES)
def test_taking_the_log_back_gives_what_was_at_every_moment(life: list[Entry | None]) -> None:
    steps = [logged(now, then) for now, then in itertools.pairwise(life)]
    for moment, was in enumerate(life):
        newer = [change for step in steps[moment:] for change in step]
        rebuilt = belts.rewind(life[-1], reversed(newer))
        assert rebuilt == belts.Rebuilt(entry=tidy(was), gaps=())


@given(_LIVES)
def test_making_the_log_again_gives_today(life: list[Entry | None]) -> None:
    log = [change for now, then in itertools.pairwise(life) for change in logged(now, then)]
    then = belts.rewind(life[-1], reversed(log))
    assert belts.replay(then.entry, log) == belts.Rebuilt(entry=tidy(life[-1]), gaps=())


def test_what_was_changed_behind_the_log_is_named_and_the_log_believed() -> None:
    log = [
        belts.LoggedChange(key="dev", before=None, after=False),
        belts.LoggedChange(key="", before={"loadout": None}, after={"loadout": "minimal"}),
    ]
    now = {"key": "ada", "loadout": "developer", "tools_config": {"dev": True, "ops": True}}
    assert belts.rewind(now, log) == belts.Rebuilt(
        entry={"key": "ada", "tools_config": {"ops": True}}, gaps=("dev", "loadout")
    )


def test_an_end_goes_and_comes_back_with_its_switch() -> None:
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


def test_an_agent_that_came_back_has_nothing_of_the_one_before() -> None:
    log = [
        belts.LoggedChange(key="", before=None, after={"key": "ada"}),
        belts.LoggedChange(key="", before={"key": "ada", "role": "Old", "place": 4}, after=None),
    ]
    assert belts.rewind({"key": "ada"}, log).entry == {"key": "ada", "role": "Old"}
    assert belts.rewind({"key": "ada"}, log[:1]).entry is None
