"""Tests that entries of every kind are created, changed and removed with validation and an audit entry."""

import datetime as dt
from typing import Any

import pytest

from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.access import tools_config
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.core import errors, grants
from toolbelt.runtime import surfaces
from toolbelt.store import agents as agent_rows
from toolbelt.store import catalog, clock, snapshots

pytestmark = pytest.mark.usefixtures("stored")


def test_only_the_changed_keys_are_recorded_in_the_audit_log(operator: writing.Write) -> None:
    change = entries.change(operator, "agent", "bob", {"title": "Bob", "protected": False})

    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert (entry.before, entry.after) == ({"title": None}, {"title": "Bob"})


def test_null_resets_a_key_to_its_default(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"title": "Bob"})

    entries.change(operator, "agent", "bob", {"title": None})

    assert "title" not in entries.read("agent", "bob")


def test_an_invalid_entry_is_refused_with_every_problem(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid) as refused:
        entries.change(operator, "agent", "bob", {"kind": "spy", "loadout": "ghost", "title": "Bob"})

    assert {problem.path for problem in refused.value.problems} == {"agents.bob.kind", "agents.bob.loadout"}
    assert "title" not in entries.read("agent", "bob")


def test_an_edit_based_on_an_outdated_value_is_refused(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"title": "Robert"})

    with pytest.raises(errors.Stale):
        entries.change(operator, "agent", "bob", {"title": "Bob"}, was={"title": None})


def test_a_stale_edit_reports_every_key_that_was_changed_meanwhile(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"title": "Robert", "role": "guard"})

    with pytest.raises(errors.Stale) as refused:
        entries.change(
            operator,
            "agent",
            "bob",
            {"title": "Bob", "role": "cook", "model": "small"},
            was={"title": None, "role": None, "model": None},
        )

    assert refused.value.fields == {"title": "Robert", "role": "guard"}
    assert "model" not in entries.read("agent", "bob")


def test_a_single_switch_can_be_changed_despite_changes_to_other_switches(
    operator: writing.Write,
) -> None:
    entries.change(operator, "agent", "bob", {"tools_config": {"pushing": False, "clock": False}})

    change = entries.change(
        operator,
        "agent",
        "bob",
        {"tools_config.reading": False, "tools_config.clock": None, "title": "Bob"},
        was={"tools_config.reading": None, "tools_config.clock": False, "title": None},
    )

    assert entries.read("agent", "bob")["tools_config"] == {"pushing": False, "reading": False}
    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert (entry.action, entry.after) == ("agent.change", {"title": "Bob"})
    with pytest.raises(errors.Stale, match="you saw not set, it is off now"):
        entries.change(
            operator, "agent", "bob", {"tools_config.reading": True}, was={"tools_config.reading": None}
        )


def test_a_single_switch_can_expire_and_revert_to_its_former_value(
    operator: writing.Write,
) -> None:
    later = grants.format_time(clock.now() + dt.timedelta(hours=2))
    entries.change(operator, "agent", "bob", {"tools_config": {"reading": False}})

    entries.change(operator, "agent", "bob", {"tools_config.reading": {"on": True, "ends": later}})

    assert entries.read("agent", "bob")["ends"] == {
        "reading": {"at": later, "then": False, "by": operator.actor.name}
    }
    assert tools_config.as_single(entries.read("agent", "bob"))["tools_config.reading"] == {
        "on": True,
        "ends": later,
    }


def test_an_end_in_the_past_is_refused_at_its_path_for_new_and_existing_agents(
    operator: writing.Write,
) -> None:
    expired = {"on": True, "ends": grants.format_time(clock.now() - dt.timedelta(hours=2))}

    with pytest.raises(errors.Invalid, match=r"agents\.bob\.ends\.reading: .* is in the past"):
        entries.change(operator, "agent", "bob", {"tools_config.reading": expired, "title": "Bob"})
    with pytest.raises(errors.Invalid, match=r"agents\.eve\.ends\.reading: .* is in the past"):
        entries.create(operator, "agent", {"key": "eve", "tools_config.reading": expired})

    assert "title" not in entries.read("agent", "bob")


@pytest.mark.parametrize(("kind", "name"), [("tool", "clock"), ("plugin", "git")])
def test_tools_and_plugins_are_retired_never_removed(operator: writing.Write, kind: str, name: str) -> None:
    with pytest.raises(errors.Refused, match="never removed"):
        entries.remove(operator, kind, name)


def test_a_toolkit_in_use_cannot_be_removed(operator: writing.Write) -> None:
    with pytest.raises(errors.Refused, match="bob"):
        entries.remove(operator, "toolkit", "reading")


def test_a_loadout_in_use_cannot_be_removed(operator: writing.Write) -> None:
    entries.put(operator, "loadout", {"name": "slim", "categories": ["git"]})
    agents.equip(operator.replace(confirm=True), "ada", "SLIM")

    with pytest.raises(errors.Refused, match="ada"):
        entries.remove(operator, "loadout", "slim")


def test_a_toolkit_edit_that_causes_conflicting_options_is_refused(
    operator: writing.Write,
) -> None:
    agents.edit(
        operator.replace(confirm=True),
        "bob",
        {"allowed_toolkits": ["pushing"], "initial_toolkits": ["pushing"]},
    )

    with pytest.raises(errors.Invalid) as refused:
        entries.change(
            operator, "toolkit", "pushing", {"members": [{"tool": "git__log", "options": {"depth": 1}}]}
        )

    assert [problem.path for problem in refused.value.problems] == ["toolkits.pushing.members"]


def test_a_retired_tool_keeps_its_row_and_is_unavailable(operator: writing.Write) -> None:
    entries.change(operator.observed_by("git", "program"), "tool", "git__log", {"retired": True})

    answer = surfaces.ask("bob")
    assert "git__log" not in answer.because
    assert answer.resolution.decision("git__log").code == "tool-retired"


def test_allowed_toolkits_keep_their_order_and_include_the_initial_toolkits(operator: writing.Write) -> None:
    agents.edit(
        operator, "ada", {"allowed_toolkits": ["pushing", "reading"], "initial_toolkits": ["reading"]}
    )

    entry = entries.read("agent", "ada")
    assert (entry["allowed_toolkits"], entry["initial_toolkits"]) == (["pushing", "reading"], ["reading"])


def test_importing_an_export_changes_nothing(operator: writing.Write) -> None:
    document = belts.export()

    imported = belts.import_(operator, document)

    assert (imported.created, imported.changed) == (0, 0)
    assert belts.export() == document


def test_a_belt_with_an_invalid_entry_is_refused_and_stores_nothing(operator: writing.Write) -> None:
    document: dict[str, Any] = {"agents": [{"key": "eve"}, {"key": "mal", "loadout": "ghost"}]}

    with pytest.raises(errors.Invalid):
        belts.import_(operator, document)

    assert queries.agent_keys() == ["ada", "bob"]


def test_a_belt_can_refer_to_stored_entries(operator: writing.Write) -> None:
    belts.import_(operator, {"agents": [{"key": "eve", "tools_config": {"reading": True}}]})

    assert "git__status" in surfaces.ask("eve").because


def test_an_agent_edit_that_enables_destructive_tools_requires_confirmation(operator: writing.Write) -> None:
    with pytest.raises(errors.ConfirmationRequired, match="git__push"):
        agents.equip(operator, "ada", "developer")
    assert "loadout" not in entries.read("agent", "ada")

    agents.equip(operator.replace(confirm=True), "ada", "developer")
    assert "git__push" in surfaces.ask("ada").because


def test_an_agent_edit_that_exceeds_a_refusing_budget_is_refused(operator: writing.Write) -> None:
    entries.change(operator, "agent", "ada", {"budget": {"max_tools": 1, "on_exceed": "refuse"}})

    with pytest.raises(errors.Refused):
        entries.change(operator, "agent", "ada", {"tools": ["git__log"]})

    assert "tools" not in entries.read("agent", "ada")


def test_creating_an_agent_over_its_refusing_budget_is_refused(operator: writing.Write) -> None:
    entry = {"key": "eve", "tools": ["clock", "git__log"], "budget": {"max_tools": 1, "on_exceed": "refuse"}}

    with pytest.raises(
        errors.Refused, match="The budget of eve is 1 tool; this change would result in 2 tools"
    ):
        entries.create(operator.replace(confirm=True), "agent", entry)

    assert "eve" not in queries.agent_keys()
    entries.create(operator, "agent", {**entry, "tools": ["clock"]})


@pytest.fixture
def at_budget(stored: None, operator: writing.Write) -> None:
    """Use up ada's budget with tools from a toolkit, a loadout and a sub-app."""
    entries.put(operator, "loadout", {"name": "house"})
    budget = {"max_tools": 2, "on_exceed": "refuse"}
    ada = {"loadout": "house", "tools_config": {"reading": True}, "budget": budget}
    entries.change(operator, "agent", "ada", ada)
    entries.put(operator, "sub_app", {"key": "chat", "agents": ["ada"]})
    assert set(surfaces.ask("ada").because) == {"git__log", "git__status"}


ONE_MORE_TOOL = [
    ("loadout", "house", {"categories": ["git"]}),
    ("toolkit", "reading", {"members": ["git__status", "git__log", "clock"]}),
    ("sub_app", "chat", {"tool_names": ["clock"]}),
]


@pytest.mark.usefixtures("at_budget")
@pytest.mark.parametrize(("kind", "name", "change"), ONE_MORE_TOOL)
def test_a_shared_entry_cannot_change_so_that_an_agent_exceeds_its_refusing_budget(
    operator: writing.Write, kind: str, name: str, change: dict[str, object]
) -> None:
    before = entries.read(kind, name)

    with pytest.raises(
        errors.Refused, match="The budget of ada is 2 tools; this change would result in 3 tools"
    ):
        entries.change(operator.replace(confirm=True), kind, name, change)

    assert entries.read(kind, name) == before


@pytest.mark.usefixtures("at_budget")
@pytest.mark.parametrize(("kind", "name", "change"), ONE_MORE_TOOL)
def test_a_shared_entry_can_change_while_an_agent_already_exceeds_its_budget(
    operator: writing.Write, kind: str, name: str, change: dict[str, object]
) -> None:
    models.Agent.objects.update(on_exceed="warn")
    entries.change(operator, kind, name, change)
    models.Agent.objects.update(on_exceed="refuse")

    entries.change(operator, kind, name, {"title": "Other"} if kind != "loadout" else {"disabled": ["clock"]})

    assert len(surfaces.ask("ada").because) == 3


@pytest.mark.usefixtures("at_budget")
def test_the_error_names_the_first_exceeded_budgets_and_counts_the_rest(
    operator: writing.Write,
) -> None:
    for number in range(4):
        entries.put(operator, "agent", {**entries.read("agent", "ada"), "key": f"eve{number}"})

    with pytest.raises(errors.Refused) as refused:
        entries.change(operator, "loadout", "house", {"categories": ["git"]})

    message = str(refused.value)
    assert message.count("The budget of") == 3
    assert "2 more agents would exceed a budget. Switch something else off first" in message


@pytest.mark.usefixtures("at_budget")
def test_a_blocked_toolkit_cannot_be_removed_if_its_tool_would_exceed_a_budget(
    operator: writing.Write,
) -> None:
    entries.put(operator, "toolkit", {"key": "held", "members": ["clock"], "blocked": True})
    models.Tool.objects.filter(key="clock").update(default_on=True)
    models.Agent.objects.filter(key="ada").update(loadout="")

    with pytest.raises(
        errors.Refused, match="The budget of ada is 2 tools; this change would result in 3 tools"
    ):
        entries.remove(operator, "toolkit", "held")

    assert entries.change(operator, "toolkit", "held", {"blocked": None}).entry


@pytest.mark.usefixtures("at_budget")
def test_a_plugins_code_may_exceed_budgets(operator: writing.Write) -> None:
    entry = {**entries.read("toolkit", "reading"), "members": ["git__status", "git__log", "clock"]}
    assert entries.put(operator.observed_by("git", "program"), "toolkit", entry).entry


def test_removing_an_agent_that_exceeds_its_budget_can_be_undone(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"budget": {"max_tools": 0, "on_exceed": "refuse"}})
    removed = entries.remove(operator, "agent", "bob")

    undo.undo(operator, removed.entry or 0)

    assert "bob" in queries.agent_keys()


def test_removing_an_agents_protection_requires_confirmation(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"protected": True})

    entries.change(operator, "agent", "bob", {"title": "Bob"})
    with pytest.raises(errors.ConfirmationRequired):
        entries.change(operator, "agent", "bob", {"protected": None})


def test_a_stale_edit_does_not_overwrite_allowed_toolkits(
    operator: writing.Write,
) -> None:
    agents.edit(operator, "ada", {"allowed_toolkits": ["reading"]})

    with pytest.raises(errors.Stale):
        agents.edit(operator, "ada", {"allowed_toolkits": ["pushing"]}, was={"allowed_toolkits": None})


def test_checking_a_belt_considers_the_stored_entries(operator: writing.Write) -> None:
    assert belts.check({"agents": [{"key": "eve", "allowed_toolkits": ["reading"]}]}) == []
    assert [str(p.path) for p in belts.check({"agents": [{"key": "eve", "loadout": "ghost"}]})] == [
        "agents.eve.loadout"
    ]


@pytest.mark.parametrize("kind", ["toolkit", "loadout", "sub_app"])
def test_changing_a_description_neither_recompiles_the_catalog_nor_reads_agents(
    operator: writing.Write, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.Agent.objects.update(max_tools=0, on_exceed="refuse")
    entries.put(operator, "loadout", {"name": "slim", "categories": ["git"]})
    entries.put(operator, "sub_app", {"key": "chat"})
    name = {"toolkit": "reading", "loadout": "slim", "sub_app": "chat"}[kind]
    snapshots.catalog()
    loads: list[object] = []
    monkeypatch.setattr(catalog, "load", lambda *state: loads.append(state))
    monkeypatch.setattr(agent_rows, "present", lambda **narrowed: loads.append(narrowed))

    change = entries.change(operator, kind, name, {"description": "Reads what others wrote."})

    assert change.after == {"description": "Reads what others wrote."}
    assert loads == []
