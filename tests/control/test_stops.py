"""Is what is stopped gone for everyone at once, and is that told, kept and taken back?"""

import pytest

from toolbelt.control import actors, queries, stops, undo
from toolbelt.core import calls
from toolbelt.runtime import calls as gate
from toolbelt.runtime import surfaces

pytestmark = pytest.mark.usefixtures("stored")


@pytest.mark.parametrize(("kind", "name"), [("tool", "git__log"), ("toolkit", "reading")])
def test_a_stop_counts_at_once_and_says_whom_it_reaches(
    operator: actors.Actor, kind: stops.Kind, name: str
) -> None:
    assert "git__log" in [tool.name for tool in surfaces.ask("bob").tools]

    change = stops.stop(operator, kind, name, True, was=False, reason="it leaks")

    assert change.agents == {"bob": 1 if kind == "tool" else 2}
    assert "git__log" not in [tool.name for tool in surfaces.ask("bob").tools]
    assert isinstance(gate.admit("bob", "git__log", {}), calls.Refusal)
    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert (entry.action, entry.reason) == (f"{kind}.change", "it leaks")

    undo.undo(operator, change.entry or 0)
    assert "git__log" in [tool.name for tool in surfaces.ask("bob").tools]


def test_lifting_says_who_has_it_again(operator: actors.Actor) -> None:
    stops.stop(operator, "toolkit", "reading", True, was=False)
    assert stops.stop(operator, "toolkit", "reading", False, was=True).agents == {"bob": 2}
    assert stops.stop(operator, "toolkit", "reading", False, was=False).is_nothing
