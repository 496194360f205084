"""Tests that a block applies to all agents immediately, reports its effect and can be undone."""

import datetime as dt

import pytest

from toolbelt.control import undo, writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import blocking
from toolbelt.control.reports import queries
from toolbelt.core import admitting, errors
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import calls as gate
from toolbelt.runtime import surfaces
from toolbelt.runtime.surfaces import explain
from toolbelt.store import clock

pytestmark = pytest.mark.usefixtures("stored")


@pytest.mark.parametrize(("kind", "name"), [("tool", "git__log"), ("toolkit", "reading"), ("plugin", "git")])
def test_a_block_takes_effect_immediately_and_lists_the_affected_agents(
    operator: writing.Write, kind: blocking.Kind, name: str
) -> None:
    assert "git__log" in [tool.name for tool in surfaces.ask("bob").tools]

    change = blocking.set_blocked(operator.replace(reason="it leaks"), kind, name, True, was=False)

    assert change.agents == {"bob": 1 if kind == "tool" else 2}
    assert "git__log" not in [tool.name for tool in surfaces.ask("bob").tools]
    assert isinstance(gate.admit(RequestKey("bob"), "git__log", {}), admitting.Refusal)
    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert (entry.action, entry.reason) == (f"{kind}.change", "it leaks")

    undo.undo(operator, change.entry or 0)
    assert "git__log" in [tool.name for tool in surfaces.ask("bob").tools]


def test_unblocking_lists_the_agents_that_regain_the_tools(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "toolkit", "reading", True, was=False)
    assert blocking.set_blocked(operator, "toolkit", "reading", False, was=True).agents == {"bob": 2}
    assert blocking.set_blocked(operator, "toolkit", "reading", False, was=False).is_nothing


def test_a_blocked_plugin_denies_its_tools_whatever_grants_them(operator: writing.Write) -> None:
    switches.override(operator.replace(confirm=True), "ada", "git__push", True)
    switches.override(operator, "ada", "git__log", True, ends=clock.now() + dt.timedelta(hours=1))

    change = blocking.set_blocked(operator, "plugin", "git", True, was=False)

    assert change.agents == {"ada": 2, "bob": 2}
    assert {explain.why(RequestKey("ada"), key).decision.code for key in ("git__push", "git__log")} == {
        "blocked"
    }
    assert [tool.name for tool in surfaces.ask("ada").tools] == ["clock"]
    assert queries.changes().entries[0].id == change.entry, "one entry for all agents"
    with pytest.raises(errors.Stale):
        blocking.set_blocked(operator, "plugin", "git", True, was=False)
    assert blocking.set_blocked(operator, "plugin", "git", False, was=True).agents == {"ada": 2, "bob": 2}
