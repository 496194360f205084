"""An operator flips switches and overrides in the agent's form."""

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


def flipped(page: Any, toolkit: str, on: bool) -> Any:
    number = page.number("switches", "toolkit", conftest.toolkit(toolkit))
    return page.change("switches", number, on=on)


def test_undoing_the_entry_brings_the_tools_back(opened):
    before = active("ada")
    flipped(opened(conftest.agent("ada")), "dev", False).send()
    assert active("ada") != before
    undo.undo(ME, conftest.last_entries()[0].pk)
    assert active("ada") == before


def test_a_line_taken_out_clears_its_override(opened):
    page = opened(conftest.agent("ada"))
    page = page.remove("overrides", page.number("overrides", "tool", conftest.tool("crm__find"))).send()
    assert page.was_saved
    assert active("ada") == {"clock", "git__status", "git__commit"}
    assert conftest.last_entries()[0].action == "override.clear"


def test_a_line_that_names_another_tool_now_clears_the_one_and_sets_the_other(opened):
    page = opened(conftest.agent("ada"))
    number = page.number("overrides", "tool", conftest.tool("crm__find"))
    assert page.change("overrides", number, tool=conftest.tool("git__status")).send().was_saved
    said = {(entry.action, entry.key) for entry in conftest.last_entries(2)}
    assert said == {("override.clear", "crm__find"), ("override.set", "git__status")}


def test_everything_of_one_form_shares_a_batch(opened):
    page = flipped(opened(conftest.agent("ada")), "dev", False).type(title="Ada L.")
    assert page.line("overrides", tool=conftest.tool("clock"), on=False).send().was_saved
    entries = conftest.last_entries(3)
    assert {entry.action for entry in entries} == {"switch.set", "agent.change", "override.set"}
    assert len({entry.batch for entry in entries}) == 1
    assert entries[0].batch is not None


def test_what_is_not_touched_is_not_written(opened):
    number = models.AuditEntry.objects.count()
    revision = models.Revision.objects.get().number
    assert opened(conftest.agent("ada")).send().was_saved
    assert models.AuditEntry.objects.count() == number
    assert models.Revision.objects.get().number == revision


def test_a_stale_flip_is_refused_at_its_line_and_nothing_is_written(opened):
    page = flipped(opened(conftest.agent("ada")), "dev", False).type(title="Ada L.")
    switches.flip(OTHER, "ada", "dev", None)
    page = page.send()
    assert not page.was_saved
    assert "you saw on, it is not set now" in page.errors["switches-0-on"][0]
    assert conftest.agent("ada").title == "Ada"
    assert conftest.last_entries()[0].actor == "paul"


def test_what_was_typed_is_kept_when_a_form_is_stale_and_counts_when_it_is_sent_again(opened):
    page = flipped(opened(conftest.agent("ada")), "dev", False).type(title="Ada L.")
    switches.flip(OTHER, "ada", "dev", None)
    page = page.send()
    assert page.fields["title"] == ["Ada L."]
    assert page.fields["switches-0-on"] == ["False"]
    assert page.send().was_saved
    assert conftest.agent("ada").title == "Ada L."
    assert not models.ToolkitSwitch.objects.get(agent__key="ada", toolkit__key="dev").on


def test_a_flip_that_somebody_else_made_meanwhile_is_no_conflict(opened):
    page = flipped(opened(conftest.agent("ada")), "dev", False).type(title="Ada L.")
    switches.flip(OTHER, "ada", "dev", False)
    assert page.send().was_saved
    assert conftest.agent("ada").title == "Ada L."


def test_removing_a_line_that_is_gone_already_is_no_conflict(opened):
    page = opened(conftest.agent("ada"))
    page.remove("switches", page.number("switches", "toolkit", conftest.toolkit("dev")))
    switches.flip(OTHER, "ada", "dev", None)
    assert page.send().was_saved


def test_a_removed_line_that_is_stale_is_said_over_its_table(opened):
    page = opened(conftest.agent("ada"))
    page.remove("switches", page.number("switches", "toolkit", conftest.toolkit("dev")))
    switches.flip(OTHER, "ada", "dev", False)
    page = page.send()
    assert "you saw on, it is off now" in page.errors["switches"][0]
    assert page.send().was_saved
    assert not models.ToolkitSwitch.objects.filter(agent__key="ada").exists()


def test_a_confirmation_counts_for_what_was_shown_alone(opened):
    page = flipped(opened(conftest.agent("cyd")), "dev", False).send().tick("confirm")
    page = page.line("switches", toolkit=conftest.toolkit("sales"), on=True).send()
    assert not page.was_saved
    assert any("sales on" in said for said in page.errors["confirm"])
    assert models.ToolkitSwitch.objects.get(agent__key="cyd").on
    assert page.tick("confirm").send().was_saved


def test_flips_and_edits_of_one_form_are_confirmed_once_with_what_they_do_together(opened):
    page = flipped(opened(conftest.agent("cyd")), "dev", False)
    page = page.line("overrides", tool=conftest.tool("git__wipe"), on=True).send()
    [said] = page.errors["confirm"]
    assert "dev off, git__wipe on: " in said
    assert "Adds: git__wipe." in said
    assert "Removes: git__commit, git__status." in said
    assert page.tick("confirm").send().was_saved
    assert active("cyd") == {"git__wipe"}


def test_the_confirmation_is_not_there_before_it_is_needed(opened):
    assert "confirm" not in opened(conftest.agent("cyd")).boxes


def test_a_switch_that_would_hand_a_tool_different_options_is_refused_at_its_line(opened):
    page = opened(conftest.agent("ada"))
    page.line("tools", tool=conftest.tool("git__commit"), options='{"sign": false}')
    page = page.send()
    assert not page.was_saved
    assert "git__commit" in page.errors["switches-0-on"][0]
    assert conftest.agent("ada").tools.count() == 1


def test_a_switch_may_go_off_in_the_form_that_brings_its_tool_another_way(opened):
    page = flipped(opened(conftest.agent("ada")), "dev", False)
    page.line("tools", tool=conftest.tool("git__commit"), options='{"sign": false}')
    assert page.send().was_saved


def test_one_toolkit_in_two_lines_is_refused(opened):
    page = opened(conftest.agent("ada")).line("switches", toolkit=conftest.toolkit("dev"), on=False).send()
    assert page.errors["switches-1-toolkit"] == ["'dev' is listed twice: remove one."]


@pytest.mark.parametrize("number", ["999999", "nonsense", "9" * 40])
def test_a_line_that_names_no_tool_is_refused(opened, number):
    page = opened(conftest.agent("ada")).line("overrides", tool=number, on=True).send()
    assert page.errors["overrides-2-tool"] == ["This entry no longer exists: choose another one."]


def until(hours: int = 2) -> dt.datetime:
    """Return a moment that is still to come, to the second."""
    return timezone.now().replace(microsecond=0) + dt.timedelta(hours=hours)


def typed(moment: dt.datetime) -> dict[str, str]:
    """Return what is typed into the two boxes of an end."""
    local = timezone.localtime(moment)
    return {"ends_0": f"{local:%Y-%m-%d}", "ends_1": f"{local:%H:%M:%S}"}


def ends(agent: str) -> dict[str, dt.datetime]:
    return {key: end.at for key, end in snapshots.find(agent, None).agent.ends.items()}


def test_a_new_line_sets_a_switch_for_a_while(opened):
    at = until()
    page = opened(conftest.agent("ada"))
    assert page.line("switches", toolkit=conftest.toolkit("sales"), on=True, **typed(at)).send().was_saved
    assert ends("ada") == {"sales": at}
    [entry] = conftest.last_entries()
    assert entry.after == {"on": True, "ends": grants.format_time(at), "then": None}
    with clock.stopped(at):
        assert "sales" not in snapshots.find("ada", None).agent.switches


def test_a_new_agent_may_begin_with_something_for_a_while(opened):
    at = until()
    page = (
        opened(models.Agent)
        .type(key="dee")
        .line("overrides", tool=conftest.tool("clock"), on=True, **typed(at))
    )
    assert page.send().was_saved
    assert ends("dee") == {"clock": at}


def test_a_new_agent_cannot_begin_with_something_that_is_over(opened):
    page = opened(models.Agent).type(key="dee")
    page = page.line("overrides", tool=conftest.tool("clock"), on=True, **typed(until(-1))).send()
    assert "is in the past" in page.errors["overrides-0-ends"][0]
    assert not models.Agent.objects.filter(key="dee").exists()


def test_what_ends_is_shown_with_its_end_and_left_alone_keeps_it(opened, client):
    at = until()
    switches.override(OTHER, "ada", "clock", False, ends=at)
    page = opened(conftest.agent("ada"))
    number = page.number("overrides", "tool", conftest.tool("clock"))
    assert page.fields[f"overrides-{number}-ends_1"] == [f"{timezone.localtime(at):%H:%M:%S}"]
    assert page.type(title="Ada L.").send().was_saved
    assert ends("ada") == {"clock": at}
    listed = client.get(conftest.address(models.Agent, "changelist")).content.decode()
    assert formats.date_format(timezone.localtime(at), "DATETIME_FORMAT") in listed


def test_an_end_that_is_taken_out_lets_it_stand_for_good(opened):
    switches.override(OTHER, "ada", "clock", False, ends=until())
    page = opened(conftest.agent("ada"))
    number = page.number("overrides", "tool", conftest.tool("clock"))
    assert page.change("overrides", number, ends_0="", ends_1="").send().was_saved
    assert ends("ada") == {}
    assert snapshots.find("ada", None).agent.overrides["clock"] is False


def test_an_end_that_cannot_be_is_said_at_its_line(opened):
    page = opened(conftest.agent("ada"))
    page = page.line("switches", toolkit=conftest.toolkit("sales"), on=True, **typed(until(-1))).send()
    assert not page.was_saved
    line = page.html.index("is in the past")
    assert page.html.rindex('class="form-row', 0, line) > page.html.index('id="switches-0"'), "at its line"
    assert "field-ends" in page.html[line - 400 : line]
    assert ends("ada") == {}


def test_what_is_over_and_not_written_down_is_shown_as_it_stands_and_not_brought_back(opened):
    """Saving another field must not turn it on permanently."""
    at = until()
    switches.flip(OTHER, "ada", "sales", True, ends=at)
    switches.flip(OTHER, "bob", "sales", True, ends=at)
    with clock.stopped(at), unittest.mock.patch.object(timezone, "now", return_value=at):
        ada, bob = opened(conftest.agent("ada")), opened(conftest.agent("bob"))
        with pytest.raises(AssertionError, match="no line"):
            ada.number("switches", "toolkit", conftest.toolkit("sales"))
        number = bob.number("switches", "toolkit", conftest.toolkit("sales"))
        assert bob.fields[f"switches-{number}-on"] == ["False"]
        for page in (ada, bob):
            assert page.type(title="Seen").send().was_saved
        assert snapshots.find("ada", None).agent.switches == {"dev": True}
        assert snapshots.find("bob", None).agent.switches["sales"] is False


def test_an_end_that_somebody_else_gave_meanwhile_is_said(opened):
    page = flipped(opened(conftest.agent("ada")), "dev", False)
    switches.flip(OTHER.replace(confirm=True), "ada", "dev", False, ends=until())
    page = page.send()
    assert not page.was_saved
    assert "was changed by another operator" in page.html


def test_whoever_saw_another_end_is_told_though_it_is_on_as_it_was(opened):
    switches.override(OTHER, "ada", "clock", False, ends=until())
    page = opened(conftest.agent("ada"))
    switches.override(OTHER, "ada", "clock", False, ends=until(3))
    page = page.change("overrides", page.number("overrides", "tool", conftest.tool("clock")), on=True).send()
    assert not page.was_saved
    assert "was changed by another operator" in page.html
