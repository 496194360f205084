"""Tests that an operator can set switches and overrides in the agent's form."""

from __future__ import annotations

import datetime as dt
import unittest.mock
from typing import Any

import pytest
from django.utils import formats, timezone

from tests.admin import conftest
from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.access import switches
from toolbelt.core import grants
from toolbelt.runtime import surfaces
from toolbelt.store import clock, snapshots

OTHER = writing.by("paul", via="screen")
ME = writing.by("olga", via="admin")


def active(agent: str) -> set[str]:
    return set(surfaces.ask(agent).resolution.active)


def flip(page: Any, toolkit: str, on: bool) -> Any:
    number = page.number("switches", "toolkit", conftest.toolkit(toolkit))
    return page.change("switches", number, on=on)


def test_undoing_a_flip_restores_the_tools(open_form):
    before = active("ada")
    flip(open_form(conftest.agent("ada")), "dev", False).send()
    assert active("ada") != before
    undo.undo(ME, conftest.last_entries()[0].pk)
    assert active("ada") == before


def test_removing_a_line_clears_its_override(open_form):
    page = open_form(conftest.agent("ada"))
    page = page.remove("overrides", page.number("overrides", "tool", conftest.tool("crm__find"))).send()
    assert page.was_saved
    assert active("ada") == {"clock", "git__status", "git__commit"}
    assert conftest.last_entries()[0].action == "override.clear"


def test_changing_the_tool_of_a_line_moves_the_override(open_form):
    page = open_form(conftest.agent("ada"))
    number = page.number("overrides", "tool", conftest.tool("crm__find"))
    assert page.change("overrides", number, tool=conftest.tool("git__status")).send().was_saved
    recorded = {(entry.action, entry.key) for entry in conftest.last_entries(2)}
    assert recorded == {("override.clear", "crm__find"), ("override.set", "git__status")}


def test_all_changes_of_one_form_share_a_batch(open_form):
    page = flip(open_form(conftest.agent("ada")), "dev", False).type(title="Ada L.")
    assert page.line("overrides", tool=conftest.tool("clock"), on=False).send().was_saved
    entries = conftest.last_entries(3)
    assert {entry.action for entry in entries} == {"switch.set", "agent.change", "override.set"}
    assert len({entry.batch for entry in entries}) == 1
    assert entries[0].batch is not None


def test_sending_an_unchanged_form_writes_nothing(open_form):
    number = models.AuditEntry.objects.count()
    revision = models.Revision.objects.get().number
    assert open_form(conftest.agent("ada")).send().was_saved
    assert models.AuditEntry.objects.count() == number
    assert models.Revision.objects.get().number == revision


def test_a_stale_flip_is_refused_at_its_line_and_nothing_is_written(open_form):
    page = flip(open_form(conftest.agent("ada")), "dev", False).type(title="Ada L.")
    switches.flip(OTHER, "ada", "dev", None)
    page = page.send()
    assert not page.was_saved
    assert "you saw on, it is not set now" in page.errors["switches-0-on"][0]
    assert conftest.agent("ada").title == "Ada"
    assert conftest.last_entries()[0].actor == "paul"


def test_a_stale_form_keeps_its_input_and_is_saved_when_sent_again(open_form):
    page = flip(open_form(conftest.agent("ada")), "dev", False).type(title="Ada L.")
    switches.flip(OTHER, "ada", "dev", None)
    page = page.send()
    assert page.fields["title"] == ["Ada L."]
    assert page.fields["switches-0-on"] == ["False"]
    assert page.send().was_saved
    assert conftest.agent("ada").title == "Ada L."
    assert not models.ToolkitSwitch.objects.get(agent__key="ada", toolkit__key="dev").on


def test_the_same_flip_by_another_operator_is_not_a_conflict(open_form):
    page = flip(open_form(conftest.agent("ada")), "dev", False).type(title="Ada L.")
    switches.flip(OTHER, "ada", "dev", False)
    assert page.send().was_saved
    assert conftest.agent("ada").title == "Ada L."


def test_removing_an_already_removed_line_is_not_a_conflict(open_form):
    page = open_form(conftest.agent("ada"))
    page.remove("switches", page.number("switches", "toolkit", conftest.toolkit("dev")))
    switches.flip(OTHER, "ada", "dev", None)
    assert page.send().was_saved


def test_a_stale_removal_is_refused_with_an_error_at_the_table(open_form):
    page = open_form(conftest.agent("ada"))
    page.remove("switches", page.number("switches", "toolkit", conftest.toolkit("dev")))
    switches.flip(OTHER, "ada", "dev", False)
    page = page.send()
    assert "you saw on, it is off now" in page.errors["switches"][0]
    assert page.send().was_saved
    assert not models.ToolkitSwitch.objects.filter(agent__key="ada").exists()


def test_a_confirmation_only_applies_to_the_changes_that_were_shown(open_form):
    page = flip(open_form(conftest.agent("cyd")), "dev", False).send().tick("confirm")
    page = page.line("switches", toolkit=conftest.toolkit("sales"), on=True).send()
    assert not page.was_saved
    assert any("sales on" in message for message in page.errors["confirm"])
    assert models.ToolkitSwitch.objects.get(agent__key="cyd").on
    assert page.tick("confirm").send().was_saved


def test_all_flips_of_one_form_are_confirmed_once_with_their_combined_effect(open_form):
    page = flip(open_form(conftest.agent("cyd")), "dev", False)
    page = page.line("overrides", tool=conftest.tool("git__wipe"), on=True).send()
    [message] = page.errors["confirm"]
    assert "dev off, git__wipe on: " in message
    assert "Adds: git__wipe." in message
    assert "Removes: git__commit, git__status." in message
    assert page.tick("confirm").send().was_saved
    assert active("cyd") == {"git__wipe"}


def test_the_confirmation_is_not_offered_before_it_is_needed(open_form):
    assert "confirm" not in open_form(conftest.agent("cyd")).boxes


def test_conflicting_options_are_refused_at_the_line_of_the_switch(open_form):
    page = open_form(conftest.agent("ada"))
    page.line("tools", tool=conftest.tool("git__commit"), options='{"sign": false}')
    page = page.send()
    assert not page.was_saved
    assert "git__commit" in page.errors["switches-0-on"][0]
    assert conftest.agent("ada").tools.count() == 1


def test_turning_a_switch_off_in_the_same_form_avoids_an_options_conflict(open_form):
    page = flip(open_form(conftest.agent("ada")), "dev", False)
    page.line("tools", tool=conftest.tool("git__commit"), options='{"sign": false}')
    assert page.send().was_saved


def test_a_toolkit_in_two_lines_is_refused(open_form):
    page = open_form(conftest.agent("ada")).line("switches", toolkit=conftest.toolkit("dev"), on=False).send()
    assert page.errors["switches-1-toolkit"] == ["'dev' is listed twice: remove one."]


@pytest.mark.parametrize("number", ["999999", "nonsense", "9" * 40])
def test_a_line_with_an_unknown_tool_is_refused(open_form, number):
    page = open_form(conftest.agent("ada")).line("overrides", tool=number, on=True).send()
    assert page.errors["overrides-2-tool"] == ["This entry no longer exists: choose another one."]


def end_in(hours: int = 2) -> dt.datetime:
    """Return the time in this many hours, to the second."""
    return timezone.now().replace(microsecond=0) + dt.timedelta(hours=hours)


def end_fields(moment: dt.datetime) -> dict[str, str]:
    """Return the values of the two fields of an end."""
    local = timezone.localtime(moment)
    return {"ends_0": f"{local:%Y-%m-%d}", "ends_1": f"{local:%H:%M:%S}"}


def ends(agent: str) -> dict[str, dt.datetime]:
    return {key: end.at for key, end in snapshots.find(agent, None).agent.ends.items()}


def test_a_new_line_can_set_a_switch_with_an_end(open_form):
    at = end_in()
    page = open_form(conftest.agent("ada"))
    assert (
        page.line("switches", toolkit=conftest.toolkit("sales"), on=True, **end_fields(at)).send().was_saved
    )
    assert ends("ada") == {"sales": at}
    [entry] = conftest.last_entries()
    assert entry.after == {"on": True, "ends": grants.format_time(at), "then": None}
    with clock.stopped(at):
        assert "sales" not in snapshots.find("ada", None).agent.switches


def test_a_new_agent_can_have_an_override_with_an_end(open_form):
    at = end_in()
    page = (
        open_form(models.Agent)
        .type(key="dee")
        .line("overrides", tool=conftest.tool("clock"), on=True, **end_fields(at))
    )
    assert page.send().was_saved
    assert ends("dee") == {"clock": at}


def test_a_new_agent_cannot_have_an_end_in_the_past(open_form):
    page = open_form(models.Agent).type(key="dee")
    page = page.line("overrides", tool=conftest.tool("clock"), on=True, **end_fields(end_in(-1))).send()
    assert "is in the past" in page.errors["overrides-0-ends"][0]
    assert not models.Agent.objects.filter(key="dee").exists()


def test_an_end_is_shown_and_kept_when_another_field_is_edited(open_form, client):
    at = end_in()
    switches.override(OTHER, "ada", "clock", False, ends=at)
    page = open_form(conftest.agent("ada"))
    number = page.number("overrides", "tool", conftest.tool("clock"))
    assert page.fields[f"overrides-{number}-ends_1"] == [f"{timezone.localtime(at):%H:%M:%S}"]
    assert page.type(title="Ada L.").send().was_saved
    assert ends("ada") == {"clock": at}
    listed = client.get(conftest.address(models.Agent, "changelist")).content.decode()
    assert formats.date_format(timezone.localtime(at), "DATETIME_FORMAT") in listed


def test_clearing_an_end_makes_the_override_permanent(open_form):
    switches.override(OTHER, "ada", "clock", False, ends=end_in())
    page = open_form(conftest.agent("ada"))
    number = page.number("overrides", "tool", conftest.tool("clock"))
    assert page.change("overrides", number, ends_0="", ends_1="").send().was_saved
    assert ends("ada") == {}
    assert snapshots.find("ada", None).agent.overrides["clock"] is False


def test_an_end_in_the_past_is_refused_at_its_line(open_form):
    page = open_form(conftest.agent("ada"))
    page = page.line("switches", toolkit=conftest.toolkit("sales"), on=True, **end_fields(end_in(-1))).send()
    assert not page.was_saved
    line = page.html.index("is in the past")
    assert page.html.rindex('class="form-row', 0, line) > page.html.index('id="switches-0"'), "at its line"
    assert "field-ends" in page.html[line - 400 : line]
    assert ends("ada") == {}


def test_an_unrecorded_expiry_is_shown_and_not_reverted_by_saving(open_form):
    """Saving another field must not turn the switch on permanently."""
    at = end_in()
    switches.flip(OTHER, "ada", "sales", True, ends=at)
    switches.flip(OTHER, "bob", "sales", True, ends=at)
    with clock.stopped(at), unittest.mock.patch.object(timezone, "now", return_value=at):
        ada, bob = open_form(conftest.agent("ada")), open_form(conftest.agent("bob"))
        with pytest.raises(AssertionError, match="no line"):
            ada.number("switches", "toolkit", conftest.toolkit("sales"))
        number = bob.number("switches", "toolkit", conftest.toolkit("sales"))
        assert bob.fields[f"switches-{number}-on"] == ["False"]
        for page in (ada, bob):
            assert page.type(title="Seen").send().was_saved
        assert snapshots.find("ada", None).agent.switches == {"dev": True}
        assert snapshots.find("bob", None).agent.switches["sales"] is False


def test_an_end_set_by_another_operator_meanwhile_is_a_conflict(open_form):
    page = flip(open_form(conftest.agent("ada")), "dev", False)
    switches.flip(OTHER.replace(confirm=True), "ada", "dev", False, ends=end_in())
    page = page.send()
    assert not page.was_saved
    assert "was changed by another operator" in page.html


def test_an_end_changed_by_another_operator_meanwhile_is_a_conflict(open_form):
    switches.override(OTHER, "ada", "clock", False, ends=end_in())
    page = open_form(conftest.agent("ada"))
    switches.override(OTHER, "ada", "clock", False, ends=end_in(3))
    page = page.change("overrides", page.number("overrides", "tool", conftest.tool("clock")), on=True).send()
    assert not page.was_saved
    assert "was changed by another operator" in page.html
