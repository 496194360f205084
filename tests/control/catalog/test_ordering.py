"""Operators can reorder toolkits and undo it."""

import pytest

from toolbelt.control import undo, writing
from toolbelt.control.catalog import entries, ordering
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import surfaces

pytestmark = pytest.mark.usefixtures("stored")


@pytest.fixture
def told(stored: None, operator: writing.Write) -> None:
    """Create two toolkits whose policies ada receives: reading, then pushing."""
    entries.change(operator, "toolkit", "pushing", {"policy": "Ask before you push."})
    config = {"reading": True, "pushing": True}
    entries.change(operator.replace(confirm=True), "agent", "ada", {"tools_config": config})


def sections() -> list[str]:
    return [section.toolkit for section in surfaces.ask("ada").policy.sections]


@pytest.mark.usefixtures("told")
def test_the_order_of_toolkits_is_the_order_of_what_the_model_is_told(operator: writing.Write) -> None:
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


def test_what_is_not_named_keeps_its_place(operator: writing.Write) -> None:
    ordering.set_order(operator, "toolkit", ["verbose", "reading"])

    assert entries_of("toolkit") == ["verbose", "pushing", "reading"]


def test_an_order_that_stands_already_writes_nothing(operator: writing.Write) -> None:
    assert ordering.set_order(operator, "toolkit", ["reading", "verbose"]).is_nothing


def test_an_order_that_somebody_changed_since_is_refused(operator: writing.Write) -> None:
    ordering.set_order(operator, "toolkit", ["pushing", "reading", "verbose"])

    with pytest.raises(errors.Stale, match="pushing, reading, verbose"):
        ordering.set_order(
            operator, "toolkit", ["verbose", "reading", "pushing"], was=["reading", "pushing", "verbose"]
        )

    assert entries_of("toolkit") == ["pushing", "reading", "verbose"]


@pytest.mark.parametrize(
    ("kind", "names", "said"),
    [
        ("toolkit", ["readin", "pushing"], "reading"),
        ("toolkit", ["reading", "reading"], "named twice"),
        ("tool", ["git__log", "clock"], "listed by name"),
    ],
)
def test_an_order_that_cannot_be_is_refused(
    operator: writing.Write, kind: str, names: list[str], said: str
) -> None:
    with pytest.raises(errors.ToolbeltError, match=said):
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
def test_some_are_moved_together(
    operator: writing.Write, names: list[str], to: int, order: list[str]
) -> None:
    ordering.move(operator, "toolkit", names, to=to)

    assert entries_of("toolkit") == order


def test_undoing_puts_them_back_unless_they_were_moved_again(operator: writing.Write) -> None:
    change = ordering.move(operator, "toolkit", ["verbose"], to=0)
    undo.undo(operator, change.entry or 0)
    assert entries_of("toolkit") == ["reading", "pushing", "verbose"]

    change = ordering.move(operator, "toolkit", ["verbose"], to=0)
    ordering.move(operator, "toolkit", ["pushing"], to=0)
    with pytest.raises(errors.Stale):
        undo.undo(operator, change.entry or 0)


def test_undoing_an_order_passes_over_what_was_removed_since(operator: writing.Write) -> None:
    change = ordering.set_order(operator, "toolkit", ["verbose", "pushing", "reading"])
    entries.remove(operator, "toolkit", "pushing")

    undo.undo(operator, change.entry or 0)

    assert entries_of("toolkit") == ["reading", "verbose"]


@pytest.mark.usefixtures("told")
def test_undoing_a_removal_puts_it_back_where_it_stood(operator: writing.Write) -> None:
    entries.change(operator.replace(confirm=True), "agent", "bob", {"tools_config": None})
    entries.change(operator.replace(confirm=True), "agent", "ada", {"tools_config": None})
    before = belts.export()
    removed = entries.remove(operator, "toolkit", "reading")
    assert entries_of("toolkit") == ["pushing", "verbose"]

    undo.undo(operator, removed.entry or 0)

    assert belts.export() == before


def test_an_import_puts_what_it_names_into_its_order(operator: writing.Write) -> None:
    document = belts.export()
    document["toolkits"].reverse()
    document["agents"].reverse()

    done = belts.import_(operator, document)

    assert (done.created, done.changed, done.ordered) == (0, 0, ("toolkit", "agent"))
    assert belts.export() == document
    assert belts.import_(operator, document).ordered == ()


def test_what_an_import_brings_stands_where_the_belt_has_it(operator: writing.Write) -> None:
    new = {"key": "first", "members": ["clock"]}

    belts.import_(operator, {"toolkits": [new, *belts.export()["toolkits"]]})

    assert entries_of("toolkit") == ["first", "reading", "pushing", "verbose"]


def entries_of(kind: str) -> list[str]:
    return ordering.names(kind)
