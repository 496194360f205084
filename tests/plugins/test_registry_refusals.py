"""What is not registered: refused with everything that stands against it, and both who have and who want a name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugins import samples
from toolbelt.core import errors
from toolbelt.plugins import contract


def refused(registry, plugin: contract.ToolPlugin, source: str = "b.py") -> list[errors.Problem]:
    before = registry.list_plugins()
    with pytest.raises(errors.Invalid) as refusal:
        registry.register(plugin, source=source)
    assert registry.list_plugins() == before
    return list(refusal.value.problems)


def kit(key: str = "kit", **fields: Any) -> contract.CodeToolkit:
    made = contract.CodeToolkit()
    made.key = key
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("namespace", ["kb", "KB"])
def test_a_second_plugin_with_the_namespace_is_refused_with_both_sources(registry, namespace):
    registry.register(samples.Sample(), source="a.py")

    [problem] = refused(registry, samples.Sample("other", namespace))

    assert "the plugin 'other' (b.py) is taken by the plugin 'knowledge' (a.py)" in problem.message
    assert problem.message.startswith(f"The namespace {namespace!r}")
    assert problem.path == "other"


def test_a_second_plugin_with_the_name_is_refused_with_both_sources(registry):
    registry.register(samples.Sample(), source="a.py")

    [problem] = refused(registry, samples.Sample("Knowledge", "other"))

    assert "the plugin 'Knowledge' (b.py) is taken by the plugin 'knowledge' (a.py)" in problem.message


def test_a_plugin_without_a_namespace_cannot_read_anothers_secrets_by_its_name(registry):
    registry.register(samples.Sample(), source="a.py")

    [problem] = refused(registry, samples.Sample("kb", ""))

    assert problem.message.startswith("The namespace 'kb' of the plugin 'kb' (b.py) is taken by")


def test_a_tools_name_that_is_taken_is_refused_with_both_sources(registry):
    registry.register(samples.Sample("one", "", [samples.definition("think")]), source="a.py")

    [problem] = refused(registry, samples.Sample("two", "", [samples.definition("Think")]))

    assert problem.path == "two.tools.Think"
    assert "'Think' of the plugin 'two' (b.py) is taken by the plugin 'one' (a.py)" in problem.message


def test_a_tool_outside_its_namespace_is_refused_and_told_its_name(registry):
    [problem] = refused(registry, samples.Sample(tools=[samples.definition("git__push")]))

    assert "outside the namespace 'kb': call it 'kb__git__push'" in problem.message
    assert "the plugin 'knowledge' (b.py)" in problem.message


def test_a_tool_of_a_plugin_without_namespace_lies_in_none(registry):
    [problem] = refused(registry, samples.Sample("plain", "", [samples.definition("git__push")]))

    assert "its plugin has none" in problem.message


def test_a_reserved_name_is_refused(registry):
    [problem] = refused(registry, samples.Sample("plain", "", [samples.definition("load_tools")]))

    assert "reserved" in problem.message
    assert "the plugin 'plain' (b.py)" in problem.message


def test_a_tool_that_stands_twice_is_refused(registry):
    [problem] = refused(
        registry, samples.Sample(tools=[samples.definition(), samples.definition("kb__Search")])
    )

    assert "occurs twice in the plugin 'knowledge' (b.py)" in problem.message


@pytest.mark.parametrize(
    ("name", "namespace", "words"),
    [("a b", "kb", "is not a name"), ("kb", "k b", "is not a namespace"), ("kb", "k__b", "ends a namespace")],
)
def test_names_that_are_not_well_formed_are_refused(registry, name, namespace, words):
    [problem] = refused(registry, samples.Sample(name, namespace, []))

    assert words in problem.message


def test_a_tools_name_that_is_not_well_formed_is_refused(registry):
    [problem] = refused(registry, samples.Sample(tools=[samples.definition("kb__a b")]))

    assert "is not a tool's key" in problem.message


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array"}, "must be 'object'"),
        (
            {"type": "object", "properties": {"a": {"type": "strin"}}},
            "not a JSON Schema at properties.a.type",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}},
            "will not be fetched",
        ),
        ({"type": "object", "default": {1, 2}}, "has no form in JSON"),
        ("object", "must be a mapping"),
    ],
)
@pytest.mark.parametrize("field", ["input_schema", "output_schema"])
def test_schemas_that_are_none_are_refused(registry, field, schema, words):
    problem = refused(registry, samples.Sample(tools=[samples.definition(**{field: schema})]))[0]

    assert problem.path == f"knowledge.tools.kb__search.{field}"
    assert words in problem.message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"description": 5}, "'description' must be text"),
        ({"description": "\ud800"}, "cannot be stored"),
        ({"default_on": "yes"}, "'default_on' must be true or false"),
        ({"annotations": ["readOnlyHint"]}, "'annotations' must be a mapping"),
        ({"category": "a b"}, "is not a name"),
        ({"name": ""}, "cannot be missing or blank"),
        ({"name": None}, "cannot be missing or blank"),
    ],
)
def test_fields_of_the_wrong_kind_are_refused(registry, fields, words):
    [problem] = refused(registry, samples.Sample(tools=[samples.definition(**fields)]))

    assert words in problem.message


def test_a_tool_is_a_tool_definition(registry):
    [problem] = refused(registry, samples.Sample(tools=[{"name": "kb__search"}]))

    assert problem.path == "knowledge.tools[0]"
    assert problem.message == "A tool is a ToolDefinition, not a dict."


def test_a_plugin_whose_name_is_no_text_is_refused(registry):
    plugin = samples.Sample()
    plugin.name = 5  # type: ignore[assignment]

    [problem] = refused(registry, plugin)

    assert "'name' must be text, not 5" in problem.message


def test_a_plugin_whose_tools_cannot_be_read_is_refused(registry):
    class Broken(samples.Sample):
        @property
        def tools(self):
            raise OSError("no such catalog")

        @tools.setter
        def tools(self, value): ...

    [problem] = refused(registry, Broken())

    assert "cannot be read: OSError: no such catalog" in problem.message


def test_everything_that_is_wrong_is_said_at_once(registry):
    tools = [samples.definition("git__push"), samples.definition(input_schema={"type": "array"})]

    paths = [problem.path for problem in refused(registry, samples.Sample(tools=tools))]

    assert paths == ["knowledge.tools.git__push", "knowledge.tools.kb__search.input_schema"]


@pytest.mark.parametrize(
    ("toolkit", "words"),
    [
        (kit("a__b"), "which only ends a namespace"),
        (kit(""), "cannot be missing or blank"),
        (kit(members="kb__search"), "'members' must be a list"),
        (kit(members=["kb search"]), "is not a tool's key"),
        (kit(members=["kb__search"], options={"kb__other": {"a": 1}}), "'kb__other' is not a member"),
        (kit(options={"kb__search": 1}), "must be a mapping"),
        ("kit", "A toolkit is a CodeToolkit, not a str"),
    ],
)
def test_toolkits_that_are_not_sound_are_refused(registry, toolkit, words):
    problems = refused(registry, samples.Sample(toolkits=[toolkit]))

    assert any(words in problem.message for problem in problems)


def test_a_toolkit_and_a_tool_share_one_space_of_names(registry):
    registry.register(samples.Sample("one", "", [samples.definition("think")]), source="a.py")

    [problem] = refused(registry, samples.Sample(toolkits=[kit("think")]))

    assert (
        "The toolkit 'think' of the plugin 'knowledge' (b.py) is taken by the plugin 'one' (a.py)"
        in problem.message
    )


def test_a_partial_plugin_loses_the_tools_that_have_problems_and_not_itself(registry):
    registry.register(samples.Sample("one", "", [samples.definition("think")]), source="a.py")
    tools = [samples.definition("THINK"), samples.definition("a b"), samples.definition("look")]

    info = registry.register(samples.Sample("upstream", "", tools), source="b.py", partial=True)

    assert [tool.name for tool in info.tools] == ["look"]
    assert [problem.path for problem in info.problems] == ["upstream.tools.THINK", "upstream.tools.a b"]
    assert "is taken by the plugin 'one' (a.py)" in info.problems[0].message


def test_a_partial_plugin_still_needs_a_namespace_of_its_own(registry):
    registry.register(samples.Sample())

    with pytest.raises(errors.Invalid, match="is taken by"):
        registry.register(samples.Sample("other", "kb"), partial=True)


def test_what_could_not_be_loaded_is_listed_as_failed(registry):
    registry.record_failure(
        "gone", source="plugins.yaml:3", error="ModuleNotFoundError: No module named 'gone'"
    )
    registry.register(samples.Sample())

    gone, there = registry.list_plugins()

    assert (gone.name, gone.state, gone.tool_count) == ("gone", "failed", 0)
    assert "No module named" in gone.error
    assert there.state == "registered"


def test_nothing_is_registered_after_the_end(registry):
    registry.shutdown_sync()

    with pytest.raises(errors.Refused, match="shut down"):
        registry.register(samples.Sample())
