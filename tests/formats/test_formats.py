"""Tests that each provider gets the complete surface and the first step's focus, or an error that names the cause."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.formats import documents
from tests.formats.documents import document, focus, tool, with_schema
from toolbelt import formats
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
TWO_TOOLS = document(tool("run", description=" "), SEARCH, policy="Be kind.")
RUN = {"type": "object", "properties": {}}
SCHEMA = SEARCH["input_schema"]

EXPECTED: dict[str, Any] = {
    "anthropic": {
        "system": [{"type": "text", "text": "Be kind."}],
        "tools": [
            {"name": "kb__search", "description": "Search.", "input_schema": SCHEMA},
            {"name": "run", "input_schema": RUN},
        ],
        "tool_choice": {"type": "auto"},
    },
    "bedrock": {
        "system": [{"text": "Be kind."}],
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "kb__search",
                        "description": "Search.",
                        "inputSchema": {"json": SCHEMA},
                    }
                },
                {"toolSpec": {"name": "run", "inputSchema": {"json": RUN}}},
            ]
        },
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
    "mistral": {
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
    "bedrock": {},
    "gemini": {},
    "mcp": {"tools": [], "toolChoice": {"mode": "none"}},
    "mistral": {},
    "openai_chat": {},
    "openai_responses": {},
    "vercel": {"activeTools": [], "toolChoice": "none", "tools": {}},
}


def render(form: str, given: documents.Document) -> dict[str, Any]:
    """Render; check that the input is not modified and the output is JSON."""
    before = copy.deepcopy(given)
    rendered = formats.render(form, given)
    assert given == before
    assert json.loads(json.dumps(rendered)) == rendered
    return rendered


def problems(form: str, given: documents.Document) -> list[str]:
    with pytest.raises(errors.ProviderLimit) as refused:
        formats.render(form, given)
    return [str(problem) for problem in refused.value.problems]


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


@pytest.mark.parametrize("form", formats.FORMATS)
def test_every_format_renders_tools_tool_choice_and_policy_in_its_own_shape(form: str) -> None:
    assert render(form, TWO_TOOLS) == EXPECTED[form]


@pytest.mark.parametrize("form", formats.FORMATS)
def test_the_order_of_the_tools_does_not_change_the_output(form: str) -> None:
    reversed_tools = {**TWO_TOOLS, "tools": TWO_TOOLS["tools"][::-1]}
    assert json.dumps(render(form, reversed_tools)) == json.dumps(render(form, TWO_TOOLS))


@pytest.mark.parametrize("form", formats.FORMATS)
def test_an_empty_surface_renders_no_empty_parameters(form: str) -> None:
    assert render(form, document(directive=focus("gone", required=True))) == EMPTY[form]


@pytest.mark.parametrize("form", formats.FORMATS)
@pytest.mark.parametrize(
    "directive", [None, focus(), focus("gone", required=True), focus("a", "b"), focus("a", "b", "gone")]
)
def test_a_first_step_without_an_effective_focus_is_omitted(form: str, directive: Any) -> None:
    assert "first_step" not in render(form, document("a", "b", directive=directive))


@pytest.mark.parametrize("form", formats.FORMATS)
def test_a_tool_choice_of_none_overrides_a_required_focus(form: str) -> None:
    rendered = render(form, document("a", tool_choice="none", directive=focus("a", required=True)))
    assert "first_step" not in rendered
    # Bedrock has no such choice: it is not offered the tools.
    assert "none" in json.dumps(rendered).casefold() or rendered == {}


NARROW = document("a", "b", "c", "load_tools", directive=focus("a", "b"))
MUST = document("a", "b", "c", "load_tools", directive=focus("a", "b", required=True))
ONE = document("a", "b", directive=focus("a", required=True))
ALL = document("a", "b", directive=focus("a", "b", required=True))


MAY_TEXT = "If you call a tool, call one of these in your next step: a, b, load_tools."
MUST_TEXT = "Call one of these tools in your next step: a, b, load_tools."
ONE_TEXT, ALL_TEXT = "Call a in your next step.", "Call a tool in your next step."


def step(form: str, given: documents.Document, model: str = "") -> dict[str, Any]:
    rendered = formats.render(form, given, model=model)
    first: dict[str, Any] = rendered["first_step"]
    # The system prompt and the tools are those of every step, and the next step has nothing to undo.
    assert first.keys() <= {"messages", *rendered} - {"tools", "activeTools", "system", "instructions"}
    return first


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def test_openai_chat_narrows_the_choice_of_openais_models_and_keeps_the_tools() -> None:
    def allowed(mode: str) -> dict[str, Any]:
        named = [{"type": "function", "function": {"name": n}} for n in ("a", "b", "load_tools")]
        return {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": named}}}

    assert step("openai_chat", NARROW, "gpt-5.6") == allowed("auto")
    assert step("openai_chat", MUST, "gpt-5.6") == allowed("required")
    only = {"tool_choice": {"type": "function", "function": {"name": "a"}}}
    assert step("openai_chat", ONE, "gpt-5.6") == only
    assert step("openai_chat", ALL, "gpt-5.6") == {"tool_choice": "required"}


@pytest.mark.parametrize("model", ["openai/gpt-5.6", ""])
def test_openai_responses_narrows_the_choice_and_keeps_the_tools(model: str) -> None:
    def allowed(mode: str) -> dict[str, Any]:
        named = [{"type": "function", "name": n} for n in ("a", "b", "load_tools")]
        return {"tool_choice": {"type": "allowed_tools", "mode": mode, "tools": named}}

    assert step("openai_responses", NARROW, model) == allowed("auto")
    assert step("openai_responses", MUST, model) == allowed("required")
    assert step("openai_responses", ONE, model) == {"tool_choice": {"type": "function", "name": "a"}}
    assert step("openai_responses", ALL, model) == {"tool_choice": "required"}


@pytest.mark.parametrize(
    ("form", "model"), [("openai_chat", ""), ("openai_chat", "kimi-k3"), ("openai_responses", "grok-4")]
)
def test_an_unknown_model_reads_the_focus_and_is_not_forced(form: str, model: str) -> None:
    assert step(form, NARROW, model) == said(MAY_TEXT)
    assert step(form, MUST, model) == said(MUST_TEXT)
    assert step(form, ONE, model) == said(ONE_TEXT)
    assert step(form, ALL, model) == said(ALL_TEXT)


@pytest.mark.parametrize(
    ("model", "role", "is_forced"),
    [
        ("", "user", False),
        ("claude-opus-5-5", "system", False),
        ("claude-opus-5-9", "user", False),
        ("claude-haiku-5-5", "system", True),
        ("claude-haiku-4-5", "user", False),
    ],
)
def test_anthropic_keeps_system_and_tools_and_says_the_focus_in_a_message(
    model: str, role: str, is_forced: bool
) -> None:
    def first(text: str, choice: dict[str, str] | None = None) -> dict[str, Any]:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        forced = {"tool_choice": choice} if choice and is_forced else {}
        return {**forced, **({"messages": [message]} if text else {})}

    assert step("anthropic", NARROW, model) == first(MAY_TEXT)
    assert step("anthropic", MUST, model) == first(MUST_TEXT, {"type": "any"})
    only = {"type": "tool", "name": "a"}
    assert step("anthropic", ONE, model) == first("" if is_forced else ONE_TEXT, only)
    assert step("anthropic", ALL, model) == first("" if is_forced else ALL_TEXT, {"type": "any"})


def test_gemini_restricts_calls_to_the_focus_and_never_uses_auto_mode() -> None:
    def config(mode: str, *allowed: str) -> dict[str, Any]:
        calling = {"mode": mode, "allowed_function_names": [*allowed]}
        return {"tool_config": {"function_calling_config": calling}}

    assert step("gemini", NARROW) == config("VALIDATED", "a", "b", "load_tools")
    assert step("gemini", MUST) == config("ANY", "a", "b", "load_tools")
    assert step("gemini", ONE) == config("ANY", "a")
    assert step("gemini", ALL) == config("ANY", "a", "b")
    unknown = {"messages": [{"role": "user", "parts": [{"text": MUST_TEXT}]}]}
    assert step("gemini", MUST, "other-1") == config("VALIDATED", "a", "b", "load_tools") | unknown


def test_bedrock_says_the_focus_in_a_message_and_never_chooses() -> None:
    for given, text in ((NARROW, MAY_TEXT), (MUST, MUST_TEXT), (ONE, ONE_TEXT)):
        expected = {"messages": [{"role": "user", "content": [{"text": text}]}]}
        assert step("bedrock", given, "us.anthropic.claude-haiku-5-5") == expected


def test_mistral_forces_a_call_of_any_tool_and_says_which() -> None:
    assert step("mistral", NARROW) == said(MAY_TEXT)
    assert step("mistral", MUST) == {"tool_choice": "any", **said(MUST_TEXT)}
    assert step("mistral", ONE) == {"tool_choice": {"type": "function", "function": {"name": "a"}}}
    assert step("mistral", ONE, "unknown") == said(ONE_TEXT)


def test_vercel_keeps_every_tool_active_and_says_the_focus_in_a_message() -> None:
    assert step("vercel", NARROW) == said(MAY_TEXT)
    assert step("vercel", MUST) == said(MUST_TEXT)
    assert step("vercel", MUST, "gpt-5.6") == {"toolChoice": "required", **said(MUST_TEXT)}
    assert step("vercel", ONE) == said(ONE_TEXT)
    assert step("vercel", ONE, "gpt-5.6") == {"toolChoice": {"type": "tool", "toolName": "a"}}
    assert step("vercel", ALL, "gpt-5.6") == {"toolChoice": "required"}


def test_mcp_keeps_every_tool_and_says_the_focus_in_a_message() -> None:
    def told(text: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    forced = {"toolChoice": {"mode": "required"}}
    assert step("mcp", NARROW) == told(MAY_TEXT)
    assert step("mcp", MUST) == told(MUST_TEXT)
    assert step("mcp", MUST, "gemini-3-pro") == {**forced, **told(MUST_TEXT)}
    # MCP cannot name the tool.
    assert step("mcp", ONE, "gemini-3-pro") == {**forced, **told(ONE_TEXT)}
    assert step("mcp", ALL, "gemini-3-pro") == forced


@pytest.mark.parametrize(("form", "most"), [("openai_chat", 128), ("gemini", 512)])
def test_exceeding_the_tool_limit_is_an_error_that_states_the_limit(form: str, most: int) -> None:
    fitting = [f"t{number}" for number in range(most - 2)] + ["load_tools", "search_tools"]
    render(form, document(*fitting))
    (problem,) = problems(form, document(*fitting, "z"))
    assert problem.startswith(f"tools: {most + 1} tools are sent, 2 of them meta-tools, but")
    assert f"accepts at most {most}." in problem
    assert f"a budget of {most - 2} tools, which leaves room for the meta-tools." in problem


@pytest.mark.parametrize("form", ["anthropic", "mcp", "openai_responses", "vercel"])
def test_formats_without_a_known_tool_limit_accept_many_tools(form: str) -> None:
    render(form, document(*(f"t{number}" for number in range(1000))))


@pytest.mark.parametrize("form", ["anthropic", "gemini", "mcp", "openai_chat", "openai_responses"])
def test_a_tool_name_that_the_provider_rejects_is_reported(form: str) -> None:
    (problem,) = problems(form, document("über"))
    assert problem.startswith("tools.über.name: ")
    assert problem.endswith("Override the tool off for this agent, or have its provider change it.")


@pytest.mark.parametrize("form", ["anthropic", "gemini", "openai_chat", "openai_responses"])
def test_all_tools_with_unsupported_schemas_are_reported_together(form: str) -> None:
    choice = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    found = problems(
        form, document("good", tool("one", input_schema=choice), tool("two", input_schema=choice))
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "tools.one.input_schema",
        "tools.two.input_schema",
    ]
    assert (
        "does not support this schema, and no other form has the same meaning: it has anyOf at its top"
        in found[0]
    )
    assert "Override the tool off for this agent" in found[0]


@pytest.mark.parametrize("form", ["mcp", "vercel"])
def test_formats_that_accept_any_schema_get_it_unchanged(form: str) -> None:
    schema = {"type": "object", "anyOf": [{"required": ["a"]}, {"$ref": "#/$defs/b"}], "$defs": {"b": {}}}
    tools = render(form, with_schema(**schema))["tools"]
    assert (tools["it"] if form == "vercel" else tools[0])["inputSchema"] == schema


def test_mcp_schemas_get_the_object_type() -> None:
    assert render("mcp", with_schema(properties={}))["tools"][0]["inputSchema"] == {
        "type": "object",
        "properties": {},
    }


def test_mcp_schemas_omit_the_header_annotation_of_arguments() -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    place = {"type": "object", "properties": {"region": region, "x-mcp-header": {"type": "string"}}}
    (tool,) = formats.render("mcp", with_schema(type="object", properties={"place": place}))["tools"]
    arguments = tool["inputSchema"]["properties"]["place"]["properties"]
    assert arguments == {"region": {"type": "string"}, "x-mcp-header": {"type": "string"}}


def test_anthropic_restricts_argument_names_only_at_the_top_level() -> None:
    deep = {"properties": {"sort": {"type": "object", "properties": {"$meta": {}}}}}
    assert (
        render("anthropic", with_schema(**deep))["tools"][0]["input_schema"]["properties"]
        == deep["properties"]
    )
    (problem,) = problems("anthropic", with_schema(properties={"filter[id]": {}, "ok": {}}))
    assert "(filter[id])" in problem


def test_openai_schemas_get_items_for_every_array() -> None:
    rendered = render("openai_chat", with_schema(properties={"a": {"type": "array"}}))
    parameters = rendered["tools"][0]["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}


def test_gemini_schemas_contain_no_references_and_no_const() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/args",
        "definitions": {
            "args": {"properties": {"k": {"$ref": "#/definitions/kind"}}},
            "kind": {"const": "a"},
        },
    }
    declared = render("gemini", with_schema(**schema))["tools"][0]["function_declarations"][0]
    assert declared["parameters_json_schema"] == {"type": "object", "properties": {"k": {"enum": ["a"]}}}


@pytest.mark.parametrize("provider", ["anthropic", "openai_chat", "gemini"])
def test_an_items_list_of_an_older_draft_is_converted_to_prefix_items(provider: str) -> None:
    point = {"type": "array", "items": [{"type": "number"}], "additionalItems": False}
    sent = json.dumps(render(provider, with_schema(properties={"at": point})))
    assert '"prefixItems": [{"type": "number"}]' in sent
    assert "additionalItems" not in sent


def test_a_schema_nested_too_deeply_is_reported_instead_of_crashing() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"items": deep}
    (problem,) = problems("openai_chat", with_schema(properties={"a": deep}))
    assert "it is nested too deeply" in problem


@pytest.mark.slow
@pytest.mark.parametrize("inner", [True, {}])
def test_a_schema_too_large_to_inline_is_reported(inner: Any) -> None:
    definitions = {f"d{n}": {"prefixItems": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(10)}
    many = {**definitions, "d10": {"prefixItems": [inner] * 5000}}
    (problem,) = problems("gemini", with_schema(properties={"a": {"$ref": "#/$defs/d0"}}, **{"$defs": many}))
    assert "more than 500000 characters" in problem


def test_an_unknown_format_error_lists_the_known_formats() -> None:
    with pytest.raises(errors.Invalid) as refused:
        formats.render("openai", TWO_TOOLS)
    assert str(refused.value) == (
        "format: Unknown format 'openai'. Use one of anthropic, bedrock, gemini, mcp, mistral, openai_chat,"
        " openai_responses, vercel."
    )


@pytest.mark.parametrize("form", formats.FORMATS)
def test_an_unknown_mode_is_refused(form: str) -> None:
    with pytest.raises(errors.Invalid, match="mode: Unknown mode 'append'"):
        formats.render(form, TWO_TOOLS, "append")


@pytest.mark.parametrize("form", formats.FORMATS)
def test_no_pattern_makes_a_provider_of_models_refuse_the_list(form: str) -> None:
    rendered = formats.render(form, with_schema(properties={"q": {"type": "string", "pattern": r"^\p{L}$"}}))

    assert ('"pattern"' in json.dumps(rendered)) == (form == "mcp")


def test_a_description_that_is_too_long_for_azure_is_refused_there_only() -> None:
    wordy = document(tool("it", description="d" * 1025))

    with pytest.raises(errors.ProviderLimit, match=r"Azure OpenAI .* 1,024 .* 1,025"):
        formats.render("openai_chat", wordy, model="azure/gpt-5")
    assert formats.render("openai_chat", wordy, model="gpt-5")["tools"]


def test_what_providers_would_refuse_of_a_tool_is_said_without_a_request() -> None:
    assert formats.objections(tool("it")) == ()
    objections = formats.objections(
        tool(
            "a.b", description="d" * 1025, input_schema={"properties": {"q": {"pattern": "[]"}}, "enum": [{}]}
        )
    )

    words = [objection.split(" only accepts")[0].split(" does not support")[0] for objection in objections]
    openai = ["OpenAI's Chat Completions"] * 2 + ["OpenAI's Responses"] * 2
    assert words[:8] == ["Anthropic", "Amazon Bedrock", "Gemini", "Mistral", *openai]
    assert [objection.split()[0] for objection in objections[8:]] == ["Azure", "Its"]


def test_rendering_imports_only_the_standard_library() -> None:
    program = (
        "import sys, toolbelt.adapters; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert {"django", "pydantic", "httpx", "jsonschema", "yaml"}.isdisjoint(loaded.split())
    assert "toolbelt" in loaded.split()
