"""All configuration is created, changed and removed by the same functions, validated and audited."""

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


def test_only_the_keys_that_change_stand_in_the_log(operator: writing.Write) -> None:
    change = entries.change(operator, "agent", "bob", {"title": "Bob", "protected": False})

    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert (entry.before, entry.after) == ({"title": None}, {"title": "Bob"})


def test_none_puts_a_key_back_to_its_default(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"title": "Bob"})

    entries.change(operator, "agent", "bob", {"title": None})

    assert "title" not in entries.read("agent", "bob")


def test_an_entry_that_is_not_sound_is_refused_whole_with_every_problem(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid) as refused:
        entries.change(operator, "agent", "bob", {"kind": "spy", "loadout": "ghost", "title": "Bob"})

    assert {problem.path for problem in refused.value.problems} == {"agents.bob.kind", "agents.bob.loadout"}
    assert "title" not in entries.read("agent", "bob")


def test_an_edit_that_saw_an_old_state_of_its_key_is_refused(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"title": "Robert"})

    with pytest.raises(errors.Stale):
        entries.change(operator, "agent", "bob", {"title": "Bob"}, was={"title": None})


def test_an_edit_that_is_stale_names_every_key_that_somebody_else_changed(operator: writing.Write) -> None:
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


def test_one_switch_is_changed_by_itself_beside_what_others_changed_meanwhile(
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


def test_a_switch_that_is_changed_by_itself_may_end_and_goes_back_to_what_it_was(
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


def test_an_end_that_is_over_is_refused_at_its_path_whether_the_agent_is_new_or_not(
    operator: writing.Write,
) -> None:
    over = {"on": True, "ends": grants.format_time(clock.now() - dt.timedelta(hours=2))}

    with pytest.raises(errors.Invalid, match=r"agents\.bob\.ends\.reading: .* is in the past"):
        entries.change(operator, "agent", "bob", {"tools_config.reading": over, "title": "Bob"})
    with pytest.raises(errors.Invalid, match=r"agents\.eve\.ends\.reading: .* is in the past"):
        entries.create(operator, "agent", {"key": "eve", "tools_config.reading": over})

    assert "title" not in entries.read("agent", "bob")


@pytest.mark.parametrize(("kind", "name"), [("tool", "clock"), ("plugin", "git")])
def test_tools_and_plugins_are_retired_never_removed(operator: writing.Write, kind: str, name: str) -> None:
    with pytest.raises(errors.Refused, match="never removed"):
        entries.remove(operator, kind, name)


def test_what_something_refers_to_is_not_removed(operator: writing.Write) -> None:
    with pytest.raises(errors.Refused, match="bob"):
        entries.remove(operator, "toolkit", "reading")


def test_a_loadout_in_use_is_not_removed_from_under_its_agent(operator: writing.Write) -> None:
    entries.put(operator, "loadout", {"name": "slim", "categories": ["git"]})
    agents.equip(operator.replace(confirm=True), "ada", "SLIM")

    with pytest.raises(errors.Refused, match="ada"):
        entries.remove(operator, "loadout", "slim")


def test_a_toolkit_edit_that_would_bring_an_agent_two_sets_of_options_is_refused(
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
    entries.change(operator, "tool", "git__log", {"retired": True})

    answer = surfaces.ask("bob")
    assert "git__log" not in answer.because
    assert answer.resolution.decision("git__log").code == "tool-retired"


def test_allowed_toolkits_are_in_the_order_given_and_initial_ones_among_them(operator: writing.Write) -> None:
    agents.edit(
        operator, "ada", {"allowed_toolkits": ["pushing", "reading"], "initial_toolkits": ["reading"]}
    )

    entry = entries.read("agent", "ada")
    assert (entry["allowed_toolkits"], entry["initial_toolkits"]) == (["pushing", "reading"], ["reading"])


def test_exporting_and_importing_changes_nothing(operator: writing.Write) -> None:
    document = belts.export()

    done = belts.import_(operator, document)

    assert (done.created, done.changed) == (0, 0)
    assert belts.export() == document


def test_a_belt_with_one_unsound_entry_is_refused_and_leaves_nothing_behind(operator: writing.Write) -> None:
    document: dict[str, Any] = {"agents": [{"key": "eve"}, {"key": "mal", "loadout": "ghost"}]}

    with pytest.raises(errors.Invalid):
        belts.import_(operator, document)

    assert queries.agent_keys() == ["ada", "bob"]


def test_a_belt_may_name_what_is_stored_already(operator: writing.Write) -> None:
    belts.import_(operator, {"agents": [{"key": "eve", "tools_config": {"reading": True}}]})

    assert "git__status" in surfaces.ask("eve").because


def test_an_edit_of_an_agent_that_brings_destructive_tools_asks_first(operator: writing.Write) -> None:
    with pytest.raises(errors.ConfirmationRequired, match="git__push"):
        agents.equip(operator, "ada", "developer")
    assert "loadout" not in entries.read("agent", "ada")

    agents.equip(operator.replace(confirm=True), "ada", "developer")
    assert "git__push" in surfaces.ask("ada").because


def test_an_edit_of_an_agent_cannot_pass_a_budget_that_refuses(operator: writing.Write) -> None:
    entries.change(operator, "agent", "ada", {"budget": {"max_tools": 1, "on_exceed": "refuse"}})

    with pytest.raises(errors.Refused):
        entries.change(operator, "agent", "ada", {"tools": ["git__log"]})

    assert "tools" not in entries.read("agent", "ada")


def test_an_agent_is_not_created_over_a_budget_that_refuses(operator: writing.Write) -> None:
    over = {"key": "eve", "tools": ["clock", "git__log"], "budget": {"max_tools": 1, "on_exceed": "refuse"}}

    with pytest.raises(errors.Refused, match="The budget of eve is 1 tools; this would make 2 tools"):
        entries.create(operator.replace(confirm=True), "agent", over)

    assert "eve" not in queries.agent_keys()
    entries.create(operator, "agent", {**over, "tools": ["clock"]})


@pytest.fixture
def bound(stored: None, operator: writing.Write) -> None:
    """Give ada as many tools as her budget allows, from a toolkit, a loadout and a sub-app."""
    entries.put(operator, "loadout", {"name": "house"})
    most = {"max_tools": 2, "on_exceed": "refuse"}
    ada = {"loadout": "house", "tools_config": {"reading": True}, "budget": most}
    entries.change(operator, "agent", "ada", ada)
    entries.put(operator, "sub_app", {"key": "chat", "agents": ["ada"]})
    assert set(surfaces.ask("ada").because) == {"git__log", "git__status"}


MORE = [
    ("loadout", "house", {"categories": ["git"]}),
    ("toolkit", "reading", {"members": ["git__status", "git__log", "clock"]}),
    ("sub_app", "chat", {"tool_names": ["clock"]}),
]


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize(("kind", "name", "change"), MORE)
def test_what_agents_share_is_not_written_so_that_one_passes_a_budget_that_refuses(
    operator: writing.Write, kind: str, name: str, change: dict[str, object]
) -> None:
    before = entries.read(kind, name)

    with pytest.raises(errors.Refused, match="The budget of ada is 2 tools; this would make 3 tools"):
        entries.change(operator.replace(confirm=True), kind, name, change)

    assert entries.read(kind, name) == before


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize(("kind", "name", "change"), MORE)
def test_who_was_over_the_budget_may_stay_so_when_what_is_shared_is_written(
    operator: writing.Write, kind: str, name: str, change: dict[str, object]
) -> None:
    models.Agent.objects.update(on_exceed="warn")
    entries.change(operator, kind, name, change)
    models.Agent.objects.update(on_exceed="refuse")

    entries.change(operator, kind, name, {"title": "Other"} if kind != "loadout" else {"disabled": ["clock"]})

    assert len(surfaces.ask("ada").because) == 3


@pytest.mark.usefixtures("bound")
def test_all_whose_budgets_would_be_passed_are_told_of_and_the_first_are_named(
    operator: writing.Write,
) -> None:
    for number in range(4):
        entries.put(operator, "agent", {**entries.read("agent", "ada"), "key": f"eve{number}"})

    with pytest.raises(errors.Refused) as refused:
        entries.change(operator, "loadout", "house", {"categories": ["git"]})

    said = str(refused.value)
    assert said.count("The budget of") == 3
    assert "2 more agents would exceed a budget. Switch something else off first" in said


@pytest.mark.usefixtures("bound")
def test_a_toolkit_that_held_a_tool_off_is_not_removed_from_under_a_budget(operator: writing.Write) -> None:
    entries.put(operator, "toolkit", {"key": "held", "members": ["clock"], "blocked": True})
    models.Tool.objects.filter(key="clock").update(default_on=True)
    models.Agent.objects.filter(key="ada").update(loadout="")

    with pytest.raises(errors.Refused, match="The budget of ada is 2 tools; this would make 3 tools"):
        entries.remove(operator, "toolkit", "held")

    assert entries.change(operator, "toolkit", "held", {"blocked": None}).entry


@pytest.mark.usefixtures("bound")
def test_the_code_of_a_plugin_is_not_held_to_budgets(operator: writing.Write) -> None:
    wanted = {**entries.read("toolkit", "reading"), "members": ["git__status", "git__log", "clock"]}
    assert entries.put(operator, "toolkit", wanted, in_code=True).entry


def test_a_removed_agent_that_was_over_its_budget_can_be_put_back(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"budget": {"max_tools": 0, "on_exceed": "refuse"}})
    removed = entries.remove(operator, "agent", "bob")

    undo.undo(operator, removed.entry or 0)

    assert "bob" in queries.agent_keys()


def test_a_protected_agent_is_not_unprotected_unasked(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"protected": True})

    entries.change(operator, "agent", "bob", {"title": "Bob"})
    with pytest.raises(errors.ConfirmationRequired):
        entries.change(operator, "agent", "bob", {"protected": None})


def test_a_list_of_allowed_toolkits_that_somebody_changed_since_is_not_overwritten(
    operator: writing.Write,
) -> None:
    agents.edit(operator, "ada", {"allowed_toolkits": ["reading"]})

    with pytest.raises(errors.Stale):
        agents.edit(operator, "ada", {"allowed_toolkits": ["pushing"]}, was={"allowed_toolkits": None})


def test_checking_a_belt_knows_what_is_stored(operator: writing.Write) -> None:
    assert belts.check({"agents": [{"key": "eve", "allowed_toolkits": ["reading"]}]}) == []
    assert [str(p.path) for p in belts.check({"agents": [{"key": "eve", "loadout": "ghost"}]})] == [
        "agents.eve.loadout"
    ]


@pytest.mark.parametrize("kind", ["toolkit", "loadout", "sub_app"])
def test_words_are_changed_without_compiling_the_catalog_again_or_reading_agents(
    operator: writing.Write, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.Agent.objects.update(max_tools=0, on_exceed="refuse")
    entries.put(operator, "loadout", {"name": "slim", "categories": ["git"]})
    entries.put(operator, "sub_app", {"key": "chat"})
    name = {"toolkit": "reading", "loadout": "slim", "sub_app": "chat"}[kind]
    snapshots.catalog()
    asked: list[object] = []
    monkeypatch.setattr(catalog, "load", lambda *state: asked.append(state))
    monkeypatch.setattr(agent_rows, "present", lambda **narrowed: asked.append(narrowed))

    change = entries.change(operator, kind, name, {"description": "Reads what others wrote."})

    assert change.after == {"description": "Reads what others wrote."}
    assert asked == []
