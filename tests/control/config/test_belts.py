"""Tests that the preview of an import equals its effect, and that an outdated import changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.control.conftest import BELT
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belt_effects, belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import surfaces
from toolbelt.store import snapshots

pytestmark = pytest.mark.usefixtures("stored")

# As written by hand: with default values, in another order, and with entries of every kind.
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


def test_a_preview_equals_the_result_of_the_import(operator: writing.Write) -> None:
    preview = belts.preview(operator, NEW)
    imported = belts.import_(operator, NEW)

    assert preview == imported
    assert (preview.created, preview.changed, preview.same) == (7, 4, 1)
    assert preview.ordered == ("plugin", "toolkit", "agent")
    after = stored_by_name()
    for difference in preview.differences:
        assert entries.read(difference.kind, difference.name) == difference.after
        assert (difference.kind, difference.name) in after


def test_a_preview_writes_nothing(operator: writing.Write) -> None:
    before, revision = belts.export(), belts.revision()
    belts.preview(operator, NEW)
    assert (belts.export(), belts.revision()) == (before, revision)


def test_importing_a_belt_again_changes_nothing(operator: writing.Write) -> None:
    belts.import_(operator, NEW)
    again = belts.import_(operator, NEW)
    assert (again.differences, again.same, again.ordered) == ((), 12, ())


def test_a_preview_refuses_what_the_import_refuses(operator: writing.Write) -> None:
    invalid = {"agents": [{"key": "eve", "tools": ["clok"]}], "toolkits": [{"key": "a", "members": ["x"]}]}
    with pytest.raises(errors.Invalid) as previewed:
        belts.preview(operator, invalid)
    with pytest.raises(errors.Invalid) as imported:
        belts.import_(operator, invalid)
    assert previewed.value.problems == imported.value.problems
    assert len(previewed.value.problems) == 2


def test_an_import_based_on_an_outdated_revision_is_refused(operator: writing.Write) -> None:
    seen = belts.revision()
    switches.flip(operator, "ada", "reading", True)

    with pytest.raises(errors.Stale):
        belts.import_(operator, NEW, was=seen)

    assert queries.changes(action="category.create").total == 0
    belts.import_(operator, NEW, was=belts.revision())


def test_an_export_is_the_state_of_its_revision(
    operator: writing.Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = belts.export

    def export_then_flip() -> dict[str, Any]:
        exported = export()
        monkeypatch.setattr(belts, "export", export)
        switches.flip(operator, "ada", "reading", True)
        return exported

    monkeypatch.setattr(belts, "export", export_then_flip)
    number, document = belts.with_revision(belts.export)
    assert (number, document) == (belts.revision(), belts.export())


REFUSING_BUDGET = {"max_tools": 1, "on_exceed": "refuse"}
OVER_BUDGET = {"tools": ["clock", "git__log"], "budget": REFUSING_BUDGET}


@pytest.mark.parametrize("do", [belts.preview, belts.import_])
def test_an_import_that_exceeds_refusing_budgets_is_refused_naming_every_agent(
    operator: writing.Write, do: Callable[..., belts.Imported]
) -> None:
    before = belts.export()
    within = {"key": "fits", "tools": ["clock"], "budget": REFUSING_BUDGET}
    warned = {"key": "told", "tools": ["git__log"], "budget": {"max_tools": 0, "on_exceed": "warn"}}
    over_tokens = {"key": "few", "tools": ["clock"], "budget": {"max_tokens": 3, "on_exceed": "refuse"}}

    with pytest.raises(errors.Invalid) as refused:
        do(
            operator,
            {
                "agents": [
                    within,
                    {"key": "eve", **OVER_BUDGET},
                    warned,
                    {"key": "ada", **OVER_BUDGET},
                    over_tokens,
                ]
            },
        )

    assert [problem.path for problem in refused.value.problems] == [
        "agents.eve.budget",
        "agents.ada.budget",
        "agents.few.budget",
    ]
    assert (
        "The budget of eve is 1 tool; this change would result in 2 tools"
        in refused.value.problems[0].message
    )
    assert belts.export() == before


def test_an_import_of_a_shared_toolkit_respects_the_agents_budgets(operator: writing.Write) -> None:
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

    with pytest.raises(errors.Invalid, match="this change would result in 4 tools") as refused:
        belts.import_(operator, {"toolkits": [wider]})

    assert [problem.path for problem in refused.value.problems] == ["agents.bob.budget"]
    narrower = {"key": "reading", "members": ["git__status"]}
    assert belts.import_(operator, {"toolkits": [narrower]}).changed == 1


def test_a_budget_counts_the_tools_that_the_same_import_adds(operator: writing.Write) -> None:
    tools = [{"key": "new", "default_on": True}]

    with pytest.raises(errors.Invalid, match="would result in 2 tools"):
        belts.import_(operator, {"tools": tools, "agents": [{"key": "eve", "budget": REFUSING_BUDGET}]})


def test_a_budget_counts_the_tokens_after_the_import(operator: writing.Write) -> None:
    belts.import_(operator, {"agents": [{"key": "eve", "tools": ["git__log"]}]})
    spent = surfaces.ask("eve").spent.tokens
    enough = {"max_tokens": spent, "on_exceed": "refuse"}

    belts.import_(operator, {"agents": [{"key": "eve", "tools": ["git__log"], "budget": enough}]})

    too_little = {"max_tokens": spent - 1, "on_exceed": "refuse"}
    with pytest.raises(errors.Invalid, match=f"{spent} tokens"):
        belts.import_(operator, {"agents": [{"key": "fay", "tools": ["git__log"], "budget": too_little}]})


def test_an_agent_over_its_budget_can_be_imported_if_it_gains_no_tools(
    operator: writing.Write,
) -> None:
    belts.import_(operator, {"agents": [{"key": "eve", "tools": ["clock", "git__log"]}]})
    belts.import_(operator, {"agents": [{"key": "eve", **OVER_BUDGET}]})

    assert belts.import_(operator, belts.export()).differences == ()
    belts.import_(operator, {"agents": [{"key": "eve", "title": "Eve", **OVER_BUDGET}]})
    more = [*OVER_BUDGET["tools"], "git__status"]
    with pytest.raises(errors.Invalid, match="eve"):
        belts.import_(operator, {"agents": [{"key": "eve", "tools": more, "budget": REFUSING_BUDGET}]})


@pytest.mark.parametrize("section", belts.SECTIONS)
def test_a_null_section_is_ignored(operator: writing.Write, section: str) -> None:
    before = belts.export()

    assert belts.check({section: None}) == []
    assert belts.import_(operator, {section: None}).differences == ()
    assert belts.export() == before


def test_an_unknown_section_is_reported_even_if_it_is_null() -> None:
    assert [problem.path for problem in belts.check({"toolboxes": None})] == ["toolboxes"]


def test_a_preview_refuses_a_command_set_through_the_web(operator: writing.Write) -> None:
    belt = {"plugins": [{"name": "shell", "namespace": "shell", "upstream": {"command": "sh"}}]}
    with pytest.raises(errors.Refused, match="runs code on the server"):
        belts.preview(operator, belt)
    with pytest.raises(errors.Refused, match="runs code on the server"):
        belts.import_(operator, belt)
    assert belts.preview(writing.by("olive", via="command"), belt).created == 1


def test_a_preview_uses_the_toolkit_order_by_which_a_budget_defers(operator: writing.Write) -> None:
    limit = {"max_tools": 2, "on_exceed": "defer"}
    loadout = {"name": "house", "plugins": ["git"]}
    belts.import_(
        operator, {"loadouts": [loadout], "agents": [{"key": "eve", "loadout": "house", "budget": limit}]}
    )
    assert surfaces.ask("eve").because.keys() == {"git__push", "git__status"}

    # The last toolkit is deferred first, and stays last if the belt names no other.
    reading, pushing, verbose = BELT["toolkits"]
    assert belt_effects.assess(operator, {"toolkits": [verbose]}).consequences == ()

    other_order = {"toolkits": [verbose, reading, pushing]}
    (consequence,) = belt_effects.assess(operator, other_order).consequences
    assert (consequence.effect.added, consequence.effect.removed) == (("git__log",), ("git__push",))
    belts.import_(operator.replace(confirm=True), other_order)
    assert surfaces.ask("eve").because.keys() == {"git__log", "git__status"}


class LongPolicy:
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
    """Register the hooks above for the toolkit `vaults`."""
    registered = snapshots.catalog().code
    snapshots.register_hooks({("vault", "vaults"): LongPolicy()})
    yield
    snapshots.register_hooks(registered)


def test_a_preview_counts_the_tokens_of_policies_written_in_code(
    hooks: None, operator: writing.Write
) -> None:
    belts.import_(operator, CODE)
    document = {"agents": [{"key": "warden", "tools_config": {"vaults": True}}]}
    assessment = belt_effects.assess(operator, document)
    # The guard already has the toolkit, so nothing changes for it.
    assert [consequence.agent for consequence in assessment.consequences] == ["warden"]
    belts.import_(operator, document)
    spent = surfaces.ask("warden").spent
    assert spent.policy_tokens > 100
    assert assessment.consequences[0].effect.tokens_after == spent.tokens


def test_an_import_that_exceeds_a_budget_through_a_policy_in_code_is_refused(
    hooks: None, operator: writing.Write
) -> None:
    budget = {"max_tokens": 100, "on_exceed": "refuse"}
    document = {**CODE, "agents": [{**CODE["agents"][0], "budget": budget}]}
    with pytest.raises(errors.Invalid, match="budget"):
        belts.preview(operator, document)


@pytest.fixture
def observed(stored: None) -> None:
    """Let a plugin fail, a tool be gone, and a tool of a plugin in code be without a process that runs it."""
    models.Plugin.objects.filter(name="git").update(status="failed", in_code=True, not_running=["git__log"])
    models.Tool.objects.filter(key="git__push").update(retired=True)
    snapshots.forget()


OBSERVED: dict[str, Any] = {
    "plugins": [
        {**BELT["plugins"][0], "status": "failed", "in_code": True, "not_running": ["git__log"]},
    ],
    "tools": [{**BELT["tools"][2], "retired": True}],
}


def observations() -> tuple[Any, ...]:
    git = models.Plugin.objects.get(name="git")
    return git.status, git.not_running, models.Tool.objects.get(key="git__push").retired


@pytest.mark.usefixtures("observed")
def test_an_export_has_nothing_that_was_observed() -> None:
    exported = belts.export()

    assert exported["plugins"] == [{"name": "git", "namespace": "git", "category": "git", "in_code": True}]
    assert not any("retired" in tool for tool in exported["tools"])


def test_an_older_belt_with_observations_is_imported_without_them_and_names_them(
    operator: writing.Write,
) -> None:
    imported = belts.import_(operator, OBSERVED)

    assert observations() == ("ready", [], False)
    notes = [
        "plugins.git.status: Ignored: this is observed here, not imported.",
        "plugins.git.not_running: Ignored: this is observed here, not imported.",
        "tools.git__push.retired: Ignored: this is observed here, not imported.",
    ]
    assert [str(warning) for warning in imported.warnings] == notes
    assert [str(warning) for warning in belts.warnings(OBSERVED)] == notes
    assert belts.check(OBSERVED) == []


@pytest.mark.usefixtures("observed")
@pytest.mark.parametrize("status", ["ready", None])
def test_an_import_keeps_what_was_observed_here(operator: writing.Write, status: str | None) -> None:
    before = observations()
    git = {**BELT["plugins"][0], "in_code": True, "status": status}

    imported = belts.import_(operator, {"plugins": [git], "tools": [BELT["tools"][2]]})

    assert observations() == before == ("failed", ["git__log"], True)
    assert imported.differences == ()


@pytest.mark.usefixtures("observed")
def test_an_import_turns_a_failed_plugin_off(operator: writing.Write) -> None:
    belts.import_(operator, {"plugins": [{**BELT["plugins"][0], "in_code": True, "status": "disabled"}]})

    git = models.Plugin.objects.get(name="git")
    assert (git.status, git.active) == ("failed", False)


def test_a_state_is_stored_with_what_was_observed(operator: writing.Write) -> None:
    imported = belts.import_(operator, OBSERVED, is_state=True)

    assert observations() == ("failed", ["git__log"], True)
    assert imported.warnings == ()


def test_an_invalid_status_is_still_a_problem() -> None:
    assert [problem.path for problem in belts.check({"plugins": [{"name": "git", "status": "odd"}]})] == [
        "plugins.git.status"
    ]
