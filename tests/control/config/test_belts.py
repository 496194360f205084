"""The preview of an import equals its effect, and an outdated import changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.control.conftest import BELT
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belt_effects, belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import surfaces
from toolbelt.store import snapshots

pytestmark = pytest.mark.usefixtures("stored")

# Written as people write: with what has its default, in another order, with things of every kind.
NEW: dict[str, Any] = {
    "categories": ["crm"],
    "plugins": [
        {"name": "desk", "category": "crm", "status": "disabled"},
        {**BELT["plugins"][0], "title": "Git"},
    ],
    "tools": [{**BELT["tools"][3], "default_on": False, "title": ""}, {"key": "desk", "plugin": "desk"}],
    "toolkits": [
        {"key": "pushing", "members": [{"tool": "git__push"}], "blocked": False, "policy": None},
        {"key": "reading", "members": ["git__log", "git__status"], "triggers": []},
        {"key": "desks", "members": [{"tool": "desk", "options": {"depth": 1.0, "name": "ü"}}]},
    ],
    "loadouts": [{"name": "House", "parent": "minimal", "plugins": ["git"]}],
    "agents": [
        {
            "key": "eve",
            "kind": "",
            "budget": {"max_tools": 0},
            "tools_config": {"desks": None, "clock": True},
        },
        {"key": "bob", "tools_config": {"reading": None, "desk": False}},
    ],
    "sub_apps": [{"key": "chat", "tool_names": ["desk"], "agents": ["eve"]}],
}


def stored_by_name() -> dict[tuple[str, str], Any]:
    return {
        (kind, entry if isinstance(entry, str) else entry[entries.name_field(kind)]): entry
        for section, kind in belts.SECTIONS.items()
        for entry in belts.export().get(section, ())
    }


def test_what_the_preview_says_is_what_is_stored_after_the_import(operator: writing.Write) -> None:
    said = belts.preview(operator, NEW)
    done = belts.import_(operator, NEW)

    assert said == done
    assert (said.created, said.changed, said.same) == (7, 4, 1)
    assert said.ordered == ("plugin", "toolkit", "agent")
    after = stored_by_name()
    for one in said.differences:
        assert entries.read(one.kind, one.name) == one.after
        assert (one.kind, one.name) in after


def test_a_preview_writes_nothing(operator: writing.Write) -> None:
    before, revision = belts.export(), belts.revision()
    belts.preview(operator, NEW)
    assert (belts.export(), belts.revision()) == (before, revision)


def test_a_second_import_finds_everything_as_it_says(operator: writing.Write) -> None:
    belts.import_(operator, NEW)
    again = belts.import_(operator, NEW)
    assert (again.differences, again.same, again.ordered) == ((), 12, ())


def test_a_preview_refuses_what_the_import_refuses(operator: writing.Write) -> None:
    unsound = {"agents": [{"key": "eve", "tools": ["clok"]}], "toolkits": [{"key": "a", "members": ["x"]}]}
    with pytest.raises(errors.Invalid) as said:
        belts.preview(operator, unsound)
    with pytest.raises(errors.Invalid) as done:
        belts.import_(operator, unsound)
    assert said.value.problems == done.value.problems
    assert len(said.value.problems) == 2


def test_an_import_that_saw_another_revision_does_nothing(operator: writing.Write) -> None:
    seen = belts.revision()
    switches.flip(operator, "ada", "reading", True)

    with pytest.raises(errors.Stale):
        belts.import_(operator, NEW, was=seen)

    assert queries.changes(action="category.create").total == 0
    belts.import_(operator, NEW, was=belts.revision())


def test_what_is_exported_is_the_state_of_its_revision(
    operator: writing.Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = belts.export

    def export_and_be_overtaken() -> dict[str, Any]:
        found = export()
        monkeypatch.setattr(belts, "export", export)
        switches.flip(operator, "ada", "reading", True)
        return found

    monkeypatch.setattr(belts, "export", export_and_be_overtaken)
    number, document = belts.export_with_revision()
    assert (number, document) == (belts.revision(), belts.export())


REFUSES = {"max_tools": 1, "on_exceed": "refuse"}
OVER = {"tools": ["clock", "git__log"], "budget": REFUSES}


@pytest.mark.parametrize("do", [belts.preview, belts.import_])
def test_agents_that_would_pass_a_budget_that_refuses_are_all_named_and_nothing_is_written(
    operator: writing.Write, do: Callable[..., belts.Imported]
) -> None:
    before = belts.export()
    fits = {"key": "fits", "tools": ["clock"], "budget": REFUSES}
    told = {"key": "told", "tools": ["git__log"], "budget": {"max_tools": 0, "on_exceed": "warn"}}
    few = {"key": "few", "tools": ["clock"], "budget": {"max_tokens": 3, "on_exceed": "refuse"}}

    with pytest.raises(errors.Invalid) as refused:
        do(operator, {"agents": [fits, {"key": "eve", **OVER}, told, {"key": "ada", **OVER}, few]})

    assert [problem.path for problem in refused.value.problems] == [
        "agents.eve.budget",
        "agents.ada.budget",
        "agents.few.budget",
    ]
    assert "The budget of eve is 1 tools; this would make 2 tools" in refused.value.problems[0].message
    assert belts.export() == before


def test_an_import_of_what_agents_share_is_held_to_their_budgets(operator: writing.Write) -> None:
    belts.import_(
        operator,
        {
            "agents": [
                {
                    "key": "bob",
                    "tools_config": {"reading": True},
                    "budget": {"max_tools": 3, "on_exceed": "refuse"},
                }
            ]
        },
    )
    wider = {"key": "reading", "members": ["git__status", "git__log", "git__push"]}

    with pytest.raises(errors.Invalid, match="this would make 4 tools") as refused:
        belts.import_(operator, {"toolkits": [wider]})

    assert [problem.path for problem in refused.value.problems] == ["agents.bob.budget"]
    narrower = {"key": "reading", "members": ["git__status"]}
    assert belts.import_(operator, {"toolkits": [narrower]}).changed == 1


def test_an_import_counts_what_it_makes_of_the_tools_that_it_brings(operator: writing.Write) -> None:
    tools = [{"key": "new", "default_on": True}]

    with pytest.raises(errors.Invalid, match="would make 2 tools"):
        belts.import_(operator, {"tools": tools, "agents": [{"key": "eve", "budget": REFUSES}]})


def test_an_import_counts_the_tokens_that_are_stored_after_it(operator: writing.Write) -> None:
    belts.import_(operator, {"agents": [{"key": "eve", "tools": ["git__log"]}]})
    spent = surfaces.ask("eve").spent.tokens
    most = {"max_tokens": spent, "on_exceed": "refuse"}

    belts.import_(operator, {"agents": [{"key": "eve", "tools": ["git__log"], "budget": most}]})

    less = {"max_tokens": spent - 1, "on_exceed": "refuse"}
    with pytest.raises(errors.Invalid, match=f"{spent} tokens"):
        belts.import_(operator, {"agents": [{"key": "fay", "tools": ["git__log"], "budget": less}]})


def test_an_agent_that_is_over_its_budget_may_be_imported_as_long_as_it_gets_no_more(
    operator: writing.Write,
) -> None:
    belts.import_(operator, {"agents": [{"key": "eve", "tools": ["clock", "git__log"]}]})
    belts.import_(operator, {"agents": [{"key": "eve", **OVER}]})

    assert belts.import_(operator, belts.export()).differences == ()
    belts.import_(operator, {"agents": [{"key": "eve", "title": "Eve", **OVER}]})
    more = [*OVER["tools"], "git__status"]
    with pytest.raises(errors.Invalid, match="eve"):
        belts.import_(operator, {"agents": [{"key": "eve", "tools": more, "budget": REFUSES}]})


@pytest.mark.parametrize("section", belts.SECTIONS)
def test_a_section_that_is_null_is_not_given(operator: writing.Write, section: str) -> None:
    before = belts.export()

    assert belts.check({section: None}) == []
    assert belts.import_(operator, {section: None}).differences == ()
    assert belts.export() == before


def test_a_section_that_there_is_none_of_is_told_also_if_it_is_null() -> None:
    assert [problem.path for problem in belts.check({"toolboxes": None})] == ["toolboxes"]


def test_a_preview_refuses_a_command_that_may_not_come_this_way(operator: writing.Write) -> None:
    belt = {"plugins": [{"name": "shell", "namespace": "shell", "upstream": {"command": "sh"}}]}
    with pytest.raises(errors.Refused, match="runs code on the server"):
        belts.preview(operator, belt)
    with pytest.raises(errors.Refused, match="runs code on the server"):
        belts.import_(operator, belt)
    assert belts.preview(writing.by("olive", via="command"), belt).created == 1


def test_the_preview_keeps_the_order_of_toolkits_by_which_a_budget_defers(operator: writing.Write) -> None:
    limit = {"max_tools": 2, "on_exceed": "defer"}
    loadout = {"name": "house", "plugins": ["git"]}
    belts.import_(
        operator, {"loadouts": [loadout], "agents": [{"key": "eve", "loadout": "house", "budget": limit}]}
    )
    assert surfaces.ask("eve").because.keys() == {"git__push", "git__status"}

    # The last toolkit, which is deferred first, stays the last if the belt names no other.
    reading, pushing, verbose = BELT["toolkits"]
    assert belt_effects.assess(operator, {"toolkits": [verbose]}).consequences == ()

    other_order = {"toolkits": [verbose, reading, pushing]}
    (consequence,) = belt_effects.assess(operator, other_order).consequences
    assert (consequence.effect.added, consequence.effect.removed) == (("git__log",), ("git__push",))
    belts.import_(operator.replace(confirm=True), other_order)
    assert surfaces.ask("eve").because.keys() == {"git__log", "git__status"}


class Long:
    """The hooks of a toolkit in code, with a policy of some length."""

    def policy(self, active_tools: tuple[str, ...]) -> str:
        return "Handle with care. " * 40

    def focus(self, active_tools: tuple[str, ...], message: str) -> None:
        return None


CODE: dict[str, Any] = {
    "plugins": [{"name": "vault", "namespace": "vault", "in_code": True}],
    "tools": [{"key": "vault__open", "plugin": "vault", "description": "Open the vault."}],
    "toolkits": [{"key": "vaults", "plugin": "vault", "members": ["vault__open"]}],
    "agents": [{"key": "guard", "tools_config": {"vaults": True}}],
}


@pytest.fixture
def hooks() -> Iterator[None]:
    """Let the toolkit `vaults` have the hooks above."""
    registered = snapshots.catalog().code
    snapshots.register_hooks({("vault", "vaults"): Long()})
    yield
    snapshots.register_hooks(registered)


def test_the_preview_counts_the_policy_that_code_writes(hooks: None, operator: writing.Write) -> None:
    belts.import_(operator, CODE)
    document = {"agents": [{"key": "warden", "tools_config": {"vaults": True}}]}
    weighed = belt_effects.assess(operator, document)
    # Nothing changes for the guard, who has the toolkit already.
    assert [consequence.agent for consequence in weighed.consequences] == ["warden"]
    belts.import_(operator, document)
    spent = surfaces.ask("warden").spent
    assert spent.policy_tokens > 100
    assert weighed.consequences[0].effect.tokens_after == spent.tokens


def test_an_import_that_would_exceed_a_budget_by_the_policy_that_code_writes_is_refused(
    hooks: None, operator: writing.Write
) -> None:
    budget = {"max_tokens": 100, "on_exceed": "refuse"}
    document = {**CODE, "agents": [{**CODE["agents"][0], "budget": budget}]}
    with pytest.raises(errors.Invalid, match="budget"):
        belts.preview(operator, document)
