"""Tests that an edit of each kind of row through its form is audited, and changes the next surface."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.admin import models as admin_log
from django.utils import timezone

from tests.admin import conftest
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.core import surface
from toolbelt.runtime import surfaces

UNTIL = dt.datetime(2031, 5, 4, 14, tzinfo=dt.UTC)
OTHER = writing.by("paul", via="screen")


def ask(agent: str = "ada") -> surface.Surface:
    return surfaces.ask(agent)


def active(agent: str = "ada") -> set[str]:
    return set(ask(agent).resolution.active)


def last_entry(action: str, key: str) -> models.AuditEntry:
    """Return the newest audit entry, and check that it records this action."""
    [entry] = conftest.last_entries()
    assert (entry.actor, entry.via, entry.action, entry.subject_key) == ("olga", "admin", action, key)
    return entry


def test_editing_a_toolkits_policy_changes_the_surface(open_form):
    page = open_form(conftest.toolkit("dev")).type(policy="Ask first.\r\nThen {active_tools}.")
    assert page.send().was_saved
    assert "Ask first.\nThen git__status, git__commit." in ask().policy.text
    entry = last_entry("toolkit.change", "dev")
    assert entry.after == {"policy": "Ask first.\nThen {active_tools}."}


def test_sending_an_unchanged_form_changes_nothing(open_form):
    before = ask().fingerprint
    for subject in (conftest.toolkit("dev"), conftest.tool("git__status"), conftest.agent("ada")):
        page = open_form(subject).send()
        assert page.was_saved, page.errors
    assert not models.AuditEntry.objects.filter(actor="olga").exists()
    assert ask().fingerprint == before


def test_a_secret_that_an_older_version_stored_in_options_is_not_shown_and_kept(open_form):
    member = models.Member.objects.filter(tool__key="git__commit")
    member.update(options={"apiKey": "opensesame"})
    page = open_form(conftest.toolkit("dev"))
    assert "opensesame" not in str(page.fields)
    assert page.type(title="Development").send().was_saved
    page = open_form(conftest.toolkit("dev")).line("members", tool=conftest.tool("git__wipe"))
    assert page.send().was_saved
    assert member.get().options == {"apiKey": "opensesame"}


def test_editing_a_toolkits_members_keeps_options_and_applies_the_order(open_form):
    member_id = models.Member.objects.get(tool__key="git__status").pk
    page = open_form(conftest.toolkit("dev")).line(
        "members", position=0, tool=conftest.tool("git__wipe"), options="{}"
    )
    page.change("members", 0, position=7).remove("members", 1)
    assert page.send().was_saved
    assert [member.tool.key for member in conftest.toolkit("dev").members.all()] == [
        "git__wipe",
        "git__status",
    ]
    assert models.Member.objects.get(tool__key="git__status").pk == member_id
    assert active() == {"clock", "crm__find", "git__wipe", "git__status"}
    last_entry("toolkit.change", "dev")


def test_lines_without_a_position_are_added_last_in_their_order(open_form):
    page = open_form(conftest.toolkit("time"))
    page.line("members", tool=conftest.tool("git__wipe")).line("members", tool=conftest.tool("crm__find"))
    assert page.send().was_saved
    keys = [member.tool.key for member in conftest.toolkit("time").members.all()]
    assert keys == ["clock", "git__wipe", "crm__find"]


def test_editing_a_tool_changes_its_definition_and_token_count(open_form):
    page = open_form(conftest.tool("clock")).type(description="Tells what time it is.")
    page.type(input_schema='{"type": "object", "properties": {"zone": {"type": "string"}}}')
    assert page.send().was_saved
    entry = last_entry("tool.change", "clock")
    assert set(entry.after) == {"description", "input_schema"}
    [shown] = [tool for tool in ask().tools if tool.name == "clock"]
    assert shown.description == "Tells what time it is."
    assert "zone" in shown.input_schema["properties"]
    assert shown.tokens == conftest.tool("clock").tokens > 0


def test_turning_off_a_plugin_removes_its_tools(open_form):
    assert open_form(models.Plugin.objects.get(name="git")).untick("active").send().was_saved
    assert active() == {"clock", "crm__find"}
    assert last_entry("plugin.change", "git").after == {"active": False}


@pytest.mark.parametrize("name", ["tool", "toolkit", "plugin"])
def test_a_block_is_set_with_its_end_and_a_later_edit_keeps_it(open_form, name):
    subjects: dict[str, Any] = {
        "tool": conftest.tool("git__status"),
        "toolkit": conftest.toolkit("dev"),
        "plugin": models.Plugin.objects.get(name="git"),
    }
    subject = subjects[name]
    page = open_form(subject).tick("blocked").type(block_ends_0="2031-05-04", block_ends_1="14:00:00")
    assert page.send().was_saved
    assert "git__status" not in active()
    [entry] = conftest.last_entries()
    assert entry.after == {"blocked": True, "block_ends": "2031-05-04T14:00:00Z"}
    assert open_form(subject).type(title="Later").send().was_saved
    subject.refresh_from_db()
    assert (subject.blocked, subject.block_ends) == (True, UNTIL)
    assert open_form(subject).untick("blocked").send().was_saved
    subject.refresh_from_db()
    assert (subject.blocked, subject.block_ends) == (False, None)


def test_an_end_without_a_block_or_in_the_past_is_refused_at_its_field(open_form):
    for blocked, day in ((False, "2031-05-04"), (True, "2021-05-04")):
        page = open_form(conftest.toolkit("dev")).type(block_ends_0=day, block_ends_1="14:00:00")
        page = (page.tick("blocked") if blocked else page).send()
        assert not page.was_saved
        assert page.errors["block_ends"]
    assert "git__status" in active()


def test_an_edit_after_the_end_of_a_block_does_not_block_again(open_form):
    ended = timezone.now() - dt.timedelta(seconds=1)
    models.Toolkit.objects.filter(key="dev").update(blocked=True, block_ends=ended)
    page = open_form(conftest.toolkit("dev")).type(title="Dev tools")
    assert (page.fields.get("blocked"), page.fields["block_ends_0"]) == (None, [""])
    assert page.send().was_saved
    assert last_entry("toolkit.change", "dev").after == {"title": "Dev tools"}
    assert "git__status" in active()


def test_a_toolkit_edit_that_exceeds_a_refusing_budget_is_refused(open_form):
    models.Agent.objects.filter(key="ada").update(max_tools=4, on_exceed="refuse")
    page = open_form(conftest.toolkit("dev"))
    page = page.line("members", tool=conftest.tool("git__wipe")).send()
    assert not page.was_saved
    assert "The budget of ada is 4 tools; this change would result in 5 tools" in page.errors[""][-1]
    assert "git__wipe" not in active()


def test_editing_a_loadout_changes_its_agents_tools(open_form):
    open_form(conftest.agent("bob")).type(loadout="house").send()
    page = open_form(models.Loadout.objects.get(name="house")).type(categories="crm\r\n git \r\n\r\n")
    assert page.send().was_saved
    assert models.Loadout.objects.get(name="house").categories == ["crm", "git"]
    assert "git__wipe" in active("bob")
    last_entry("loadout.change", "house")


def test_editing_a_sub_app_changes_the_tools_of_its_agents(open_form):
    page = open_form(models.SubApp.objects.get(key="desk"))
    page.line("bound_tools", tool=conftest.tool("git__wipe"))
    page.line("embedded_agents", agent=conftest.agent("ada"))
    assert page.send().was_saved
    assert "git__wipe" in active("ada")
    entry = last_entry("sub_app.change", "desk")
    assert entry.after == {"tool_names": ["crm__find", "git__wipe"], "agents": ["bob", "ada"]}


def test_editing_an_agent_changes_its_tools_toolkits_loadout_and_budget(open_form):
    page = open_form(conftest.agent("ada")).type(loadout="house", max_tools=9, on_exceed="refuse")
    page.type(session_loadouts="minimal\nhouse").tick("subagent_kinds")
    page.line("tools", tool=conftest.tool("git__wipe"), options='{"deep": 1}')
    page.line("allowed_toolkits", toolkit=conftest.toolkit("time")).tick_cell(
        "allowed_toolkits", 1, "initial"
    )
    page = page.send().tick("confirm").send()
    assert page.was_saved, page.errors
    entry = last_entry("agent.change", "ada")
    assert entry.after == {
        "loadout": "house",
        "tools": ["clock", {"tool": "git__wipe", "options": {"deep": 1}}],
        "allowed_toolkits": ["sales", "time"],
        "initial_toolkits": ["time"],
        "budget": {"max_tools": 9, "on_exceed": "refuse"},
        "session_loadouts": ["minimal", "house"],
        "subagent_kinds": ["explore"],
    }
    assert {"git__wipe", "clock"} <= active()


def test_an_edit_that_adds_a_destructive_tool_must_be_confirmed_as_shown(open_form):
    page = open_form(conftest.agent("ada")).type(title="Ada L.", session_loadouts="full")
    page = page.line("tools", tool=conftest.tool("git__wipe")).send()
    [message] = page.errors["confirm"]
    assert message.startswith("session loadouts, title, tools: ")
    assert "Adds: git__wipe." in message
    # Another title is another edit, so the confirmation no longer applies.
    page = page.tick("confirm").type(title="Ada Lovelace").send()
    assert not page.was_saved
    assert "git__wipe" not in active()
    assert page.tick("confirm").send().was_saved
    assert "git__wipe" in active()


@pytest.mark.parametrize(
    ("model", "fields", "action", "name"),
    [
        (models.Category, {"name": "legal"}, "category.create", "legal"),
        (models.Plugin, {"name": "web", "namespace": "web", "category": "web"}, "plugin.create", "web"),
        (models.Tool, {"key": "think", "description": "Thinks."}, "tool.create", "think"),
        (models.Toolkit, {"key": "ops", "title": "Operations"}, "toolkit.create", "ops"),
        (models.Loadout, {"name": "night", "parent": "minimal"}, "loadout.create", "night"),
        (models.SubApp, {"key": "kiosk"}, "sub_app.create", "kiosk"),
        (models.Agent, {"key": "eve", "kind": "plan"}, "agent.create", "eve"),
    ],
)
def test_a_new_row_is_created_and_audited(open_form, model, fields, action, name):
    page = open_form(model).type(**fields, reason="needed").send()
    assert page.was_saved, page.errors
    entry = last_entry(action, name)
    assert entry.before is None
    assert entry.reason == "needed"
    assert model.objects.get_by_natural_key(name)


def test_creating_an_agent_with_its_lines_is_one_audit_entry(open_form):
    page = open_form(models.Agent).type(key="eve")
    page.line("switches", toolkit=conftest.toolkit("sales"), on=True)
    page.line("overrides", tool=conftest.tool("clock"), on=True)
    page.line("allowed_toolkits", toolkit=conftest.toolkit("time"))
    assert page.send().was_saved
    assert last_entry("agent.create", "eve").after == {
        "key": "eve",
        "tools_config": {"clock": True, "sales": True},
        "allowed_toolkits": ["time"],
    }
    assert active("eve") == {"crm__find", "crm__note", "clock"}


def test_concurrent_changes_of_other_fields_are_kept(open_form):
    page = open_form(conftest.toolkit("dev")).type(title="Code")
    entries.change(OTHER, "toolkit", "dev", {"policy": "New.", "members": ["git__wipe"]})
    assert page.send().was_saved
    dev = conftest.toolkit("dev")
    assert (dev.title, dev.policy) == ("Code", "New.")
    assert [member.tool.key for member in dev.members.all()] == ["git__wipe"]


def test_editing_an_agent_keeps_a_concurrent_flip(open_form):
    page = open_form(conftest.agent("ada")).type(title="Ada L.")
    switches.flip(OTHER, "ada", "dev", False)
    assert page.send().was_saved
    assert not models.ToolkitSwitch.objects.get(agent__key="ada").on
    assert last_entry("agent.change", "ada").after == {"title": "Ada L."}


def test_a_stale_field_is_refused_with_an_error_at_the_field(open_form):
    page = open_form(conftest.toolkit("dev")).type(policy="Mine.", title="Code")
    entries.change(OTHER, "toolkit", "dev", {"policy": "Theirs."})
    page = page.send()
    assert "you saw Work with {active_tools}. Commit often., it is Theirs. now" in page.errors["policy"][0]
    assert conftest.toolkit("dev").title == "Development"
    assert page.send().was_saved
    assert (conftest.toolkit("dev").policy, conftest.toolkit("dev").title) == ("Mine.", "Code")


def test_stale_members_are_refused_with_an_error_at_their_table(open_form):
    page = open_form(conftest.toolkit("dev")).line("members", tool=conftest.tool("git__wipe"))
    entries.change(OTHER, "toolkit", "dev", {"members": ["git__status"]})
    page = page.send()
    assert "members of dev was changed by another operator" in page.errors["members"][0]
    assert page.send().was_saved
    assert conftest.toolkit("dev").members.count() == 3


def test_a_form_without_the_loaded_values_is_accepted(open_form):
    page = open_form(conftest.toolkit("dev")).type(title="Code")
    del page.fields["as_loaded"]
    assert page.send().was_saved
    assert last_entry("toolkit.change", "dev").after == {"title": "Code"}


def test_the_admins_own_log_names_the_changed_fields(open_form, client):
    open_form(conftest.toolkit("dev")).type(title="Code", policy="Short.").send()
    assert admin_log.LogEntry.objects.get().get_change_message() == "Changed title and policy."


def test_a_confirmation_names_what_does_not_exist_without_paths_of_files(open_form):
    page = open_form(models.Loadout.objects.get(name="house")).type(disabled="gti").send()
    [message] = page.errors["confirm"]
    assert message.startswith("disabled: ")
    assert "'gti'" in message
    assert "loadouts.house" not in message
    assert page.tick("confirm").send().was_saved
