"""What is wrong is said where it stands, in the words of belts, and nothing is written."""

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


def refused(page: Any) -> dict[str, list[str]]:
    page = page.send()
    assert not page.was_saved
    errors: dict[str, list[str]] = page.errors
    assert errors.pop("") == ["Nothing was saved."]
    return errors


def test_a_name_that_cannot_be(opened):
    errors = refused(opened(models.Toolkit).type(key="two words"))
    assert "is not a toolkit's key" in errors["key"][0]


def test_a_name_that_is_taken(opened):
    errors = refused(opened(models.Toolkit).type(key="dev"))
    assert errors == {"key": ["'dev' already exists: change that toolkit, or choose another name."]}


def test_a_name_that_differs_in_case_alone(opened):
    assert "in case alone" in refused(opened(models.Agent).type(key="ADA"))["key"][0]


def test_a_tools_name_for_a_toolkit(opened):
    assert "taken by the tool 'clock'" in refused(opened(models.Toolkit).type(key="clock"))["key"][0]


def test_a_tool_outside_the_namespace_of_its_plugin(opened):
    plugin = models.Plugin.objects.get(name="git")
    errors = refused(opened(models.Tool).type(key="push", plugin=plugin.pk))
    assert errors == {"key": ["'push' is outside the namespace of its plugin 'git': call it 'git__push'."]}


def test_a_schema_that_is_none(opened):
    page = opened(conftest.tool("clock")).type(input_schema='{"type": "array"}')
    assert "the schema's type must be 'object'" in refused(page)["input_schema"][0]


def test_text_that_is_no_json(opened):
    page = opened(conftest.toolkit("dev")).type(triggers='[\n  {"name" "x"}\n]').send()
    assert page.errors["triggers"][0].startswith("This is not JSON: line 2, column 11:")
    assert page.fields["triggers"] == ['[\r\n  {"name" "x"}\r\n]']


def test_json_of_another_shape(opened):
    page = opened(conftest.toolkit("dev")).type(triggers='{"name": "x"}', tool_notes="[]")
    errors = refused(page)
    assert errors["triggers"] == ["'triggers' must be a list, not a mapping."]
    assert errors["tool_notes"] == ["'tool_notes' must be a mapping, not a list."]


@pytest.mark.parametrize("depth", [100, 450, 5000])
def test_json_that_is_nested_too_deeply(opened, depth):
    page = opened(conftest.toolkit("dev")).type(tool_notes='{"a":' * depth + "1" + "}" * depth)
    page.line("members", tool=conftest.tool("clock"), options='{"a":' * depth + "1" + "}" * depth)
    page = page.send()
    assert page.status == 200
    assert page.errors["tool_notes"]
    assert page.errors["members-2-options"]


def test_a_pattern_inside_a_trigger(opened):
    page = opened(conftest.toolkit("dev")).type(triggers='[{"name": "x", "any": ["ok", "(("]}]')
    [said] = refused(page)["triggers"]
    assert said.startswith("triggers[0].any[1]: ")


def test_all_that_is_wrong_is_said_at_once(opened):
    page = opened(conftest.toolkit("dev")).type(
        triggers='[{"name": "x"}]', tool_notes='{"clok": "Look twice."}'
    )
    page.line("members", tool=conftest.tool("git__status"))
    page.line("members", tool=conftest.tool("clock"), options="[1]")
    errors = refused(page)
    assert "Did you mean clock?" in errors["tool_notes"][0]
    assert "set 'any' or 'all'" in errors["triggers"][0]
    assert "'git__status' is listed twice" in errors["members-2-tool"][0]
    assert "must be a mapping" in errors["members-3-options"][0]


def test_options_that_clash_for_an_agent_that_has_the_toolkit(opened):
    page = opened(conftest.toolkit("dev"))
    page.line("members", tool=conftest.tool("clock"), options='{"utc": true}')
    assert refused(page)["members"][0].startswith("members: For ada: clock comes from ")


def test_a_loadout_that_is_its_own_ancestor(opened):
    errors = refused(opened(models.Loadout.objects.get(name="house")).type(parent="house"))
    assert "cannot be its own ancestor" in errors["parent"][0]


def test_a_loadout_that_nobody_knows(opened):
    assert (
        "There is no loadout named 'hous'"
        in refused(opened(models.Loadout).type(name="x", parent="hous"))["parent"][0]
    )


def test_lines_of_a_list_of_names(opened):
    page = opened(models.Loadout.objects.get(name="house")).type(categories="crm\ngti", disabled="a b")
    errors = refused(page)
    assert errors["categories"] == ["categories[1]: There is no category named 'gti'. Did you mean git?"]
    assert errors["disabled"][0].startswith("disabled[0]: 'a b' is not a name")


def test_an_initial_toolkit_that_conflicts(opened):
    page = opened(models.Agent).type(key="eve").line("tools", tool=conftest.tool("git__commit"))
    page.line("allowed_toolkits", toolkit=conftest.toolkit("sales"))
    page.line("allowed_toolkits", toolkit=conftest.toolkit("dev")).tick_cell("allowed_toolkits", 1, "initial")
    assert "Make the options equal" in refused(page)["allowed_toolkits-1-initial"][0]


def test_a_number_that_is_none(opened):
    page = opened(conftest.agent("ada")).type(max_tools="many").send()
    assert page.errors["max_tools"] == ["Enter a whole number."]


def test_a_form_that_was_tampered_with(opened):
    page = opened(conftest.agent("ada")).type(title="X", as_loaded='["no"]').send()
    assert page.errors["as_loaded"] == ["The form data is incomplete: reload the page and try again."]


def test_a_duplicate_among_an_agents_toolkits(opened):
    page = opened(conftest.agent("ada")).line("allowed_toolkits", toolkit=conftest.toolkit("sales"))
    assert "'sales' is listed twice" in refused(page)["allowed_toolkits-1-toolkit"][0]


def test_a_refusal_is_no_error_of_the_server_and_keeps_what_was_typed(opened):
    page = opened(models.Agent).type(key="a b", title="Eve").line("tools", tool=conftest.tool("clock")).send()
    assert page.status == 200
    assert page.fields["title"] == ["Eve"]
    assert page.number("tools", "tool", conftest.tool("clock")) == 0
