"""Tests of what a model must still be told, whatever it was told before."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import conversations
from toolbelt.core.conversation_means import Means
from toolbelt.core.conversations import Changes, Content, Told

DEFINES = Means(add="define", remove="withdraw", replace=True)
RESTRICTS = Means(add="define", remove="restrict")
REFERS = Means(add="refer", remove="withdraw")
WORDS = Means(add="dispatch", remove="say")
MEANS = [DEFINES, RESTRICTS, REFERS, WORDS]

START = Content(tools={"clock": "1", "search": "1"}, sections={"toolkit desk": "1"}, loadable={"spare": "1"})


def content(tools: str = "clock search", **fields: dict[str, str]) -> Content:
    """Return content with these tools: ``NAME`` or ``NAME=DIGEST``."""
    pairs = (name.partition("=") for name in tools.split())
    return dataclasses.replace(START, tools={name: digest or "1" for name, _, digest in pairs}, **fields)


def told(means: Means, *contents: Content) -> tuple[Changes, conversations.View]:
    """Return the last changes of a conversation whose surface changed like this."""
    view = conversations.begin(START)
    changes = conversations.NOTHING
    for now in contents:
        changes, view = conversations.compare(view, now, means)
    return changes, view


@pytest.mark.parametrize("means", MEANS)
def test_nothing_is_said_while_nothing_changes(means: Means) -> None:
    view = conversations.begin(START)
    changes, after = conversations.compare(view, content(), means)
    assert not changes
    assert after is view


@pytest.mark.parametrize("means", MEANS)
def test_a_change_is_said_once(means: Means) -> None:
    now = content("clock new", sections={"toolkit desk": "2"}, loadable={"other": "1"})
    changes, view = told(means, now)
    assert changes.removed == ("search",)
    assert changes.added + changes.through == ("new",)
    assert (changes.said, changes.ended) == (("toolkit desk",), ())
    assert (changes.loadable, changes.unloadable) == (("other",), ("spare",))
    assert conversations.compare(view, now, means) == (conversations.NOTHING, view)


@pytest.mark.parametrize(
    ("means", "kind"), [(DEFINES, "added"), (RESTRICTS, "added"), (REFERS, "through"), (WORDS, "through")]
)
def test_a_new_tool_is_defined_where_that_can_be_said(means: Means, kind: str) -> None:
    changes, view = told(means, content("clock new search"))
    assert changes == Changes(**{kind: ("new",)})
    assert view.tools == {"new": Told("1", "offered" if kind == "added" else "through")}


@pytest.mark.parametrize("means", MEANS)
def test_a_tool_that_comes_back_is_offered_again_without_its_definition(means: Means) -> None:
    changes, view = told(means, content("clock"), content())
    assert changes == Changes(offered=("search",))
    assert view.tools == {}


def test_a_changed_definition_replaces_the_old_one_where_that_can_be_said() -> None:
    assert told(DEFINES, content("clock=2 search"))[0] == Changes(replaced=("clock",))
    for means in (RESTRICTS, REFERS, WORDS):
        assert told(means, content("clock=2 search"))[0] == Changes(altered=("clock",))


def test_a_tool_that_comes_back_with_another_definition_is_said_to_be_available() -> None:
    assert told(DEFINES, content("search"), content("clock=2 search"))[0] == Changes(added=("clock",))
    changes, _ = told(RESTRICTS, content("search"), content("clock=2 search"))
    assert changes == Changes(offered=("clock",), altered=("clock",))


def test_a_definition_in_reserve_is_offered_by_reference() -> None:
    view = conversations.begin(START, {"spare": "1", "clock": "9"})
    assert view.declared == {"clock", "search", "spare"}
    assert view.deferred == {"spare"}
    changes, after = conversations.compare(view, content("clock search spare"), REFERS)
    assert changes == Changes(offered=("spare",))
    changes, after = conversations.compare(after, content(), REFERS)
    assert changes == Changes(removed=("spare",))
    assert after.tools == {"spare": Told("1", "withdrawn")}


def test_a_section_that_ended_is_said_to_have_ended_once() -> None:
    changes, view = told(WORDS, content(sections={}))
    assert changes == Changes(ended=("toolkit desk",))
    changes, view = conversations.compare(view, content("clock", sections={}), WORDS)
    assert changes == Changes(removed=("search",))
    assert conversations.compare(view, content("clock"), WORDS)[0] == Changes(said=("toolkit desk",))


def test_words_are_said_again_after_a_compaction() -> None:
    now = content("clock new", sections={"toolkit desk": "2"}, loadable={})
    _, view = told(DEFINES, now)
    kept = conversations.compacted(view, DEFINES)
    changes, after = conversations.compare(kept, now, DEFINES)
    assert changes == Changes(said=("toolkit desk",), unloadable=("spare",))
    assert after == view


def test_tools_are_said_again_after_a_compaction_that_dropped_them() -> None:
    now = content("clock new")
    _, view = told(RESTRICTS, now)
    changes, after = conversations.compare(conversations.compacted(view, RESTRICTS), now, RESTRICTS)
    assert changes == Changes(added=("new",), removed=("search",))
    assert after == view


def test_a_changed_definition_that_could_only_be_said_is_said_again_after_a_compaction() -> None:
    now = content("clock=2 search")
    _, view = told(REFERS, now)
    changes, after = conversations.compare(conversations.compacted(view, REFERS), now, REFERS)
    assert changes == Changes(altered=("clock",))
    assert after == view
    _, view = told(DEFINES, now)
    assert not conversations.compare(conversations.compacted(view, DEFINES), now, DEFINES)[0]


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
DIGESTS = st.dictionaries(NAMES, st.sampled_from("123"))
CONTENTS = st.builds(Content, tools=DIGESTS, sections=DIGESTS, loadable=DIGESTS)


@given(st.sampled_from(MEANS), CONTENTS, st.lists(st.tuples(CONTENTS, st.booleans())), DIGESTS)
def test_a_model_that_follows_what_it_is_told_knows_what_is_true(
    means: Means, start: Content, later: list[tuple[Content, bool]], reserve: dict[str, str]
) -> None:
    """Whatever changed, and with requests that failed: what was said for them is not kept."""
    view = conversations.begin(start, reserve if means.add == "refer" else None)
    visible = dict(start.tools)
    through: dict[str, str] = {}
    sections, loadable = dict(start.sections), dict(start.loadable)
    for now, is_answered in later:
        changes, after = conversations.compare(view, now, means)
        assert conversations.compare(view, now, means) == (changes, after)
        if not is_answered:
            continue
        view = after
        for name in changes.removed:
            visible.pop(name, None)
            through.pop(name, None)
        for name in (*changes.added, *changes.replaced, *changes.offered):
            visible[name] = now.tools[name]
        for name in changes.altered:
            (through if name in through else visible)[name] = now.tools[name]
        through |= {name: now.tools[name] for name in changes.through}
        sections = {name: value for name, value in sections.items() if name not in changes.ended}
        sections |= {name: now.sections[name] for name in changes.said}
        loadable = {name: value for name, value in loadable.items() if name not in changes.unloadable}
        loadable |= {name: now.loadable[name] for name in changes.loadable}
        assert not visible.keys() & through.keys()
        assert visible | through == dict(now.tools)
        assert (sections, loadable) == (dict(now.sections), dict(now.loadable))
        assert view.of_kind("offered") == visible.keys()
        assert not (means.add == "define" and through)
