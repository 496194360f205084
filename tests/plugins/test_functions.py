"""Typed functions as tools: schema from hints and docstring, arguments as the hints say, runtime where it is wanted."""

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


def plugin_of(*given: Any, **more: Any) -> functions.FunctionPlugin:
    return functions.FunctionPlugin(name="knowledge", namespace="kb", functions=given, **more)


def definition(function: Any) -> contract.ToolDefinition:
    return plugin_of(function).tools[0]


def answer(registry, function: Any, **args: Any) -> Any:
    plugin = plugin_of(function)
    registry.register(plugin)
    return registry.execute_sync(plugin.tools[0].name, args)


def test_the_schema_comes_from_hints_and_docstring():
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

    made = definition(search)

    assert made.name == "kb__search"
    assert made.description == "Search the knowledge base.\n\nBest hits first."
    assert made.input_schema == {
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
    assert made.output_schema is None


def test_the_decorator_says_what_a_function_cannot():
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

    made = definition(search)

    assert search("x") == "X"
    assert (made.name, made.title, made.description) == ("kb__find", "Find", "Find it.")
    assert (made.category, made.default_on, made.annotations) == ("search", True, {"readOnlyHint": True})


def test_the_decorator_needs_no_brackets():
    @functions.tool
    def search(query: str) -> str:
        """Search."""
        return query

    assert definition(search).description == "Search."


def test_what_annotated_says_comes_before_the_docstring():
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


def test_a_function_gets_what_its_hints_say(registry):
    def book(when: dt.date, place: Place, hits: list[Hit]) -> str:
        return f"{when:%d.%m.} {place.street} {place.number} {hits[0].found.year}"

    given = {
        "when": "2026-01-02",
        "place": {"street": "High St"},
        "hits": [{"title": "a", "found": "2025-12-31"}],
    }

    assert answer(registry, book, **given) == "02.01. High St 1 2025"


def test_a_function_answers_in_values_of_json_and_promises_its_schema(registry):
    def look() -> Hit:
        return Hit(title="a", found=dt.date(2026, 1, 2))

    assert definition(look).output_schema == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "found": {"type": "string", "format": "date"}},
        "required": ["title", "found"],
    }
    assert answer(registry, look) == {"title": "a", "found": "2026-01-02"}


def test_a_function_without_a_return_type_answers_anything_json_can_say(registry):
    def look():
        return {"when": dt.date(2026, 1, 2), "hits": (Hit(title="a", found=dt.date(2026, 1, 3)),)}

    expected = {"when": "2026-01-02", "hits": [{"title": "a", "found": "2026-01-03"}]}
    assert answer(registry, look) == expected


def test_a_promise_that_is_not_kept_is_the_functions_failure(registry):
    def look() -> Hit:
        return "nothing"  # type: ignore[return-value]

    with pytest.raises(pydantic_core.PydanticSerializationError):
        answer(registry, look)


def test_arguments_that_do_not_fit_are_said_with_their_places(registry):
    def book(place: Place, days: int) -> str:
        return ""

    with pytest.raises(contract.ToolError, match=r"place\.number: .*; days: .*; other: ") as refused:
        answer(registry, book, place={"street": "x", "number": "y"}, days="z", other=1)
    assert refused.value.code == "tool-failed"


def test_a_parameter_of_the_runtimes_type_gets_it_and_is_no_argument(registry):
    async def remember(runtime: toolbelt.RuntimeAPI, note: str) -> list[str]:
        await runtime.state.set(f"note:{note}", note)
        return list(await runtime.state.list("note:"))

    assert list(definition(remember).input_schema["properties"]) == ["note"]
    assert answer(registry, remember, note="tea") == ["note:tea"]


def test_a_plain_function_runs_in_a_thread_and_may_wait_for_the_runtime(registry):
    def remember(note: str, runtime: toolbelt.RuntimeAPI) -> str:
        toolbelt.wait(runtime.state.set("note", note))
        return f"{toolbelt.wait(runtime.state.get('note'))} {threading.current_thread().name}"

    assert answer(registry, remember, note="tea") == "tea toolbelt-plugin-call"


def test_the_runtime_is_there_only_after_initialize(registry):
    def look(runtime: toolbelt.RuntimeAPI) -> str:
        return ""

    plugin = plugin_of(look)

    with pytest.raises(RuntimeError, match="initialize the plugin first"):
        plugin.execute("kb__look", {}).send(None)


def test_a_tool_that_the_plugin_has_not_is_unknown():
    with pytest.raises(ValueError, match="Unknown tool: kb__other"):
        plugin_of().execute("kb__other", {}).send(None)


def test_parameters_may_have_any_names(registry):
    def odd(json: str, model_config: str, _hidden: int = 1, copy: bool = False) -> str:
        return f"{json} {model_config} {_hidden} {copy}"

    assert list(definition(odd).input_schema["properties"]) == ["json", "model_config", "_hidden", "copy"]
    assert answer(registry, odd, json="a", model_config="b", copy=True) == "a b 1 True"


def test_a_default_that_json_cannot_say_is_still_the_default(registry):
    nothing: Any = object()

    def look(what: Any = nothing) -> bool:
        return what is nothing

    assert "default" not in definition(look).input_schema["properties"]["what"]
    assert answer(registry, look) is True


def test_an_argument_may_be_optional_without_taking_null(registry):
    def look(
        tag: Annotated[str, pydantic.Field(min_length=1)] | json_schema.SkipJsonSchema[None] = None,
        hit: Hit | json_schema.SkipJsonSchema[None] = None,
    ) -> bool:
        return tag is None and hit is None

    assert definition(look).input_schema["properties"] == {
        "tag": {"type": "string", "minLength": 1},
        "hit": {"$ref": "#/$defs/Hit"},
    }
    assert answer(registry, look) is True


def test_a_plain_function_that_waited_for_a_thread_is_checked_again(registry):
    """While it waited, an operator may have withdrawn the tool."""
    begun, release, ran = threading.Event(), threading.Event(), list[int]()
    checks = 0

    def look(number: int) -> None:
        ran.append(number)
        begun.set()
        release.wait(5)

    async def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 3:
            raise contract.ToolError("withdrawn")
        if checks == 2:
            asyncio.get_running_loop().call_later(0.05, release.set)

    plugin = plugin_of(look)
    plugin._threads = background.Threads(limit=1)
    registry.register(plugin)

    async def two_calls() -> list[Any]:
        first = asyncio.ensure_future(registry.execute("kb__look", {"number": 1}, check=check))
        await asyncio.to_thread(begun.wait, 5)
        second = asyncio.ensure_future(registry.execute("kb__look", {"number": 2}, check=check))
        return list(await asyncio.gather(first, second, return_exceptions=True))

    first, second = asyncio.run(two_calls())
    assert first is None
    assert isinstance(second, contract.ToolError)
    assert ran == [1]


def test_methods_and_names_that_are_full_already_serve_too(registry):
    class Base:
        @functions.tool(name="kb__read")
        async def read(self, page: int) -> int:
            return page + 1

    assert answer(registry, Base().read, page=1) == 2


def test_schemas_of_models_inside_carry_no_titles():
    def look(hit: Hit) -> None: ...

    assert "title" not in definition(look).input_schema["$defs"]["Hit"]


def test_the_plugin_says_the_rest_of_itself():
    kit = contract.CodeToolkit()

    plugin = plugin_of(title="Knowledge", description="What we know.", category="search", toolkits=[kit])

    assert (plugin.name, plugin.namespace, plugin.title) == ("knowledge", "kb", "Knowledge")
    assert (plugin.description, plugin.category, plugin.toolkits) == ("What we know.", "search", (kit,))
