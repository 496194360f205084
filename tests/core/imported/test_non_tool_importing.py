"""Tests that listed prompts, resources and templates become entries to store, or a problem."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import catalog
from toolbelt.core.imported import importing, non_tool_importing

ARGUMENT = {"name": "topic", "title": "Topic", "description": "What it is about.", "required": True}


def definition_of(kind: catalog.Kind, listed: dict[str, Any], namespace: str = "ns") -> importing.Definition:
    definition = non_tool_importing.definition(kind, listed, namespace)
    assert isinstance(definition, importing.Definition), definition
    return definition


def import_entries(
    kind: catalog.Kind, *listed: dict[str, Any], taken: tuple[str, ...] = ()
) -> tuple[list[str], list[str]]:
    definitions, problems = non_tool_importing.definitions(kind, listed, "ns", "the server 'x'", taken)
    return [definition.key for definition in definitions], [str(problem) for problem in problems]


def test_a_prompt_keeps_its_arguments_in_order() -> None:
    listed = {
        "name": "sum up",
        "title": "Sum up",
        "description": "Sums\u202e up.",
        "arguments": [ARGUMENT, {"name": "length", "x-note": "no"}],
        "icons": [{"src": "https://x.example/i.png"}],
        "_meta": {"a": 1, "toolbelt/x": 2},
    }

    definition = definition_of("prompt", listed)

    assert (definition.key, definition.name, definition.upstream_name) == (
        "ns__prompt_sum_up",
        "sum up",
        "sum up",
    )
    assert (definition.title, definition.description) == ("Sum up", "Sums up.")
    assert definition.details == {
        "arguments": [ARGUMENT, {"name": "length"}],
        "icons": [{"src": "https://x.example/i.png"}],
        "_meta": {"a": 1},
    }


def test_a_resource_is_identified_by_its_uri_and_keeps_its_name_and_type() -> None:
    listed = {
        "uri": "ui://chart/view.html",
        "name": "Chart",
        "mimeType": "text/html;profile=mcp-app",
        "size": 3,
        "annotations": {"audience": ["user"], "priority": 0.4, "lastModified": "2026-01-01"},
    }

    definition = definition_of("resource", listed)

    assert (definition.key, definition.upstream_name) == ("ns__resource_Chart", "ui://chart/view.html")
    assert definition.details == {
        "name": "Chart",
        "mimeType": "text/html;profile=mcp-app",
        "annotations": {"audience": ["user"], "priority": 0.4},
    }


def test_a_template_is_identified_by_its_uri_template() -> None:
    definition = definition_of(
        "template", {"uriTemplate": "db://users/{id}", "name": "user", "mimeType": "nonsense"}
    )

    assert (definition.key, definition.name) == ("ns__template_user", "db://users/{id}")
    assert definition.details == {"name": "user"}


def test_resources_with_the_same_name_get_different_keys() -> None:
    keys, problems = import_entries(
        "resource",
        {"uri": "x://1", "name": "readme"},
        {"uri": "x://2", "name": "readme"},
        {"uri": "x://3", "name": "a"},
    )

    assert len({*keys}) == 3
    assert keys[2] == "ns__resource_a"
    assert all(key.startswith("ns__resource_readme_") for key in keys[:2])
    assert problems == []


def test_a_prompt_does_not_take_the_key_of_a_tool() -> None:
    keys, problems = import_entries("prompt", {"name": "x"}, taken=("ns__prompt_x",))

    assert keys != ["ns__prompt_x"]
    assert keys[0].startswith("ns__prompt_x_")
    assert problems == []


def test_an_entry_listed_twice_is_imported_once() -> None:
    keys, (problem,) = import_entries(
        "resource", {"uri": "x://1", "name": "a"}, {"uri": "x://1", "name": "b"}
    )

    assert keys == ["ns__resource_a"]
    assert "lists it twice" in problem


@pytest.mark.parametrize(
    ("kind", "listed", "reason"),
    [
        ("prompt", {}, "It has no name."),
        ("prompt", {"name": "x" * 300}, "Its name has 300 characters"),
        ("prompt", {"name": "a\u200bb"}, "Its name contains invisible characters."),
        ("prompt", {"name": "a", "arguments": {"topic": {}}}, "Its arguments are not a list"),
        ("prompt", {"name": "a", "arguments": [{"title": "x"}]}, "One of its arguments has no name"),
        (
            "prompt",
            {"name": "a", "arguments": [{"name": "x"}] * 51},
            "Its arguments are not a list of at most 50",
        ),
        ("resource", {"name": "a"}, "It has no uri."),
        ("resource", {"uri": "no uri", "name": "a"}, "Its uri is not a URI."),
        ("resource", {"uri": "toolbelt://policy", "name": "a"}, "which is Toolbelt's own"),
        ("resource", {"uri": "Toolbelt:x", "name": "a"}, "which is Toolbelt's own"),
        ("resource", {"uri": "x://" + "a" * 2_000, "name": "a"}, "Its uri has 2004 characters"),
        ("template", {"uriTemplate": "{+uri}", "name": "a"}, "does not start with a scheme"),
        ("template", {"uriTemplate": "toolbelt://{x}", "name": "a"}, "which is Toolbelt's own"),
    ],
)
def test_an_invalid_entry_is_left_out_with_the_reason(
    kind: catalog.Kind, listed: dict[str, Any], reason: str
) -> None:
    keys, (problem,) = import_entries(
        kind, listed, {"name": "other", "uri": "x://o", "uriTemplate": "x://{o}"}
    )

    assert len(keys) == 1
    assert reason in problem
