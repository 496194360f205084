"""An operator edits each kind of thing through its form: it is in the audit, and the next question shows it."""

from __future__ import annotations

import pytest
from django.contrib.admin import models as admin_log

from tests.admin import conftest
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.core import surface
from toolbelt.runtime import surfaces

OTHER = writing.by("paul", via="screen")


def asked(agent: str = "ada") -> surface.Surface:
    return surfaces.ask(agent)


def active(agent: str = "ada") -> set[str]:
    return set(asked(agent).resolution.active)


def audited(action: str, key: str) -> models.AuditEntry:
    """Return the newest entry of the audit, which tells of this."""
    [entry] = conftest.last_entries()
    assert (entry.actor, entry.via, entry.action, entry.subject_key) == ("olga", "admin", action, key)
    return entry


def test_a_toolkits_policy(opened):
    page = opened(conftest.toolkit("dev")).type(policy="Ask first.\r\nThen {active_tools}.")
    assert page.send().was_saved
    assert "Ask first.\nThen git__status, git__commit." in asked().policy.text
    entry = audited("toolkit.change", "dev")
    assert entry.after == {"policy": "Ask first.\nThen {active_tools}."}


def test_a_form_that_is_sent_as_it_was_loaded_changes_no_byte(opened):
    before = asked().fingerprint
    for subject in (conftest.toolkit("dev"), conftest.tool("git__status"), conftest.agent("ada")):
        page = opened(subject).send()
        assert page.was_saved, page.errors
    assert not models.AuditEntry.objects.filter(actor="olga").exists()
    assert asked().fingerprint == before


def test_a_toolkits_members_with_their_options_and_order(opened):
    kept = models.Member.objects.get(tool__key="git__status").pk
    page = opened(conftest.toolkit("dev")).line(
        "members", position=0, tool=conftest.tool("git__wipe"), options="{}"
    )
    page.change("members", 0, position=7).remove("members", 1)
    assert page.send().was_saved
    assert [member.tool.key for member in conftest.toolkit("dev").members.all()] == [
        "git__wipe",
        "git__status",
    ]
    assert models.Member.objects.get(tool__key="git__status").pk == kept
    assert active() == {"clock", "crm__find", "git__wipe", "git__status"}
    audited("toolkit.change", "dev")


def test_lines_without_a_number_go_last_in_the_order_in_which_they_stand(opened):
    page = opened(conftest.toolkit("time"))
    page.line("members", tool=conftest.tool("git__wipe")).line("members", tool=conftest.tool("crm__find"))
    assert page.send().was_saved
    keys = [member.tool.key for member in conftest.toolkit("time").members.all()]
    assert keys == ["clock", "git__wipe", "crm__find"]


def test_a_tool(opened):
    page = opened(conftest.tool("clock")).type(description="Tells what time it is.")
    page.type(input_schema='{"type": "object", "properties": {"zone": {"type": "string"}}}')
    assert page.send().was_saved
    entry = audited("tool.change", "clock")
    assert set(entry.after) == {"description", "input_schema"}
    [shown] = [tool for tool in asked().tools if tool.name == "clock"]
    assert shown.description == "Tells what time it is."
    assert "zone" in shown.input_schema["properties"]
    assert shown.tokens == conftest.tool("clock").tokens > 0


def test_a_plugin_that_is_switched_off(opened):
    assert opened(models.Plugin.objects.get(name="git")).untick("active").send().was_saved
    assert active() == {"clock", "crm__find"}
    assert audited("plugin.change", "git").after == {"active": False}


def test_a_toolkit_that_would_push_an_agent_above_a_budget_that_refuses(opened):
    models.Agent.objects.filter(key="ada").update(max_tools=4, on_exceed="refuse")
    page = opened(conftest.toolkit("dev"))
    page = page.line("members", tool=conftest.tool("git__wipe")).send()
    assert not page.was_saved
    assert "The budget of ada is 4 tools; this would make 5 tools" in page.errors[""][-1]
    assert "git__wipe" not in active()


def test_a_loadout(opened):
    opened(conftest.agent("bob")).type(loadout="house").send()
    page = opened(models.Loadout.objects.get(name="house")).type(categories="crm\r\n git \r\n\r\n")
    assert page.send().was_saved
    assert models.Loadout.objects.get(name="house").categories == ["crm", "git"]
    assert "git__wipe" in active("bob")
    audited("loadout.change", "house")


def test_a_sub_app_and_what_it_binds_to_whom(opened):
    page = opened(models.SubApp.objects.get(key="desk"))
    page.line("bound_tools", tool=conftest.tool("git__wipe"))
    page.line("embedded_agents", agent=conftest.agent("ada"))
    assert page.send().was_saved
    assert "git__wipe" in active("ada")
    entry = audited("sub_app.change", "desk")
    assert entry.after == {"tool_names": ["crm__find", "git__wipe"], "agents": ["bob", "ada"]}


def test_an_agents_own_tools_toolkits_loadout_and_budget(opened):
    page = opened(conftest.agent("ada")).type(loadout="house", max_tools=9, on_exceed="refuse")
    page.type(session_loadouts="minimal\nhouse").tick("subagent_kinds")
    page.line("tools", tool=conftest.tool("git__wipe"), options='{"deep": 1}')
    page.line("allowed_toolkits", toolkit=conftest.toolkit("time")).tick_cell(
        "allowed_toolkits", 1, "initial"
    )
    page = page.send().tick("confirm").send()
    assert page.was_saved, page.errors
    entry = audited("agent.change", "ada")
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


def test_an_edit_that_brings_a_destructive_tool_is_confirmed_as_it_was_shown(opened):
    page = opened(conftest.agent("ada")).type(title="Ada L.")
    page = page.line("tools", tool=conftest.tool("git__wipe")).send()
    [said] = page.errors["confirm"]
    assert said.startswith("title, tools: ")
    assert "Adds: git__wipe." in said
    # Another title is another edit: what was shown is not what would be done now.
    page = page.tick("confirm").type(title="Ada Lovelace").send()
    assert not page.was_saved
    assert "git__wipe" not in active()
    assert page.tick("confirm").send().was_saved
    assert "git__wipe" in active()


@pytest.mark.parametrize(
    ("model", "typed", "action", "name"),
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
def test_something_new(opened, model, typed, action, name):
    page = opened(model).type(**typed, reason="needed").send()
    assert page.was_saved, page.errors
    entry = audited(action, name)
    assert entry.before is None
    assert entry.reason == "needed"
    assert model.objects.get_by_natural_key(name)


def test_a_new_agent_with_all_its_lines_is_one_entry(opened):
    page = opened(models.Agent).type(key="eve")
    page.line("switches", toolkit=conftest.toolkit("sales"), on=True)
    page.line("overrides", tool=conftest.tool("clock"), on=True)
    page.line("allowed_toolkits", toolkit=conftest.toolkit("time"))
    assert page.send().was_saved
    assert audited("agent.create", "eve").after == {
        "key": "eve",
        "tools_config": {"clock": True, "sales": True},
        "allowed_toolkits": ["time"],
    }
    assert active("eve") == {"crm__find", "crm__note", "clock"}


def test_what_others_change_meanwhile_is_kept(opened):
    page = opened(conftest.toolkit("dev")).type(title="Code")
    entries.change(OTHER, "toolkit", "dev", {"policy": "New.", "members": ["git__wipe"]})
    assert page.send().was_saved
    dev = conftest.toolkit("dev")
    assert (dev.title, dev.policy) == ("Code", "New.")
    assert [member.tool.key for member in dev.members.all()] == ["git__wipe"]


def test_an_agents_entry_and_its_switches_are_kept_apart(opened):
    page = opened(conftest.agent("ada")).type(title="Ada L.")
    switches.flip(OTHER, "ada", "dev", False)
    assert page.send().was_saved
    assert not models.ToolkitSwitch.objects.get(agent__key="ada").on
    assert audited("agent.change", "ada").after == {"title": "Ada L."}


def test_a_key_that_somebody_else_changed_is_refused_at_its_field(opened):
    page = opened(conftest.toolkit("dev")).type(policy="Mine.", title="Code")
    entries.change(OTHER, "toolkit", "dev", {"policy": "Theirs."})
    page = page.send()
    assert "you saw Work with {active_tools}. Commit often., it is Theirs. now" in page.errors["policy"][0]
    assert conftest.toolkit("dev").title == "Development"
    assert page.send().was_saved
    assert (conftest.toolkit("dev").policy, conftest.toolkit("dev").title) == ("Mine.", "Code")


def test_members_that_somebody_else_changed_are_refused_over_their_table(opened):
    page = opened(conftest.toolkit("dev")).line("members", tool=conftest.tool("git__wipe"))
    entries.change(OTHER, "toolkit", "dev", {"members": ["git__status"]})
    page = page.send()
    assert "members of dev was changed by another operator" in page.errors["members"][0]
    assert page.send().was_saved
    assert conftest.toolkit("dev").members.count() == 3


def test_a_form_that_carries_nothing_of_what_was_seen_is_taken_as_up_to_date(opened):
    page = opened(conftest.toolkit("dev")).type(title="Code")
    del page.fields["as_loaded"]
    assert page.send().was_saved
    assert audited("toolkit.change", "dev").after == {"title": "Code"}


def test_the_admins_own_log_names_the_keys(opened, client):
    opened(conftest.toolkit("dev")).type(title="Code", policy="Short.").send()
    assert admin_log.LogEntry.objects.get().get_change_message() == "Changed title and policy."
