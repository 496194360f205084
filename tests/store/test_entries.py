"""Tests that every kind of entry is read as it was written, and that a write changes nothing else."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from tests import factories
from tests.core import strategies
from toolbelt import models
from toolbelt.core import belts, errors
from toolbelt.store import entries

pytestmark = pytest.mark.django_db


def write_whole(document: dict[str, Any]) -> None:
    for kind, about in belts.KINDS.items():
        for entry in document.get(about.section, ()):
            entries.write(kind, {"name": entry} if kind == "category" else entry)


def in_stored_order(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with tools and rules sorted by key and categories by name, as they are stored."""
    rules = sorted(document.get("gate_rules", ()), key=lambda entry: entry["key"].encode())
    tools = sorted(document.get("tools", ()), key=lambda entry: entry["key"].encode())
    categories = sorted(document.get("categories", ()), key=str.encode)
    return {**document, "tools": tools, "categories": categories, "gate_rules": rules}


def normalized(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document as it is after writing and reading, without empty annotations."""
    written = in_stored_order(belts.dump(belts.load(document)))
    for tool in written["tools"]:
        if tool.get("annotations") == {}:
            del tool["annotations"]
    return written


@hypothesis.given(document=strategies.documents())
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
def test_a_written_belt_is_exported_unchanged(document: dict[str, Any]) -> None:
    with transaction.atomic():
        write_whole(document)
        exported = entries.export()
        expected = normalized(document)
        for kind, about in belts.KINDS.items():
            for entry in expected.get(about.section, ()):
                as_mapping = {"name": entry} if kind == "category" else entry
                assert entries.read(kind, as_mapping[about.named_by or "name"]) == as_mapping
        transaction.set_rollback(True)

    assert in_stored_order(exported) == expected


@hypothesis.given(document=strategies.documents())
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
def test_writing_a_stored_belt_again_writes_nothing(document: dict[str, Any]) -> None:
    with transaction.atomic():
        write_whole(document)
        before = models.Revision.objects.first()
        write_whole(entries.export())
        after = models.Revision.objects.first()
        assert (before and before.number) == (after and after.number)
        transaction.set_rollback(True)


def test_the_number_of_queries_of_an_export_is_constant(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(16):
        assert entries.export() == {}
    factories.everything()
    for number in range(5):
        factories.agent(f"agent{number}")
        factories.toolkit(f"kit{number}", models.Tool.objects.get(key="run"))

    with django_assert_num_queries(16):
        entries.export()


def test_writing_replaces_the_whole_entry() -> None:
    entries.write("plugin", {"name": "git", "title": "Git", "blocked": True, "active": False})

    assert entries.write("plugin", {"name": "git", "description": "x"}) == {"name": "git", "description": "x"}


def test_a_failed_plugin_keeps_its_error_until_it_is_ready() -> None:
    factories.plugin("git", status="failed", error="It did not start.")
    failed = entries.read("plugin", "git")
    assert failed == {"name": "git", "status": "failed"}

    entries.write("plugin", {**failed, "title": "Git"})
    assert models.Plugin.objects.get().error == "It did not start."
    entries.write("plugin", {"name": "git"})

    assert models.Plugin.objects.get().error == ""


def test_a_new_entry_is_placed_last_and_a_changed_one_keeps_its_place() -> None:
    for key in ("c", "a", "b"):
        entries.write("agent", {"key": key})
    entries.write("agent", {"key": "c", "title": "C"})

    assert entries.names("agent") == ["c", "a", "b"]


def test_unchanged_members_keep_their_rows_when_members_change() -> None:
    for key in "abcd":
        factories.tool(key)
    entries.write("toolkit", {"key": "dev", "members": ["a", "b", "c"]})
    member_id = models.Member.objects.get(tool__key="b").pk

    options = {"tool": "b", "options": {"x": 1}}
    stored = entries.write("toolkit", {"key": "dev", "members": ["c", options, "d"]})

    assert stored["members"] == ["c", options, "d"]
    assert models.Member.objects.get(tool__key="b").pk == member_id


def test_gaps_between_positions_are_not_a_change() -> None:
    factories.everything()
    models.Member.objects.filter(tool__key="run").update(position=7)
    stored = entries.read("toolkit", "dev")
    assert stored is not None
    before = models.Revision.objects.get().number

    entries.write("toolkit", stored)

    assert models.Revision.objects.get().number == before


def test_an_integer_changed_to_a_float_is_written() -> None:
    factories.tool("run")
    entries.write("toolkit", {"key": "dev", "members": [{"tool": "run", "options": {"x": 1}}]})

    entries.write("toolkit", {"key": "dev", "members": [{"tool": "run", "options": {"x": 1.0}}]})

    assert repr(models.Member.objects.get().options) == "{'x': 1.0}"


def test_tools_config_is_stored_as_switches_and_overrides_without_nulls() -> None:
    factories.toolkit("dev", factories.tool("run"), factories.tool("think"))
    config = {"dev": True, "run": False, "think": None}

    stored = entries.write("agent", {"key": "ada", "tools_config": config})

    assert stored["tools_config"] == {"dev": True, "run": False}
    assert (models.ToolkitSwitch.objects.count(), models.ToolOverride.objects.count()) == (1, 1)
    entries.write("agent", {"key": "ada"})
    assert (models.ToolkitSwitch.objects.count(), models.ToolOverride.objects.count()) == (0, 0)


def test_initial_toolkits_are_stored_in_the_order_of_the_allowed_toolkits() -> None:
    for key in "abc":
        factories.toolkit(key)

    stored = entries.write(
        "agent", {"key": "ada", "allowed_toolkits": ["c", "a", "b"], "initial_toolkits": ["b", "c"]}
    )

    assert stored["initial_toolkits"] == ["c", "b"]


def test_unknown_names_in_an_entry_are_ignored() -> None:
    entries.write("tool", {"key": "run", "plugin": "ghost"})
    entries.write("toolkit", {"key": "dev", "members": ["run", "ghost"]})
    entries.write("agent", {"key": "ada", "tools": ["ghost"], "tools_config": {"ghost": True, "run": True}})
    entries.write("sub_app", {"key": "chat", "tool_names": ["ghost", "run"], "agents": ["ghost", "ada"]})

    exported = entries.export()
    assert exported["tools"] == [{"key": "run"}]
    assert exported["toolkits"] == [{"key": "dev", "members": ["run"]}]
    assert exported["agents"] == [{"key": "ada", "tools_config": {"run": True}}]
    assert exported["sub_apps"] == [{"key": "chat", "tool_names": ["run"], "agents": ["ada"]}]


def test_an_unknown_entry_reads_as_none_and_cannot_be_deleted() -> None:
    factories.agent("assistant")

    assert entries.read("agent", "asistant") is None
    with pytest.raises(errors.NotFound) as caught:
        entries.delete("agent", "asistant")
    assert caught.value.nearest == ("assistant",)


def test_an_unknown_kind_is_not_found() -> None:
    with pytest.raises(errors.NotFound):
        entries.read("galaxy", "x")


@pytest.mark.parametrize(
    ("kind", "name", "users"),
    [
        ("plugin", "git", ["the tool git__status"]),
        ("tool", "run", ["the toolkit dev", "the agent ada", "the sub-app chat"]),
        ("tool", "git__status", ["the toolkit dev", "the agent ada"]),
        ("toolkit", "dev", ["the agent ada"]),
        ("agent", "ada", ["the sub-app chat"]),
        ("loadout", "house", ["the loadout annex", "the agent ada", "the agent bea"]),
        ("category", "crm", ["the plugin sales", "the tool sell", "the loadout annex"]),
        ("sub_app", "chat", []),
    ],
)
def test_the_users_of_an_entry_are_described(kind: str, name: str, users: list[str]) -> None:
    factories.everything()
    factories.plugin("sales", category="CRM")
    factories.tool("sell", category="crm")
    factories.loadout("annex", parent="House", categories=["Crm"])
    factories.agent("bea", loadout="HOUSE")

    assert entries.users(kind, name) == users


def test_a_sessions_loadout_counts_as_used() -> None:
    factories.loadout("house")
    ada = factories.agent("ada")
    models.AgentSession.objects.create(agent=ada, key="s1", loadout="House")
    models.AgentSession.objects.create(agent=ada, key="s2")

    assert entries.users("loadout", "house") == ["the session s1 of the agent ada"]


def test_a_loadout_that_replaces_a_built_in_one_has_no_users() -> None:
    factories.loadout("Developer")
    factories.agent("ada", loadout="developer")

    assert entries.users("loadout", "Developer") == []


@pytest.mark.parametrize(("kind", "name"), [("plugin", "git"), ("tool", "run"), ("toolkit", "dev")])
def test_deleting_a_used_entry_is_refused_naming_a_user(kind: str, name: str) -> None:
    factories.everything()

    with pytest.raises(errors.Refused) as caught, transaction.atomic():
        entries.delete(kind, name)

    assert entries.users(kind, name)[0] in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "name"), [("agent", "ada"), ("loadout", "house"), ("sub_app", "chat"), ("category", "crm")]
)
def test_an_unused_entry_is_deleted_with_its_own_rows(kind: str, name: str) -> None:
    factories.everything()

    entries.delete(kind, name)

    assert entries.read(kind, name) is None
