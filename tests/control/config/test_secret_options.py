"""Tests that options hold no secrets: refused where they are written, withheld where an older version stored them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.agents import agent_versions, agents, comparing
from toolbelt.control.catalog import entries, proposals, renaming
from toolbelt.control.config import adopting, belts
from toolbelt.control.doctor import options as doctor
from toolbelt.core import errors
from toolbelt.store import audit, audit_writing, snapshots

pytestmark = pytest.mark.usefixtures("stored")

# Put together, so that scanners of this repository do not take it for real.
SECRET = "sk-" + "abcdefghijklmnop1234"
HELD = {"depth": 3, "auth": {"apiKey": "[withheld]", "user": "ada"}, "note": ["[withheld]", "plain"]}
PLACE = "options.auth.apiKey"


def options(secret: str = SECRET) -> dict[str, Any]:
    return {"depth": 3, "auth": {"apiKey": secret, "user": "ada"}, "note": [secret, "plain"]}


@pytest.fixture
def older(stored: None) -> None:
    """Store options with secrets, as versions before this rule did."""
    models.Member.objects.filter(toolkit__key="pushing").update(options=options())
    models.AgentTool.objects.filter(agent__key="ada").delete()
    models.AgentTool.objects.create(
        agent=models.Agent.objects.get(key="ada"),
        tool=models.Tool.objects.get(key="clock"),
        options=options(),
        position=0,
    )


def member(stored_options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"tool": "git__push", "options": dict(stored_options or options())}


def kept() -> Any:
    return models.Member.objects.get(toolkit__key="pushing").options


def test_a_secret_is_refused_where_it_is_written(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid) as toolkit:
        entries.create(operator, "toolkit", {"key": "new", "members": [member()]})
    with pytest.raises(errors.Invalid) as agent:
        entries.change(
            operator, "agent", "bob", {"tools": [{"tool": "clock", "options": {"password": "x1"}}]}
        )
    with pytest.raises(errors.Invalid) as belt:
        belts.import_(operator, {"toolkits": [{"key": "new", "members": [member()]}]})
    with pytest.raises(errors.Invalid) as proposed:
        proposals.propose("toolkit", "new", {"members": [member()]}, new=True)

    for refused in (toolkit, belt, proposed):
        paths = [problem.path for problem in refused.value.problems]
        assert paths == [f"toolkits.new.members[0].{PLACE}", "toolkits.new.members[0].options.note[0]"]
        assert SECRET not in str(refused.value)
    [problem] = agent.value.problems
    assert (problem.path, "${NAME}" in problem.message) == ("agents.bob.tools[0].options.password", True)


def test_a_reference_is_stored_as_it_is_written(operator: writing.Write) -> None:
    written = {"apiKey": "${KEY}", "authorization": "Bearer ${TOKEN}"}

    entries.create(operator, "toolkit", {"key": "new", "members": [member(written)]})

    assert entries.read("toolkit", "new")["members"] == [member(written)]


def test_a_stored_secret_is_shown_nowhere(older: None, operator: writing.Write) -> None:
    entries.change(operator, "toolkit", "pushing", {"title": "Push", "members": [member(HELD), "git__log"]})
    entries.change(operator, "agent", "ada", {"title": "Ada L."})
    history = [entry for page in audit.iterate() for entry in page]

    shown = [
        belts.export(),
        entries.read("toolkit", "pushing"),
        entries.read("agent", "ada"),
        [(entry.before, entry.after) for entry in history],
        [*models.AuditEntry.objects.values_list("before", "after")],
        agent_versions.rebuild("ada", history[0].id).entry,
        comparing.compare("ada", "bob").rows,
        proposals.propose("toolkit", "pushing", {"title": "Pull"}),
    ]

    assert SECRET not in repr(shown)
    assert entries.read("toolkit", "pushing")["members"][0] == member(HELD)


def test_what_the_log_of_an_older_version_has_is_withheld_where_it_is_read(operator: writing.Write) -> None:
    values = {"members": [member()]}
    logged = audit_writing.record(
        actor="a", via="api", action="toolkit.change", subject_kind="toolkit", subject_key="pushing",
        before=values, after=values,
    )  # fmt: skip

    found = audit.find(logged)

    assert found is not None
    assert (found.before, found.after) == ({"members": [member(HELD)]},) * 2


def test_an_edit_keeps_the_stored_secret(older: None, operator: writing.Write) -> None:
    for written in (member(HELD), member()):
        entries.change(operator, "toolkit", "pushing", {"title": written["tool"], "members": [written]})
        assert kept() == options()

    entries.change(operator, "toolkit", "pushing", {"members": [member({**HELD, "depth": 4})]})

    assert kept() == {**options(), "depth": 4}


def test_a_stored_secret_may_not_be_replaced_by_another(older: None, operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid):
        entries.change(operator, "toolkit", "pushing", {"members": [member(options("sk-" + "z9" * 12))]})

    entries.change(operator, "toolkit", "pushing", {"members": [member(options("${KEY}"))]})

    assert kept() == options("${KEY}")


def test_an_export_imports_again_and_keeps_the_stored_secret(older: None, operator: writing.Write) -> None:
    exported = belts.export()

    assert belts.check(exported) == []
    assert belts.preview(operator, exported).differences == ()

    toolkits = [dict(toolkit) for toolkit in exported["toolkits"]]
    next(toolkit for toolkit in toolkits if toolkit["key"] == "pushing")["title"] = "Pushed"
    belts.import_(operator, {"toolkits": toolkits})

    assert kept() == options()
    assert entries.read("toolkit", "pushing")["title"] == "Pushed"


def test_an_older_belt_with_the_secret_that_is_stored_imports(older: None, operator: writing.Write) -> None:
    belts.import_(operator, {"toolkits": [{"key": "pushing", "title": "T", "members": [member()]}]})

    assert kept() == options()


def test_a_withheld_option_without_a_stored_one_is_refused(operator: writing.Write) -> None:
    problems = belts.check({"toolkits": [{"key": "new", "members": [member(HELD)]}]})

    assert [problem.path for problem in problems] == [
        f"toolkits.new.members[0].{PLACE}",
        "toolkits.new.members[0].options.note[0]",
    ]
    assert all("withheld" in problem.message for problem in problems)


def test_a_secret_follows_a_renamed_tool(older: None, operator: writing.Write) -> None:
    assert renaming.carry_over(operator, {"git__push": "git__log"}) == []

    assert models.Member.objects.get(toolkit__key="pushing", tool__key="git__log").options == options()


def test_undoing_a_change_keeps_the_stored_secret(older: None, operator: writing.Write) -> None:
    change = entries.change(operator, "toolkit", "pushing", {"members": [member(HELD), "git__log"]})
    assert change.entry is not None

    undo.undo(operator, change.entry)

    assert kept() == options()


def test_undoing_a_removal_asks_for_the_secret_that_the_log_does_not_have(
    older: None, operator: writing.Write
) -> None:
    entries.put(operator, "toolkit", {"key": "gone", "members": ["git__log"]})
    models.Member.objects.filter(toolkit__key="gone").update(options=options())
    change = entries.remove(operator, "toolkit", "gone")
    assert change.entry is not None

    with pytest.raises(errors.Invalid, match="withheld"):
        undo.undo(operator, change.entry)


def test_a_copy_of_an_agent_does_not_copy_its_secret(older: None, operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid, match="withheld"):
        agents.duplicate(operator, "ada", "ada2")


def test_calls_still_get_the_stored_secret(older: None) -> None:
    [always] = snapshots.find("ada", None).agent.tools

    assert always.options == options()


def test_a_secret_in_an_adopted_file_is_left_out(operator: writing.Write) -> None:
    tools = [{"clock": {"apiKey": SECRET, "depth": 3}}]
    adopted = adopting.convert({"agents": {"bob": {"tools": tools}}, "toolkits": {}})

    assert SECRET not in json.dumps(adopted.belt)
    belts.import_(operator, adopted.belt)


def test_doctor_names_the_tools_whose_options_hold_a_secret(older: None) -> None:
    [finding] = doctor.examine()

    assert (finding.code, finding.level) == ("secret-in-options", "note")
    assert "git__push in the toolkit pushing" in finding.message
    assert "clock of the agent ada" in finding.message
    assert SECRET not in finding.message


def test_doctor_has_nothing_to_say_about_references(operator: writing.Write) -> None:
    entries.create(operator, "toolkit", {"key": "new", "members": [member({"apiKey": "${KEY}"})]})

    assert [*doctor.examine()] == []


def test_a_connection_that_newer_rules_refuse_does_not_prevent_an_import(operator: writing.Write) -> None:
    connection = {"headers": {"X-Api-Key": "opensesame"}, "url": "https://y.example/mcp"}
    models.Plugin.objects.filter(name="git").update(upstream=connection)
    refused = belts.check({"plugins": [{"name": "new", "upstream": connection}]})
    assert [problem.path for problem in refused] == ["plugins.new.upstream.headers.X-Api-Key"]

    belts.import_(operator, {"agents": [{"key": "new"}]})
    belts.import_(operator, {"plugins": [{**entries.read("plugin", "git"), "active": False}]})

    assert entries.read("plugin", "git")["active"] is False
