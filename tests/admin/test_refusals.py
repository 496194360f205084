"""Tests that invalid forms are refused with errors at their fields, worded as for belts, and write nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admin import conftest
from toolbelt import models


@pytest.fixture(autouse=True)
def nothing_is_written(stored: None):
    before = models.Revision.objects.get().number, models.AuditEntry.objects.count()
    yield
    assert (models.Revision.objects.get().number, models.AuditEntry.objects.count()) == before


def send_refused(page: Any) -> dict[str, list[str]]:
    page = page.send()
    assert not page.was_saved
    errors: dict[str, list[str]] = page.errors
    assert errors.pop("") == ["Nothing was saved."]
    return errors


def test_an_invalid_key_is_refused(open_form):
    errors = send_refused(open_form(models.Toolkit).type(key="two words"))
    assert "is not a toolkit's key" in errors["key"][0]


def test_a_taken_key_is_refused(open_form):
    errors = send_refused(open_form(models.Toolkit).type(key="dev"))
    assert errors == {"key": ["'dev' already exists: change that toolkit, or choose another name."]}


def test_a_key_that_only_differs_in_case_is_refused(open_form):
    assert "in case alone" in send_refused(open_form(models.Agent).type(key="ADA"))["key"][0]


def test_a_tools_key_is_refused_for_a_toolkit(open_form):
    assert "taken by the tool 'clock'" in send_refused(open_form(models.Toolkit).type(key="clock"))["key"][0]


def test_a_tool_outside_its_plugins_namespace_is_refused(open_form):
    plugin = models.Plugin.objects.get(name="git")
    errors = send_refused(open_form(models.Tool).type(key="push", plugin=plugin.pk))
    assert errors == {"key": ["'push' is outside the namespace of its plugin 'git': call it 'git__push'."]}


def test_an_invalid_input_schema_is_refused(open_form):
    page = open_form(conftest.tool("clock")).type(input_schema='{"type": "array"}')
    assert "the schema's type must be 'object'" in send_refused(page)["input_schema"][0]


def test_invalid_json_is_refused_with_its_position(open_form):
    page = open_form(conftest.toolkit("dev")).type(triggers='[\n  {"name" "x"}\n]').send()
    assert page.errors["triggers"][0].startswith("This is not JSON: line 2, column 11:")
    assert page.fields["triggers"] == ['[\r\n  {"name" "x"}\r\n]']


def test_json_of_the_wrong_type_is_refused(open_form):
    page = open_form(conftest.toolkit("dev")).type(triggers='{"name": "x"}', tool_notes="[]")
    errors = send_refused(page)
    assert errors["triggers"] == ["'triggers' must be a list, not a mapping."]
    assert errors["tool_notes"] == ["'tool_notes' must be a mapping, not a list."]


@pytest.mark.parametrize("depth", [100, 450, 5000])
def test_json_that_is_nested_too_deeply_is_refused(open_form, depth):
    page = open_form(conftest.toolkit("dev")).type(tool_notes='{"a":' * depth + "1" + "}" * depth)
    page.line("members", tool=conftest.tool("clock"), options='{"a":' * depth + "1" + "}" * depth)
    page = page.send()
    assert page.status == 200
    assert page.errors["tool_notes"]
    assert page.errors["members-2-options"]


def test_an_invalid_pattern_in_a_trigger_is_refused_with_its_path(open_form):
    page = open_form(conftest.toolkit("dev")).type(triggers='[{"name": "x", "any": ["ok", "(("]}]')
    [message] = send_refused(page)["triggers"]
    assert message.startswith("triggers[0].any[1]: ")


def test_all_errors_of_a_form_are_reported_together(open_form):
    page = open_form(conftest.toolkit("dev")).type(
        triggers='[{"name": "x"}]', tool_notes='{"clok": "Look twice."}'
    )
    page.line("members", tool=conftest.tool("git__status"))
    page.line("members", tool=conftest.tool("clock"), options="[1]")
    errors = send_refused(page)
    assert "Did you mean clock?" in errors["tool_notes"][0]
    assert "set 'any' or 'all'" in errors["triggers"][0]
    assert "'git__status' is listed twice" in errors["members-2-tool"][0]
    assert "must be a mapping" in errors["members-3-options"][0]


def test_a_secret_in_options_is_refused_at_its_line(open_form):
    page = open_form(conftest.toolkit("dev"))
    page.line("members", tool=conftest.tool("clock"), options='{"auth": {"apiKey": "opensesame"}}')
    [message] = send_refused(page)["members-2-options"]
    assert "The option 'auth.apiKey' looks like a secret" in message


def test_members_that_cause_conflicting_options_are_refused(open_form):
    page = open_form(conftest.toolkit("dev"))
    page.line("members", tool=conftest.tool("clock"), options='{"utc": true}')
    assert send_refused(page)["members"][0].startswith("members: For ada: clock comes from ")


def test_a_loadout_cannot_be_its_own_ancestor(open_form):
    errors = send_refused(open_form(models.Loadout.objects.get(name="house")).type(parent="house"))
    assert "cannot be its own ancestor" in errors["parent"][0]


def test_an_unknown_parent_loadout_is_refused(open_form):
    assert (
        "There is no loadout named 'hous'"
        in send_refused(open_form(models.Loadout).type(name="x", parent="hous"))["parent"][0]
    )


def test_invalid_names_in_a_list_are_refused_with_their_position(open_form):
    page = open_form(models.Loadout.objects.get(name="house")).type(categories="crm\ngti", disabled="a b")
    errors = send_refused(page)
    assert errors["categories"] == ["categories[1]: There is no category named 'gti'. Did you mean git?"]
    assert errors["disabled"][0].startswith("disabled[0]: 'a b' is not a name")


def test_an_initial_toolkit_that_causes_conflicting_options_is_refused(open_form):
    page = open_form(models.Agent).type(key="eve").line("tools", tool=conftest.tool("git__commit"))
    page.line("allowed_toolkits", toolkit=conftest.toolkit("sales"))
    page.line("allowed_toolkits", toolkit=conftest.toolkit("dev")).tick_cell("allowed_toolkits", 1, "initial")
    assert "Make the options equal" in send_refused(page)["allowed_toolkits-1-initial"][0]


def test_a_value_that_is_not_a_number_is_refused(open_form):
    page = open_form(conftest.agent("ada")).type(max_tools="many").send()
    assert page.errors["max_tools"] == ["Enter a whole number."]


def test_a_form_with_manipulated_loaded_values_is_refused(open_form):
    page = open_form(conftest.agent("ada")).type(title="X", as_loaded='["no"]').send()
    assert page.errors["as_loaded"] == ["The form data is incomplete: reload the page and try again."]


def test_a_duplicate_allowed_toolkit_is_refused(open_form):
    page = open_form(conftest.agent("ada")).line("allowed_toolkits", toolkit=conftest.toolkit("sales"))
    assert "'sales' is listed twice" in send_refused(page)["allowed_toolkits-1-toolkit"][0]


def test_a_refused_form_is_shown_again_with_its_input(open_form):
    page = (
        open_form(models.Agent).type(key="a b", title="Eve").line("tools", tool=conftest.tool("clock")).send()
    )
    assert page.status == 200
    assert page.fields["title"] == ["Eve"]
    assert page.number("tools", "tool", conftest.tool("clock")) == 0
