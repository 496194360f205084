"""Tests that a writer who saw an older value learns who changed it meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolbelt.control import writing
from toolbelt.control.access import switches, tools_config
from toolbelt.control.agents import session_changes
from toolbelt.control.catalog import entries, ordering
from toolbelt.control.config import belts
from toolbelt.core import errors

pytestmark = pytest.mark.usefixtures("stored")

OLIVE, SAM = writing.by("olive", via="screen"), writing.by("sam", via="screen")
Change = Callable[[writing.Write], object]
# What changes a value, and what then sees the value from before.
CASES: dict[str, tuple[Change, Change]] = {
    "a switch": (
        lambda write: switches.flip(write, "bob", "reading", False),
        lambda write: switches.flip(write, "bob", "reading", None, was=True),
    ),
    "tools_config": (
        lambda write: switches.flip(write, "bob", "reading", False),
        lambda write: tools_config.change(write, "bob", {"reading": None}, was={"reading": True}),
    ),
    "a field": (
        lambda write: entries.change(write, "toolkit", "reading", {"title": "Books"}),
        lambda write: entries.change(write, "toolkit", "reading", {"title": "Reads"}, was={"title": None}),
    ),
    "the order": (
        lambda write: ordering.set_order(write, "toolkit", ["pushing", "reading", "verbose"]),
        lambda write: ordering.set_order(
            write, "toolkit", ["verbose"], was=["reading", "pushing", "verbose"]
        ),
    ),
    "a session": (
        lambda write: session_changes.equip(write, "ada", "s1", "minimal"),
        lambda write: session_changes.equip(write, "ada", "s1", "full", was=""),
    ),
    "the configuration": (
        lambda write: entries.change(write, "toolkit", "reading", {"title": "Books"}),
        lambda write: belts.import_(write, {"agents": [{"key": "eve"}]}, was=1),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("first", "by"), [(OLIVE, "you"), (writing.by("olive", via="api"), "you"), (SAM, "operator")]
)
def test_a_writer_learns_whether_they_changed_it_themselves(case: str, first: writing.Write, by: str) -> None:
    change, change_again = CASES[case]
    change(first)

    with pytest.raises(errors.Stale) as stale:
        change_again(OLIVE)

    assert stale.value.by == by
    words = {"you": "was changed by you, in another tab", "operator": "was changed by another operator:"}
    assert words[by] in str(stale.value)


def test_only_changes_of_the_same_field_matter() -> None:
    entries.change(SAM, "toolkit", "reading", {"title": "Books"})
    entries.change(OLIVE, "toolkit", "reading", {"policy": "Read."})

    with pytest.raises(errors.Stale, match="title of toolkit reading was changed by another operator"):
        entries.change(OLIVE, "toolkit", "reading", {"title": "Reads"}, was={"title": None})


def test_a_value_that_changed_around_the_log_names_no_one() -> None:
    with pytest.raises(errors.Stale, match="was changed in the meantime: you saw on"):
        switches.flip(OLIVE, "ada", "reading", True, was=True)
