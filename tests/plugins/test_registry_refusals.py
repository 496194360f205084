"""Tests that invalid plugins are refused with all of their problems, and conflicts with both sources."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugins import samples
from toolbelt.core import errors
from toolbelt.plugins import contract


def refusal_problems(registry, plugin: contract.ToolPlugin, source: str = "b.py") -> list[errors.Problem]:
    before = registry.list_plugins()
    with pytest.raises(errors.Invalid) as raised:
        registry.register(plugin, source=source)
    assert registry.list_plugins() == before
    return list(raised.value.problems)


def make_kit(key: str = "kit", **fields: Any) -> contract.CodeToolkit:
    toolkit = contract.CodeToolkit()
    toolkit.key = key
    for name, value in fields.items():
        setattr(toolkit, name, value)
    return toolkit


@pytest.mark.parametrize("namespace", ["kb", "KB"])
def test_a_duplicate_namespace_is_refused_with_both_sources(registry, namespace):
    registry.register(samples.Sample(), source="a.py")

    [problem] = refusal_problems(registry, samples.Sample("other", namespace))

    assert "the plugin 'other' (b.py) is taken by the plugin 'knowledge' (a.py)" in problem.message
    assert problem.message.startswith(f"The namespace {namespace!r}")
    assert problem.path == "other"


def test_a_duplicate_plugin_name_is_refused_with_both_sources(registry):
    registry.register(samples.Sample(), source="a.py")

    [problem] = refusal_problems(registry, samples.Sample("Knowledge", "other"))

    assert "the plugin 'Knowledge' (b.py) is taken by the plugin 'knowledge' (a.py)" in problem.message


def test_a_plugin_without_a_namespace_cannot_be_named_like_another_namespace(registry):
    registry.register(samples.Sample(), source="a.py")

    [problem] = refusal_problems(registry, samples.Sample("kb", ""))

    assert problem.message.startswith("The namespace 'kb' of the plugin 'kb' (b.py) is taken by")


def test_a_duplicate_tool_name_is_refused_with_both_sources(registry):
    registry.register(samples.Sample("one", "", [samples.definition("think")]), source="a.py")

    [problem] = refusal_problems(registry, samples.Sample("two", "", [samples.definition("Think")]))

    assert problem.path == "two.tools.Think"
    assert "'Think' of the plugin 'two' (b.py) is taken by the plugin 'one' (a.py)" in problem.message


def test_a_tool_outside_its_namespace_is_refused_with_a_suggested_name(registry):
    [problem] = refusal_problems(registry, samples.Sample(tools=[samples.definition("git__push")]))

    assert "outside the namespace 'kb': call it 'kb__git__push'" in problem.message
    assert "the plugin 'knowledge' (b.py)" in problem.message


def test_a_plugin_without_a_namespace_cannot_have_tools_in_a_namespace(registry):
    [problem] = refusal_problems(registry, samples.Sample("plain", "", [samples.definition("git__push")]))

    assert "its plugin has none" in problem.message


def test_a_reserved_tool_name_is_refused(registry):
    [problem] = refusal_problems(registry, samples.Sample("plain", "", [samples.definition("load_tools")]))

    assert "reserved" in problem.message
    assert "the plugin 'plain' (b.py)" in problem.message


def test_a_tool_defined_twice_is_refused(registry):
    [problem] = refusal_problems(
        registry, samples.Sample(tools=[samples.definition(), samples.definition("kb__Search")])
    )

    assert "occurs twice in the plugin 'knowledge' (b.py)" in problem.message


@pytest.mark.parametrize(
    ("name", "namespace", "reason"),
    [("a b", "kb", "is not a name"), ("kb", "k b", "is not a namespace"), ("kb", "k__b", "ends a namespace")],
)
def test_malformed_plugin_names_and_namespaces_are_refused(registry, name, namespace, reason):
    [problem] = refusal_problems(registry, samples.Sample(name, namespace, []))

    assert reason in problem.message


def test_a_malformed_tool_name_is_refused(registry):
    [problem] = refusal_problems(registry, samples.Sample(tools=[samples.definition("kb__a b")]))

    assert "is not a tool's key" in problem.message


@pytest.mark.parametrize(
    ("schema", "reason"),
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
def test_invalid_schemas_are_refused(registry, field, schema, reason):
    problem = refusal_problems(registry, samples.Sample(tools=[samples.definition(**{field: schema})]))[0]

    assert problem.path == f"knowledge.tools.kb__search.{field}"
    assert reason in problem.message


@pytest.mark.parametrize(
    ("fields", "reason"),
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
def test_definition_fields_of_the_wrong_type_are_refused(registry, fields, reason):
    [problem] = refusal_problems(registry, samples.Sample(tools=[samples.definition(**fields)]))

    assert reason in problem.message


def test_a_tool_that_is_not_a_tool_definition_is_refused(registry):
    [problem] = refusal_problems(registry, samples.Sample(tools=[{"name": "kb__search"}]))

    assert problem.path == "knowledge.tools[0]"
    assert problem.message == "A tool is a ToolDefinition, not a dict."


def test_a_plugin_name_that_is_not_text_is_refused(registry):
    plugin = samples.Sample()
    plugin.name = 5  # type: ignore[assignment]

    [problem] = refusal_problems(registry, plugin)

    assert "'name' must be text, not 5" in problem.message


def test_a_plugin_whose_tools_cannot_be_read_is_refused(registry):
    class Broken(samples.Sample):
        @property
        def tools(self):
            raise OSError("no such catalog")

        @tools.setter
        def tools(self, value): ...

    [problem] = refusal_problems(registry, Broken())

    assert "cannot be read: OSError: no such catalog" in problem.message


def test_all_problems_are_reported_together(registry):
    tools = [samples.definition("git__push"), samples.definition(input_schema={"type": "array"})]

    paths = [problem.path for problem in refusal_problems(registry, samples.Sample(tools=tools))]

    assert paths == ["knowledge.tools.git__push", "knowledge.tools.kb__search.input_schema"]


@pytest.mark.parametrize(
    ("toolkit", "reason"),
    [
        (make_kit("a__b"), "which only ends a namespace"),
        (make_kit(""), "cannot be missing or blank"),
        (make_kit(members="kb__search"), "'members' must be a list"),
        (make_kit(members=["kb search"]), "is not a tool's key"),
        (make_kit(members=["kb__search"], options={"kb__other": {"a": 1}}), "'kb__other' is not a member"),
        (make_kit(options={"kb__search": 1}), "must be a mapping"),
        ("kit", "A toolkit is a CodeToolkit, not a str"),
    ],
)
def test_invalid_toolkits_are_refused(registry, toolkit, reason):
    problems = refusal_problems(registry, samples.Sample(toolkits=[toolkit]))

    assert any(reason in problem.message for problem in problems)


def test_a_toolkit_cannot_have_the_name_of_a_tool(registry):
    registry.register(samples.Sample("one", "", [samples.definition("think")]), source="a.py")

    [problem] = refusal_problems(registry, samples.Sample(toolkits=[make_kit("think")]))

    assert (
        "The toolkit 'think' of the plugin 'knowledge' (b.py) is taken by the plugin 'one' (a.py)"
        in problem.message
    )


def test_a_partial_registration_leaves_out_only_the_invalid_tools(registry):
    registry.register(samples.Sample("one", "", [samples.definition("think")]), source="a.py")
    tools = [samples.definition("THINK"), samples.definition("a b"), samples.definition("look")]

    info = registry.register(samples.Sample("upstream", "", tools), source="b.py", partial=True)

    assert [tool.name for tool in info.tools] == ["look"]
    assert [problem.path for problem in info.problems] == ["upstream.tools.THINK", "upstream.tools.a b"]
    assert "is taken by the plugin 'one' (a.py)" in info.problems[0].message


def test_a_partial_registration_still_requires_a_unique_namespace(registry):
    registry.register(samples.Sample())

    with pytest.raises(errors.Invalid, match="is taken by"):
        registry.register(samples.Sample("other", "kb"), partial=True)


def test_a_plugin_that_could_not_be_loaded_is_listed_as_failed(registry):
    registry.record_failure(
        "gone", source="plugins.yaml:3", error="ModuleNotFoundError: No module named 'gone'"
    )
    registry.register(samples.Sample())

    failed, registered = registry.list_plugins()

    assert (failed.name, failed.state, failed.tool_count) == ("gone", "failed", 0)
    assert "No module named" in failed.error
    assert registered.state == "registered"


def test_registering_after_shutdown_is_refused(registry):
    registry.shutdown_sync()

    with pytest.raises(errors.Refused, match="shut down"):
        registry.register(samples.Sample())
