"""Tests that names are validated, and that names from elsewhere are adapted."""

from __future__ import annotations

import hashlib

import pytest

from toolbelt.core import keys


@pytest.mark.parametrize("key", ["a", "_", "git__status", "Read-File", "a" * 64, "x9", "a__b__c"])
def test_a_tool_key_that_every_provider_accepts_is_valid(key: str) -> None:
    assert keys.tool_key_problem(key) is None


@pytest.mark.parametrize("key", ["", "1st", "-x", "a b", "a.b", "é", "a" * 65, "a\n", "a\0"])
def test_a_key_that_some_provider_refuses_is_invalid(key: str) -> None:
    assert keys.tool_key_problem(key) is not None
    assert keys.toolkit_key_problem(key) is not None


@pytest.mark.parametrize("key", [*sorted(keys.RESERVED), "Load_Tools"])
def test_toolbelts_own_names_are_reserved_in_any_case(key: str) -> None:
    assert "reserved" in str(keys.tool_key_problem(key))
    assert "reserved" in str(keys.toolkit_key_problem(key))


@pytest.mark.parametrize("name", ["git__hub", "__", "a__"])
def test_toolkit_keys_and_namespaces_cannot_contain_a_double_underscore(name: str) -> None:
    assert keys.toolkit_key_problem(name) is not None
    assert keys.namespace_problem(name) is not None
    assert keys.tool_key_problem(name) is None


def test_a_namespace_must_leave_room_for_a_tool_name() -> None:
    assert keys.namespace_problem("n" * 61) is None
    assert keys.namespace_problem("n" * 62) is not None


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("Tool.9_-", True),
        ("0", True),
        ("n" * 64, True),
        ("n" * 65, False),
        ("", False),
        ("a b", False),
        ("a\n", False),
        (".", False),
        ("..", False),
        ("...", False),
        (".a", True),
        ("-.", True),
    ],
)
def test_names_of_plugins_loadouts_agents_and_sub_apps_are_validated(name: str, is_valid: bool) -> None:
    assert (keys.name_problem(name) is None) is is_valid


@pytest.mark.parametrize(
    ("key", "is_inside"),
    [
        ("git__status", True),
        ("git__", False),
        ("git_status", False),
        ("gitx__status", False),
        ("Git__status", False),
    ],
)
def test_a_keys_namespace_precedes_its_first_double_underscore(key: str, is_inside: bool) -> None:
    assert keys.in_namespace(key, "git") is is_inside


@pytest.mark.parametrize(
    ("original", "namespace", "fitted"),
    [
        ("list.files", "", "list_files"),
        ("läs fil", "fs", "fs__l_s_fil"),
        ("1st", "", "_1st"),
        ("1st", "ns", "ns__1st"),
        ("", "", "_"),
        ("ok-name", "", "ok-name"),
        ("drive::list", "", "drive_list"),
        ("a_/b", "", "a_b"),
        ("git__push", "", "git__push"),
        ("drive::list", "ns", "ns__drive__list"),
    ],
)
def test_unsupported_characters_become_underscores(original: str, namespace: str, fitted: str) -> None:
    assert keys.fit(original, namespace) == fitted


def test_a_long_name_is_truncated_with_a_distinguishing_hash() -> None:
    name, similar_name = "x" * 90 + "1", "x" * 90 + "2"
    fitted = keys.fit(name, "ns")
    assert len(fitted) == 64
    assert fitted == "ns__" + "x" * 54 + hashlib.sha256(name.encode()).hexdigest()[:6]
    assert fitted != keys.fit(similar_name, "ns")
    assert keys.tool_key_problem(fitted) is None


def test_a_name_with_lone_surrogates_is_adapted_to_a_valid_key() -> None:
    assert keys.tool_key_problem(keys.fit("\ud800" * 70)) is None
