"""Tests that operators can reorder toolkits, and undo it."""

import pytest

from toolbelt.control import undo, writing
from toolbelt.control.catalog import entries, ordering
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import surfaces

pytestmark = pytest.mark.usefixtures("stored")


@pytest.fixture
def policies(stored: None, operator: writing.Write) -> None:
    """Create two toolkits whose policies ada receives: reading, then pushing."""
    entries.change(operator, "toolkit", "pushing", {"policy": "Ask before you push."})
    config = {"reading": True, "pushing": True}
    entries.change(operator.replace(confirm=True), "agent", "ada", {"tools_config": config})


def sections() -> list[str]:
    return [section.toolkit for section in surfaces.ask("ada").policy.sections]


@pytest.mark.usefixtures("policies")
def test_the_order_of_toolkits_is_the_order_of_the_policy_sections(operator: writing.Write) -> None:
    assert sections() == ["reading", "pushing"]

    change = ordering.set_order(operator, "toolkit", ["pushing", "reading"])

    assert sections() == ["pushing", "reading"]
    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert (entry.action, entry.before, entry.after) == (
        "toolkit.order",
        {"order": ["reading", "pushing"]},
        {"order": ["pushing", "reading"]},
    )


def test_toolkits_that_are_not_named_keep_their_position(operator: writing.Write) -> None:
    ordering.set_order(operator, "toolkit", ["verbose", "reading"])

    assert entries_of("toolkit") == ["verbose", "pushing", "reading"]


def test_setting_the_current_order_writes_nothing(operator: writing.Write) -> None:
    assert ordering.set_order(operator, "toolkit", ["reading", "verbose"]).is_nothing


def test_a_stale_order_is_refused(operator: writing.Write) -> None:
    ordering.set_order(operator, "toolkit", ["pushing", "reading", "verbose"])

    with pytest.raises(errors.Stale, match="pushing, reading, verbose"):
        ordering.set_order(
            operator, "toolkit", ["verbose", "reading", "pushing"], was=["reading", "pushing", "verbose"]
        )

    assert entries_of("toolkit") == ["pushing", "reading", "verbose"]


@pytest.mark.parametrize(
    ("kind", "names", "message"),
    [
        ("toolkit", ["readin", "pushing"], "reading"),
        ("toolkit", ["reading", "reading"], "named twice"),
        ("tool", ["git__log", "clock"], "listed by name"),
    ],
)
def test_an_invalid_order_is_refused(
    operator: writing.Write, kind: str, names: list[str], message: str
) -> None:
    with pytest.raises(errors.ToolbeltError, match=message):
        ordering.set_order(operator, kind, names)


@pytest.mark.parametrize(
    ("names", "to", "order"),
    [
        (["verbose"], 0, ["verbose", "reading", "pushing"]),
        (["verbose", "pushing"], 0, ["pushing", "verbose", "reading"]),
        (["reading"], -1, ["pushing", "verbose", "reading"]),
        (["reading"], 1, ["pushing", "reading", "verbose"]),
        (["reading"], 99, ["pushing", "verbose", "reading"]),
    ],
)
def test_several_toolkits_are_moved_together(
    operator: writing.Write, names: list[str], to: int, order: list[str]
) -> None:
    ordering.move(operator, "toolkit", names, to=to)

    assert entries_of("toolkit") == order


def test_undoing_restores_the_order_unless_it_changed_again(operator: writing.Write) -> None:
    change = ordering.move(operator, "toolkit", ["verbose"], to=0)
    undo.undo(operator, change.entry or 0)
    assert entries_of("toolkit") == ["reading", "pushing", "verbose"]

    change = ordering.move(operator, "toolkit", ["verbose"], to=0)
    ordering.move(operator, "toolkit", ["pushing"], to=0)
    with pytest.raises(errors.Stale):
        undo.undo(operator, change.entry or 0)


def test_undoing_an_order_skips_toolkits_removed_since(operator: writing.Write) -> None:
    change = ordering.set_order(operator, "toolkit", ["verbose", "pushing", "reading"])
    entries.remove(operator, "toolkit", "pushing")

    undo.undo(operator, change.entry or 0)

    assert entries_of("toolkit") == ["reading", "verbose"]


@pytest.mark.usefixtures("policies")
def test_undoing_a_removal_restores_the_position(operator: writing.Write) -> None:
    entries.change(operator.replace(confirm=True), "agent", "bob", {"tools_config": None})
    entries.change(operator.replace(confirm=True), "agent", "ada", {"tools_config": None})
    before = belts.export()
    removed = entries.remove(operator, "toolkit", "reading")
    assert entries_of("toolkit") == ["pushing", "verbose"]

    undo.undo(operator, removed.entry or 0)

    assert belts.export() == before


def test_an_import_applies_the_order_of_the_belt(operator: writing.Write) -> None:
    document = belts.export()
    document["toolkits"].reverse()
    document["agents"].reverse()

    imported = belts.import_(operator, document)

    assert (imported.created, imported.changed, imported.ordered) == (0, 0, ("toolkit", "agent"))
    assert belts.export() == document
    assert belts.import_(operator, document).ordered == ()


def test_imported_toolkits_are_placed_where_the_belt_has_them(operator: writing.Write) -> None:
    new = {"key": "first", "members": ["clock"]}

    belts.import_(operator, {"toolkits": [new, *belts.export()["toolkits"]]})

    assert entries_of("toolkit") == ["first", "reading", "pushing", "verbose"]


def entries_of(kind: str) -> list[str]:
    return ordering.names(kind)
