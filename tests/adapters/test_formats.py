"""Each provider gets the complete surface and the focus of the first step, or an error that names the cause."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.adapters import documents
from tests.adapters.documents import document, focus, taking, tool
from toolbelt import adapters
from toolbelt.core import errors

SEARCH = tool(
    "kb__search",
    title="Search",
    description="Search.",
    input_schema={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    output_schema={"type": "object"},
    annotations={"readOnlyHint": True},
    toolkits=["kb"],
)
PLAIN = document(tool("run", description=" "), SEARCH, policy="Be kind.")
RUN = {"type": "object", "properties": {}}
SCHEMA = SEARCH["input_schema"]

WHOLE: dict[str, Any] = {
    "anthropic": {
        "system": [{"type": "text", "text": "Be kind."}],
        "tools": [
            {"name": "kb__search", "description": "Search.", "input_schema": SCHEMA},
            {"name": "run", "input_schema": RUN},
        ],
        "tool_choice": {"type": "auto"},
    },
    "gemini": {
        "system_instruction": {"parts": [{"text": "Be kind."}]},
        "tools": [
            {
                "function_declarations": [
                    {"name": "kb__search", "description": "Search.", "parameters_json_schema": SCHEMA},
                    {"name": "run", "parameters_json_schema": RUN},
                ]
            }
        ],
        "tool_config": {
            "function_calling_config": {
                "mode": "VALIDATED",
                "allowed_function_names": ["kb__search", "run"],
            }
        },
    },
    "mcp": {
        "instructions": "Be kind.",
        "tools": [
            {
                "name": "kb__search",
                "title": "Search",
                "description": "Search.",
                "inputSchema": SCHEMA,
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
                "_meta": {"toolbelt/toolkits": ["kb"]},
            },
            {"name": "run", "inputSchema": RUN},
        ],
        "toolChoice": {"mode": "auto"},
    },
    "openai_chat": {
        "messages": [{"role": "system", "content": "Be kind."}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "kb__search", "description": "Search.", "parameters": SCHEMA},
            },
            {"type": "function", "function": {"name": "run", "parameters": RUN}},
        ],
        "tool_choice": "auto",
    },
    "openai_responses": {
        "instructions": "Be kind.",
        "tools": [
            {
                "type": "function",
                "name": "kb__search",
                "description": "Search.",
                "parameters": SCHEMA,
                "strict": False,
            },
            {"type": "function", "name": "run", "parameters": RUN, "strict": False},
        ],
        "tool_choice": "auto",
    },
    "vercel": {
        "instructions": "Be kind.",
        "activeTools": ["kb__search", "run"],
        "tools": {
            "kb__search": {"description": "Search.", "inputSchema": SCHEMA},
            "run": {"inputSchema": RUN},
        },
        "toolChoice": "auto",
    },
}
EMPTY: dict[str, Any] = {
    "anthropic": {},
    "gemini": {},
    "mcp": {"tools": [], "toolChoice": {"mode": "none"}},
    "openai_chat": {},
    "openai_responses": {},
    "vercel": {"activeTools": [], "toolChoice": "none", "tools": {}},
}


def render(form: str, given: documents.Document) -> dict[str, Any]:
    """Render, and see that what was given stays as it was and the answer is JSON."""
    before = copy.deepcopy(given)
    said = adapters.render(form, given)
    assert given == before
    assert json.loads(json.dumps(said)) == said
    return said


def problems(form: str, given: documents.Document) -> list[str]:
    with pytest.raises(errors.ProviderLimit) as refused:
        adapters.render(form, given)
    return [str(problem) for problem in refused.value.problems]


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in tools]


@pytest.mark.parametrize("form", adapters.FORMATS)
def test_every_format_says_tools_choice_and_policy_in_its_own_shape(form: str) -> None:
    assert render(form, PLAIN) == WHOLE[form]


@pytest.mark.parametrize("form", adapters.FORMATS)
def test_the_order_in_which_tools_come_changes_nothing(form: str) -> None:
    turned = {**PLAIN, "tools": PLAIN["tools"][::-1]}
    assert json.dumps(render(form, turned)) == json.dumps(render(form, PLAIN))


@pytest.mark.parametrize("form", adapters.FORMATS)
def test_what_there_is_nothing_to_say_of_is_not_said(form: str) -> None:
    assert render(form, document(directive=focus("gone", required=True))) == EMPTY[form]


@pytest.mark.parametrize("form", adapters.FORMATS)
@pytest.mark.parametrize(
    "directive", [None, focus(), focus("gone", required=True), focus("a", "b"), focus("a", "b", "gone")]
)
def test_a_first_step_like_all_others_is_not_told_apart(form: str, directive: Any) -> None:
    assert "first_step" not in render(form, document("a", "b", directive=directive))


@pytest.mark.parametrize("form", adapters.FORMATS)
def test_where_nothing_may_be_called_nothing_is_required(form: str) -> None:
    said = render(form, document("a", tool_choice="none", directive=focus("a", required=True)))
    assert "first_step" not in said
    assert "none" in json.dumps(said).casefold()


NARROW = document("a", "b", "c", "load_tools", directive=focus("a", "b"))
MUST = document("a", "b", "c", "load_tools", directive=focus("a", "b", required=True))
ONE = document("a", "b", directive=focus("a", required=True))
ALL = document("a", "b", directive=focus("a", "b", required=True))


def step(form: str, given: documents.Document) -> dict[str, Any]:
    said = render(form, given)
    first: dict[str, Any] = said["first_step"]
    # It replaces some of what every step is sent, and brings nothing that the next step would have to take back.
    assert first.keys() <= {"system", "instructions", *said}
    assert not first.keys() & {"tools", "activeTools"}
    return first


def test_openai_chat_narrows_the_choice_and_keeps_the_tools() -> None:
    def allowed(mode: str) -> dict[str, Any]:
        named = [{"type": "function", "function": {"name": n}} for n in ("a", "b", "load_tools")]
        return {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": named}}}

    assert step("openai_chat", NARROW) == allowed("auto")
    assert step("openai_chat", MUST) == allowed("required")
    assert step("openai_chat", ONE) == {"tool_choice": {"type": "function", "function": {"name": "a"}}}
    assert step("openai_chat", ALL) == {"tool_choice": "required"}


def test_openai_responses_narrows_the_choice_and_keeps_the_tools() -> None:
    def allowed(mode: str) -> dict[str, Any]:
        named = [{"type": "function", "name": n} for n in ("a", "b", "load_tools")]
        return {"tool_choice": {"type": "allowed_tools", "mode": mode, "tools": named}}

    assert step("openai_responses", NARROW) == allowed("auto")
    assert step("openai_responses", MUST) == allowed("required")
    assert step("openai_responses", ONE) == {"tool_choice": {"type": "function", "name": "a"}}
    assert step("openai_responses", ALL) == {"tool_choice": "required"}


def test_anthropic_keeps_every_definition_and_is_told_the_focus_behind_the_policy() -> None:
    # Without the definitions of the next step, its cache and the thinking that it preserves would be invalid.
    with_policy = document(
        "a", "b", "c", "load_tools", policy="Be kind.", directive=focus("a", "b", required=True)
    )
    said = render("anthropic", with_policy)
    assert said["first_step"]["system"] == [
        *said["system"],
        {"type": "text", "text": "Call one of these tools in your next step: a, b, load_tools."},
    ]
    narrow, must = step("anthropic", NARROW), step("anthropic", MUST)
    assert (
        narrow["system"][-1]["text"]
        == "If you call a tool, call one of these in your next step: a, b, load_tools."
    )
    assert (narrow["tool_choice"], must["tool_choice"]) == ({"type": "auto"}, {"type": "any"})
    assert step("anthropic", ONE) == {"tool_choice": {"type": "tool", "name": "a"}}
    assert step("anthropic", ALL) == {"tool_choice": {"type": "any"}}


def test_gemini_is_held_to_the_names_in_focus_and_never_in_auto() -> None:
    def config(mode: str, *allowed: str) -> dict[str, Any]:
        said = {"mode": mode, "allowed_function_names": [*allowed]}
        return {"tool_config": {"function_calling_config": said}}

    assert step("gemini", NARROW) == config("VALIDATED", "a", "b", "load_tools")
    assert step("gemini", MUST) == config("ANY", "a", "b", "load_tools")
    assert step("gemini", ONE) == config("ANY", "a")
    assert step("gemini", ALL) == config("ANY", "a", "b")


MAY_TEXT = "If you call a tool, call one of these in your next step: a, b, load_tools."
MUST_TEXT = "Call one of these tools in your next step: a, b, load_tools."


def test_vercel_keeps_every_tool_active_and_is_told_the_focus_behind_the_policy() -> None:
    assert step("vercel", NARROW) == {"toolChoice": "auto", "system": MAY_TEXT}
    assert step("vercel", MUST) == {"toolChoice": "required", "system": MUST_TEXT}
    assert step("vercel", {**MUST, "policy": {"text": "Be kind."}})["system"] == f"Be kind.\n\n{MUST_TEXT}"
    assert step("vercel", ONE) == {"toolChoice": {"type": "tool", "toolName": "a"}}
    assert step("vercel", ALL) == {"toolChoice": "required"}


def test_mcp_samples_with_every_tool_and_the_focus_behind_the_policy() -> None:
    assert step("mcp", NARROW) == {"toolChoice": {"mode": "auto"}, "instructions": MAY_TEXT}
    assert step("mcp", MUST) == {"toolChoice": {"mode": "required"}, "instructions": MUST_TEXT}
    assert step("mcp", {**MUST, "policy": {"text": "Be."}})["instructions"] == f"Be.\n\n{MUST_TEXT}"
    assert step("mcp", ALL) == {"toolChoice": {"mode": "required"}}


@pytest.mark.parametrize(("form", "most"), [("openai_chat", 128), ("gemini", 512)])
def test_one_tool_too_many_is_an_error_that_says_how_many_fit(form: str, most: int) -> None:
    fitting = [f"t{number}" for number in range(most - 2)] + ["load_tools", "search_tools"]
    render(form, document(*fitting))
    (problem,) = problems(form, document(*fitting, "z"))
    assert problem.startswith(f"tools: {most + 1} tools are sent, 2 of them meta-tools, but")
    assert f"accepts at most {most}." in problem
    assert f"a budget of {most - 2} tools, which leaves room for 2 meta-tools." in problem


@pytest.mark.parametrize("form", ["anthropic", "mcp", "openai_responses", "vercel"])
def test_where_no_limit_is_known_none_is_made_up(form: str) -> None:
    render(form, document(*(f"t{number}" for number in range(1000))))


@pytest.mark.parametrize("form", ["anthropic", "gemini", "mcp", "openai_chat", "openai_responses"])
def test_a_name_that_a_provider_refuses_is_named(form: str) -> None:
    (problem,) = problems(form, document("über"))
    assert problem.startswith("tools.über.name: ")
    assert problem.endswith("Override the tool off for this agent, or have its provider change it.")


@pytest.mark.parametrize("form", ["anthropic", "gemini", "openai_chat", "openai_responses"])
def test_every_tool_that_does_not_fit_is_named_at_once(form: str) -> None:
    choice = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    said = problems(
        form, document("good", tool("one", input_schema=choice), tool("two", input_schema=choice))
    )
    assert [problem.partition(":")[0] for problem in said] == [
        "tools.one.input_schema",
        "tools.two.input_schema",
    ]
    assert (
        "does not support this schema, and no other form has the same meaning: it has anyOf at its top"
        in said[0]
    )
    assert "Override the tool off for this agent" in said[0]


@pytest.mark.parametrize("form", ["mcp", "vercel"])
def test_a_format_that_takes_every_schema_is_given_it_as_it_is(form: str) -> None:
    schema = {"type": "object", "anyOf": [{"required": ["a"]}, {"$ref": "#/$defs/b"}], "$defs": {"b": {}}}
    said = render(form, taking(**schema))["tools"]
    assert (said["it"] if form == "vercel" else said[0])["inputSchema"] == schema


def test_mcp_is_told_that_arguments_are_an_object() -> None:
    assert render("mcp", taking(properties={}))["tools"][0]["inputSchema"] == {
        "type": "object",
        "properties": {},
    }


def test_mcp_clients_are_asked_to_put_no_argument_into_a_header() -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    place = {"type": "object", "properties": {"region": region, "x-mcp-header": {"type": "string"}}}
    (listed,) = adapters.render("mcp", taking(type="object", properties={"place": place}))["tools"]
    said = listed["inputSchema"]["properties"]["place"]["properties"]
    assert said == {"region": {"type": "string"}, "x-mcp-header": {"type": "string"}}


def test_anthropic_takes_plain_names_of_arguments_and_any_deeper_down() -> None:
    deep = {"properties": {"sort": {"type": "object", "properties": {"$meta": {}}}}}
    assert render("anthropic", taking(**deep))["tools"][0]["input_schema"]["properties"] == deep["properties"]
    (problem,) = problems("anthropic", taking(properties={"filter[id]": {}, "ok": {}}))
    assert "(filter[id])" in problem


def test_openai_is_told_what_arrays_hold() -> None:
    said = render("openai_chat", taking(properties={"a": {"type": "array"}}))
    parameters = said["tools"][0]["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}


def test_gemini_is_sent_nothing_that_refers_and_no_const() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/args",
        "definitions": {
            "args": {"properties": {"k": {"$ref": "#/definitions/kind"}}},
            "kind": {"const": "a"},
        },
    }
    declared = render("gemini", taking(**schema))["tools"][0]["function_declarations"][0]
    assert declared["parameters_json_schema"] == {"type": "object", "properties": {"k": {"enum": ["a"]}}}


@pytest.mark.parametrize("provider", ["anthropic", "openai_chat", "gemini"])
def test_a_list_of_items_of_an_older_draft_is_sent_in_words_of_today(provider: str) -> None:
    point = {"type": "array", "items": [{"type": "number"}], "additionalItems": False}
    sent = json.dumps(render(provider, taking(properties={"at": point})))
    assert '"prefixItems": [{"type": "number"}]' in sent
    assert "additionalItems" not in sent


def test_a_schema_too_deep_to_be_read_is_a_problem_and_no_crash() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"items": deep}
    (problem,) = problems("openai_chat", taking(properties={"a": deep}))
    assert "it is nested too deeply" in problem


@pytest.mark.slow
@pytest.mark.parametrize("inner", [True, {}])
def test_a_schema_too_long_to_be_written_out_is_a_problem(inner: Any) -> None:
    definitions = {f"d{n}": {"prefixItems": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(10)}
    many = {**definitions, "d10": {"prefixItems": [inner] * 5000}}
    (problem,) = problems("gemini", taking(properties={"a": {"$ref": "#/$defs/d0"}}, **{"$defs": many}))
    assert "more than 500000 characters" in problem


def test_an_unknown_format_is_told_the_known_ones() -> None:
    with pytest.raises(errors.Invalid) as refused:
        adapters.render("openai", PLAIN)
    assert str(refused.value) == (
        "format: Unknown format 'openai'. Use one of anthropic, gemini, mcp, openai_chat, openai_responses, vercel."
    )


@pytest.mark.parametrize("form", adapters.FORMATS)
def test_a_mode_that_is_not_there_is_refused(form: str) -> None:
    with pytest.raises(errors.Invalid, match="mode: Unknown mode 'append'"):
        adapters.render(form, PLAIN, "append")


def test_rendering_needs_nothing_but_the_standard_library() -> None:
    asked = "import sys, toolbelt.adapters; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert {"django", "pydantic", "httpx", "jsonschema", "yaml"}.isdisjoint(loaded.split())
    assert "toolbelt" in loaded.split()
