"""Tests which entry decides about a URI: never a wider template, if a resource or a narrower template is denied."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import building
from toolbelt.core import prompts_and_resources, uri_templates
from toolbelt.core.rules import budgets, resolution


def resolved(
    entries: dict[str, str], on: tuple[str, ...], off: tuple[str, ...] = (), **more: dict[str, Any]
) -> budgets.Resolution:
    """Return the resolution for an agent that has the entries ``on`` and is denied those ``off``. Entries are URIs or
    templates by key; ``more`` are further fields of an entry.
    """
    tools = [
        building.tool(
            key,
            plugin="files",
            kind="template" if "{" in uri else "resource",
            upstream_name=uri,
            **more.get(key, {}),
        )
        for key, uri in entries.items()
    ]
    agent = building.agent(overrides=dict.fromkeys(on, True) | dict.fromkeys(off, False))
    return budgets.resolve(resolution.Snapshot(catalog=building.catalog_of(tools), agent=agent))


def is_read(state: budgets.Resolution, uri: str) -> bool:
    return prompts_and_resources.find_resource(state, uri) in state.non_tools


DOCS = {"any": "doc://{+name}", "secret": "doc://secret", "users": "doc://users/{id}"}


@pytest.mark.parametrize(
    "uri", ["doc://secret", "doc://sec%72et", "doc://Secret", "doc://secret/", "doc://a/../secret"]
)
def test_a_denied_resource_is_read_in_no_spelling(uri: str):
    state = resolved(DOCS, on=("any",), off=("secret",))
    assert not is_read(state, uri)
    assert is_read(state, "doc://public")


def test_a_denied_resource_is_the_entry_that_decides_about_its_other_spellings():
    state = resolved(DOCS, on=("any",), off=("secret",))
    assert prompts_and_resources.find_resource(state, "doc://SECRET") == "secret"


@pytest.mark.parametrize(
    "uri", ["doc://users/7", "doc://Users/7", "doc://users/a%2Fb", "doc://users//7", "doc://users/+"]
)
def test_a_denied_template_is_not_evaded_through_a_wider_one(uri: str):
    state = resolved(DOCS, on=("any",), off=("users",))
    assert not is_read(state, uri)
    assert is_read(state, "doc://groups/7")


def test_a_granted_template_works_although_a_wider_one_is_denied():
    state = resolved(DOCS, on=("users",), off=("any",))
    assert is_read(state, "doc://users/7")
    assert not is_read(state, "doc://groups/7")


def test_a_granted_resource_is_read_although_a_template_that_matches_it_is_denied():
    assert is_read(resolved(DOCS, on=("secret",), off=("any",)), "doc://secret")


def test_of_two_templates_that_expand_to_the_same_a_denied_one_decides():
    same = {"one": "doc://{a}", "two": "doc://{b}"}
    assert not is_read(resolved(same, on=("one",), off=("two",)), "doc://x")


@pytest.mark.parametrize(
    "unavailable", [{"retired": True}, {"seen": False}, {"approved": "sha256:of something else"}]
)
def test_a_denial_holds_while_its_entry_is_unavailable(unavailable: dict[str, Any]):
    state = resolved(DOCS, on=("any",), off=("secret",), secret=unavailable)
    assert not is_read(state, "doc://secret")


def test_a_listed_uri_is_decided_by_its_own_entry_however_it_is_spelled():
    state = resolved({"a": "note://A", "b": "note://a%7E"}, on=("a", "b"))
    assert is_read(state, "note://A")
    assert is_read(state, "note://a%7E")
    assert not is_read(state, "note://a")


def test_a_completion_is_denied_if_its_values_name_a_denied_entry():
    entries = {"any": "doc://{name}/{part}", "secret": "doc://secret/intro", "own": "doc://mine/{part}"}
    state = resolved(entries, on=("any",), off=("secret", "own"))

    def find(**values: str) -> str | None:
        return prompts_and_resources.find_template(state, "doc://{name}/{part}", values)

    assert find(name="public") == "any"
    assert find(name="secret", part="in") == "any"
    assert find(name="secret", part="intro") == "secret"
    assert find(name="s%65cret", part="Intro") == "secret"
    assert find(name="mine") == "own"
    assert find(name="MINE", part="x") == "own"


@given(st.text("abz%/.?#;@:+25E", min_size=1, max_size=12))
def test_nothing_that_a_denied_template_expands_to_is_read_through_a_wider_one(rest: str):
    uri = f"doc://users/{rest}"
    state = resolved(DOCS, on=("any",), off=("users",))
    if uri_templates.matches(DOCS["users"], uri):
        assert not is_read(state, uri)
