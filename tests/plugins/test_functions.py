"""Tests of typed functions as tools: their schemas, the arguments that they get, and access to the runtime."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import threading
from typing import Annotated, Any, Literal

import pydantic
import pydantic_core
import pytest
from pydantic import json_schema

import toolbelt
from toolbelt.plugins import background, contract, functions


class Hit(pydantic.BaseModel):
    title: str
    found: dt.date


@dataclasses.dataclass
class Place:
    street: str
    number: int = 1


def make_plugin(*functions_: Any, **fields: Any) -> functions.FunctionPlugin:
    return functions.FunctionPlugin(name="knowledge", namespace="kb", functions=functions_, **fields)


def definition(function: Any) -> contract.ToolDefinition:
    return make_plugin(function).tools[0]


def call_function(registry, function: Any, **args: Any) -> Any:
    plugin = make_plugin(function)
    registry.register(plugin)
    return registry.execute_sync(plugin.tools[0].name, args)


def test_the_schema_is_built_from_type_hints_and_docstring():
    def search(
        query: str,
        limit: Annotated[int, pydantic.Field(ge=1, le=50)] = 10,
        kind: Literal["page", "note"] | None = None,
    ) -> list[str]:
        """Search the knowledge base.

        Best hits first.

        Args:
            query: What to look for,
                in a few words.
            limit (int): At most so many.

        Returns:
            Titles.
        """
        return []

    tool_definition = definition(search)

    assert tool_definition.name == "kb__search"
    assert tool_definition.description == "Search the knowledge base.\n\nBest hits first."
    assert tool_definition.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in a few words."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "default": 10,
                "description": "At most so many.",
            },
            "kind": {
                "anyOf": [{"enum": ["page", "note"], "type": "string"}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert tool_definition.output_schema is None


def test_the_decorator_sets_the_fields_of_the_definition():
    @functions.tool(
        name="find",
        title="Find",
        description="Find it.",
        category="search",
        default_on=True,
        annotations={"readOnlyHint": True},
    )
    def search(query: str) -> str:
        """Return something else."""
        return query.upper()

    tool_definition = definition(search)

    assert search("x") == "X"
    assert (tool_definition.name, tool_definition.title, tool_definition.description) == (
        "kb__find",
        "Find",
        "Find it.",
    )
    assert (tool_definition.category, tool_definition.default_on, tool_definition.annotations) == (
        "search",
        True,
        {"readOnlyHint": True},
    )


def test_the_decorator_works_without_parentheses():
    @functions.tool
    def search(query: str) -> str:
        """Search."""
        return query

    assert definition(search).description == "Search."


def test_annotated_descriptions_take_precedence_over_the_docstring():
    def search(
        query: Annotated[str, pydantic.Field(description="By hint.")],
        source: Annotated[str, pydantic.Field(alias="from")],
    ) -> str:
        """Search.

        :param query: By docstring.
        """
        return query + source

    properties = definition(search).input_schema["properties"]

    assert properties["query"]["description"] == "By hint."
    assert set(properties) == {"query", "from"}


def test_arguments_are_converted_to_the_hinted_types(registry):
    def book(when: dt.date, place: Place, hits: list[Hit]) -> str:
        return f"{when:%d.%m.} {place.street} {place.number} {hits[0].found.year}"

    given = {
        "when": "2026-01-02",
        "place": {"street": "High St"},
        "hits": [{"title": "a", "found": "2025-12-31"}],
    }

    assert call_function(registry, book, **given) == "02.01. High St 1 2025"


def test_a_typed_result_becomes_json_and_has_an_output_schema(registry):
    def look() -> Hit:
        return Hit(title="a", found=dt.date(2026, 1, 2))

    assert definition(look).output_schema == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "found": {"type": "string", "format": "date"}},
        "required": ["title", "found"],
    }
    assert call_function(registry, look) == {"title": "a", "found": "2026-01-02"}


def test_a_function_without_a_return_type_can_return_any_serializable_value(registry):
    def look():
        return {"when": dt.date(2026, 1, 2), "hits": (Hit(title="a", found=dt.date(2026, 1, 3)),)}

    expected = {"when": "2026-01-02", "hits": [{"title": "a", "found": "2026-01-03"}]}
    assert call_function(registry, look) == expected


def test_a_result_that_violates_the_return_type_is_an_error(registry):
    def look() -> Hit:
        return "nothing"  # type: ignore[return-value]

    with pytest.raises(pydantic_core.PydanticSerializationError):
        call_function(registry, look)


def test_invalid_arguments_are_reported_with_their_paths(registry):
    def book(place: Place, days: int) -> str:
        return ""

    with pytest.raises(contract.ToolError, match=r"place\.number: .*; days: .*; other: ") as refused:
        call_function(registry, book, place={"street": "x", "number": "y"}, days="z", other=1)
    assert refused.value.code == "tool-failed"


def test_a_runtime_parameter_is_injected_and_left_out_of_the_schema(registry):
    async def remember(runtime: toolbelt.RuntimeAPI, note: str) -> list[str]:
        await runtime.state.set(f"note:{note}", note)
        return list(await runtime.state.list("note:"))

    assert list(definition(remember).input_schema["properties"]) == ["note"]
    assert call_function(registry, remember, note="tea") == ["note:tea"]


def test_a_plain_function_runs_in_a_thread_and_can_wait_for_the_runtime(registry):
    def remember(note: str, runtime: toolbelt.RuntimeAPI) -> str:
        toolbelt.wait(runtime.state.set("note", note))
        return f"{toolbelt.wait(runtime.state.get('note'))} {threading.current_thread().name}"

    assert call_function(registry, remember, note="tea") == "tea toolbelt-plugin-call"


def test_the_runtime_is_available_only_after_initialize(registry):
    def look(runtime: toolbelt.RuntimeAPI) -> str:
        return ""

    plugin = make_plugin(look)

    with pytest.raises(RuntimeError, match="initialize the plugin first"):
        plugin.execute("kb__look", {}).send(None)


def test_an_unknown_tool_is_refused():
    with pytest.raises(ValueError, match="Unknown tool: kb__other"):
        make_plugin().execute("kb__other", {}).send(None)


def test_parameters_can_have_names_that_pydantic_reserves(registry):
    def odd(json: str, model_config: str, _hidden: int = 1, copy: bool = False) -> str:
        return f"{json} {model_config} {_hidden} {copy}"

    assert list(definition(odd).input_schema["properties"]) == ["json", "model_config", "_hidden", "copy"]
    assert call_function(registry, odd, json="a", model_config="b", copy=True) == "a b 1 True"


def test_a_default_that_json_cannot_represent_still_applies(registry):
    sentinel: Any = object()

    def look(what: Any = sentinel) -> bool:
        return what is sentinel

    assert "default" not in definition(look).input_schema["properties"]["what"]
    assert call_function(registry, look) is True


def test_an_argument_can_be_optional_without_accepting_null(registry):
    def look(
        tag: Annotated[str, pydantic.Field(min_length=1)] | json_schema.SkipJsonSchema[None] = None,
        hit: Hit | json_schema.SkipJsonSchema[None] = None,
    ) -> bool:
        return tag is None and hit is None

    assert definition(look).input_schema["properties"] == {
        "tag": {"type": "string", "minLength": 1},
        "hit": {"$ref": "#/$defs/Hit"},
    }
    assert call_function(registry, look) is True


def test_a_call_that_waited_for_a_thread_is_checked_again(registry):
    """An operator could have withdrawn the tool while the call waited."""
    started, release, ran = threading.Event(), threading.Event(), list[int]()
    checks = 0

    def look(number: int) -> None:
        ran.append(number)
        started.set()
        release.wait(5)

    async def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 3:
            raise contract.ToolError("withdrawn")
        if checks == 2:
            asyncio.get_running_loop().call_later(0.05, release.set)

    plugin = make_plugin(look)
    plugin._threads = background.Threads(limit=1)
    registry.register(plugin)

    async def two_calls() -> list[Any]:
        first = asyncio.ensure_future(registry.execute("kb__look", {"number": 1}, check=check))
        await asyncio.to_thread(started.wait, 5)
        second = asyncio.ensure_future(registry.execute("kb__look", {"number": 2}, check=check))
        return list(await asyncio.gather(first, second, return_exceptions=True))

    first, second = asyncio.run(two_calls())
    assert first is None
    assert isinstance(second, contract.ToolError)
    assert ran == [1]


def test_methods_and_names_with_the_namespace_are_accepted(registry):
    class Base:
        @functions.tool(name="kb__read")
        async def read(self, page: int) -> int:
            return page + 1

    assert call_function(registry, Base().read, page=1) == 2


def test_schemas_of_nested_models_have_no_titles():
    def look(hit: Hit) -> None: ...

    assert "title" not in definition(look).input_schema["$defs"]["Hit"]


def test_the_plugin_has_the_given_metadata_and_toolkits():
    kit = contract.CodeToolkit()

    plugin = make_plugin(title="Knowledge", description="What we know.", category="search", toolkits=[kit])

    assert (plugin.name, plugin.namespace, plugin.title) == ("knowledge", "kb", "Knowledge")
    assert (plugin.description, plugin.category, plugin.toolkits) == ("What we know.", "search", (kit,))
