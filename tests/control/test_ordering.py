"""Can an operator say which toolkit comes first, and take it back?"""

import pytest

from toolbelt.control import actors, belts, entries, ordering, queries, undo
from toolbelt.core import errors
from toolbelt.runtime import surfaces

pytestmark = pytest.mark.usefixtures("stored")


@pytest.fixture
def told(stored: None, operator: actors.Actor) -> None:
    """Two toolkits whose policy ada is told: reading, then pushing."""
    entries.change(operator, "toolkit", "pushing", {"policy": "Ask before you push."})
    config = {"reading": True, "pushing": True}
    entries.change(operator, "agent", "ada", {"tools_config": config}, confirm=True)


def sections() -> list[str]:
    return [section.toolkit for section in surfaces.ask("ada").policy.sections]


@pytest.mark.usefixtures("told")
def test_the_order_of_toolkits_is_the_order_of_what_the_model_is_told(operator: actors.Actor) -> None:
    assert sections() == ["reading", "pushing"]

    change = ordering.put(operator, "toolkit", ["pushing", "reading"])

    assert sections() == ["pushing", "reading"]
    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert (entry.action, entry.before, entry.after) == (
        "toolkit.order",
        {"order": ["reading", "pushing"]},
        {"order": ["pushing", "reading"]},
    )


def test_what_is_not_named_keeps_its_place(operator: actors.Actor) -> None:
    ordering.put(operator, "toolkit", ["verbose", "reading"])

    assert entries_of("toolkit") == ["verbose", "pushing", "reading"]


def test_an_order_that_stands_already_writes_nothing(operator: actors.Actor) -> None:
    assert ordering.put(operator, "toolkit", ["reading", "verbose"]).is_nothing


def test_an_order_that_somebody_changed_since_is_refused(operator: actors.Actor) -> None:
    ordering.put(operator, "toolkit", ["pushing", "reading", "verbose"])

    with pytest.raises(errors.Stale, match="pushing, reading, verbose"):
        ordering.put(
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
    operator: actors.Actor, kind: str, names: list[str], said: str
) -> None:
    with pytest.raises(errors.ToolbeltError, match=said):
        ordering.put(operator, kind, names)


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
def test_some_are_moved_together(operator: actors.Actor, names: list[str], to: int, order: list[str]) -> None:
    ordering.move(operator, "toolkit", names, to=to)

    assert entries_of("toolkit") == order


def test_undoing_puts_them_back_unless_they_were_moved_again(operator: actors.Actor) -> None:
    change = ordering.move(operator, "toolkit", ["verbose"], to=0)
    undo.undo(operator, change.entry or 0)
    assert entries_of("toolkit") == ["reading", "pushing", "verbose"]

    change = ordering.move(operator, "toolkit", ["verbose"], to=0)
    ordering.move(operator, "toolkit", ["pushing"], to=0)
    with pytest.raises(errors.Stale):
        undo.undo(operator, change.entry or 0)


def test_undoing_an_order_passes_over_what_was_removed_since(operator: actors.Actor) -> None:
    change = ordering.put(operator, "toolkit", ["verbose", "pushing", "reading"])
    entries.remove(operator, "toolkit", "pushing")

    undo.undo(operator, change.entry or 0)

    assert entries_of("toolkit") == ["reading", "verbose"]


@pytest.mark.usefixtures("told")
def test_undoing_a_removal_puts_it_back_where_it_stood(operator: actors.Actor) -> None:
    entries.change(operator, "agent", "bob", {"tools_config": None}, confirm=True)
    entries.change(operator, "agent", "ada", {"tools_config": None}, confirm=True)
    before = belts.export()
    removed = entries.remove(operator, "toolkit", "reading")
    assert entries_of("toolkit") == ["pushing", "verbose"]

    undo.undo(operator, removed.entry or 0)

    assert belts.export() == before


def test_an_import_puts_what_it_names_into_its_order(operator: actors.Actor) -> None:
    document = belts.export()
    document["toolkits"].reverse()
    document["agents"].reverse()

    done = belts.import_(operator, document)

    assert (done.created, done.changed, done.ordered) == (0, 0, ("toolkit", "agent"))
    assert belts.export() == document
    assert belts.import_(operator, document).ordered == ()


def test_what_an_import_brings_stands_where_the_belt_has_it(operator: actors.Actor) -> None:
    new = {"key": "first", "members": ["clock"]}

    belts.import_(operator, {"toolkits": [new, *belts.export()["toolkits"]]})

    assert entries_of("toolkit") == ["first", "reading", "pushing", "verbose"]


def entries_of(kind: str) -> list[str]:
    return ordering.names(kind)
