"""Tests that listed prompts, resources and templates become entries to store, or a message."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import catalog
from toolbelt.plugins.upstream import importing, non_tool_importing

ARGUMENT = {"name": "topic", "title": "Topic", "description": "What it is about.", "required": True}


def made(kind: catalog.Kind, listed: dict[str, Any], namespace: str = "ns") -> importing.Definition:
    found = non_tool_importing.definition(kind, listed, namespace)
    assert isinstance(found, importing.Definition), found
    return found


def taken(
    kind: catalog.Kind, *listed: dict[str, Any], had: tuple[str, ...] = ()
) -> tuple[list[str], list[str]]:
    found, problems = non_tool_importing.definitions(kind, listed, "ns", "the server 'x'", had)
    return [one.key for one in found], [str(problem) for problem in problems]


def test_a_prompt_is_kept_with_its_arguments_in_their_order() -> None:
    listed = {
        "name": "sum up",
        "title": "Sum up",
        "description": "Sums\u202e up.",
        "arguments": [ARGUMENT, {"name": "length", "x-note": "no"}],
        "icons": [{"src": "https://x.example/i.png"}],
        "_meta": {"a": 1, "toolbelt/x": 2},
    }

    found = made("prompt", listed)

    assert (found.key, found.name, found.upstream_name) == ("ns__prompt_sum_up", "sum up", "sum up")
    assert (found.title, found.description) == ("Sum up", "Sums up.")
    assert found.details == {
        "arguments": [ARGUMENT, {"name": "length"}],
        "icons": [{"src": "https://x.example/i.png"}],
        "_meta": {"a": 1},
    }


def test_a_resource_is_known_by_its_uri_and_keeps_its_name_and_type() -> None:
    listed = {
        "uri": "ui://chart/view.html",
        "name": "Chart",
        "mimeType": "text/html;profile=mcp-app",
        "size": 3,
        "annotations": {"audience": ["user"], "priority": 0.4, "lastModified": "2026-01-01"},
    }

    found = made("resource", listed)

    assert (found.key, found.upstream_name) == ("ns__resource_Chart", "ui://chart/view.html")
    assert found.details == {
        "name": "Chart",
        "mimeType": "text/html;profile=mcp-app",
        "annotations": {"audience": ["user"], "priority": 0.4},
    }


def test_a_template_is_known_by_its_uri_template() -> None:
    found = made("template", {"uriTemplate": "db://users/{id}", "name": "user", "mimeType": "nonsense"})

    assert (found.key, found.name) == ("ns__template_user", "db://users/{id}")
    assert found.details == {"name": "user"}


def test_resources_of_one_name_each_get_a_key_of_their_own() -> None:
    keys, problems = taken(
        "resource",
        {"uri": "x://1", "name": "readme"},
        {"uri": "x://2", "name": "readme"},
        {"uri": "x://3", "name": "a"},
    )

    assert len({*keys}) == 3
    assert keys[2] == "ns__resource_a"
    assert all(key.startswith("ns__resource_readme_") for key in keys[:2])
    assert problems == []


def test_a_key_that_a_tool_has_is_left_to_it() -> None:
    keys, problems = taken("prompt", {"name": "x"}, had=("ns__prompt_x",))

    assert keys != ["ns__prompt_x"]
    assert keys[0].startswith("ns__prompt_x_")
    assert problems == []


def test_what_is_listed_twice_counts_once() -> None:
    keys, (problem,) = taken("resource", {"uri": "x://1", "name": "a"}, {"uri": "x://1", "name": "b"})

    assert keys == ["ns__resource_a"]
    assert "lists it twice" in problem


@pytest.mark.parametrize(
    ("kind", "listed", "said"),
    [
        ("prompt", {}, "It has no name."),
        ("prompt", {"name": "x" * 300}, "Its name has 300 characters"),
        ("prompt", {"name": "a\u200bb"}, "Its name holds characters that cannot be seen."),
        ("prompt", {"name": "a", "arguments": {"topic": {}}}, "Its arguments are no list"),
        ("prompt", {"name": "a", "arguments": [{"title": "x"}]}, "One of its arguments has no name"),
        (
            "prompt",
            {"name": "a", "arguments": [{"name": "x"}] * 51},
            "Its arguments are no list of at most 50",
        ),
        ("resource", {"name": "a"}, "It has no uri."),
        ("resource", {"uri": "no uri", "name": "a"}, "Its uri is no URI."),
        ("resource", {"uri": "toolbelt://policy", "name": "a"}, "which is Toolbelt's own"),
        ("resource", {"uri": "Toolbelt:x", "name": "a"}, "which is Toolbelt's own"),
        ("resource", {"uri": "x://" + "a" * 2_000, "name": "a"}, "Its uri has 2004 characters"),
        ("template", {"uriTemplate": "{+uri}", "name": "a"}, "does not start with a scheme"),
        ("template", {"uriTemplate": "toolbelt://{x}", "name": "a"}, "which is Toolbelt's own"),
    ],
)
def test_what_cannot_be_had_costs_the_server_that_entry(
    kind: catalog.Kind, listed: dict[str, Any], said: str
) -> None:
    keys, (problem,) = taken(kind, listed, {"name": "other", "uri": "x://o", "uriTemplate": "x://{o}"})

    assert len(keys) == 1
    assert said in problem
