"""Tests that stored plugins follow the running code, but keep the operators' settings."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.servers import plugins
from toolbelt.core import errors
from toolbelt.plugins import contract, info
from toolbelt.runtime import surfaces

OLIVE = writing.by("olive", via="command")

pytestmark = pytest.mark.django_db


def tool(name: str, **fields: Any) -> contract.ToolDefinition:
    return contract.ToolDefinition(name=name, **{"description": f"Does {name}.", **fields})


class Desk(contract.CodeToolkit):
    key = "desk"
    title = "Desk"
    members = ("kb__read", "kb__write", "clock")
    options = {"kb__read": {"depth": 2}}
    policy_when_off = "No desk."


def plugin_info(*tools: str | contract.ToolDefinition, **fields: Any) -> info.PluginInfo:
    definitions = tuple(
        tool(definition) if isinstance(definition, str) else definition for definition in tools
    )
    return info.PluginInfo(
        **{"name": "kb", "namespace": "kb", "source": "kb.py:Kb", "tools": definitions, **fields}
    )


READ_WRITE = plugin_info("kb__read", "kb__write", toolkits=(Desk(),), title="Knowledge", category="memory")


def sync(*plugin: info.PluginInfo) -> plugins.Synced:
    return plugins.sync(OLIVE, plugin)


def problem_messages(done: plugins.Synced) -> list[str]:
    return [str(problem) for problem in done.problems]


def test_a_new_plugin_is_stored_with_its_tools_and_toolkits_in_one_batch() -> None:
    models.Tool.objects.create(key="clock")

    done = sync(READ_WRITE)

    assert done.created == ("plugin kb", "tool kb__read", "tool kb__write", "toolkit desk")
    assert (done.changed, done.retired, done.unseen, done.problems) == ((), (), (), ())
    assert entries.read("plugin", "kb") == {
        "name": "kb",
        "namespace": "kb",
        "title": "Knowledge",
        "category": "memory",
        "in_code": True,
    }
    assert entries.read("toolkit", "desk") == {
        "key": "desk",
        "title": "Desk",
        "plugin": "kb",
        "members": [{"tool": "kb__read", "options": {"depth": 2}}, "kb__write", "clock"],
        "policy_when_off": "No desk.",
    }
    assert models.AuditEntry.objects.values("batch", "actor").distinct().count() == 1
    assert models.AuditEntry.objects.count() == 4


def test_a_second_sync_writes_nothing() -> None:
    models.Tool.objects.create(key="clock")
    sync(READ_WRITE)
    before = models.Revision.objects.get().number

    done = sync(READ_WRITE)

    assert (done.created, done.changed) == ((), ())
    assert models.Revision.objects.get().number == before


def test_a_tool_added_later_awaits_review_unless_its_plugin_is_trusted() -> None:
    sync(plugin_info("kb__read"))

    assert sync(plugin_info("kb__read", "kb__write")).unseen == ("kb__write",)
    assert models.Tool.objects.get(key="kb__write").seen is False

    entries.change(OLIVE, "plugin", "kb", {"trusted": True})
    assert sync(plugin_info("kb__read", "kb__write", "kb__drop")).unseen == ()
    assert models.Tool.objects.get(key="kb__drop").seen is True
    assert models.Tool.objects.get(key="kb__write").seen is False


def test_a_sync_updates_what_code_defines_and_keeps_what_operators_chose() -> None:
    sync(plugin_info(tool("kb__read", category="memory", output_schema={"type": "object"})))
    entries.change(
        OLIVE, "tool", "kb__read", {"category": "search", "default_on": True, "policy": "Sparingly."}
    )

    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    done = sync(
        plugin_info(tool("kb__read", category="web", description="Reads better.", input_schema=schema))
    )

    assert done.changed == ("tool kb__read",)
    assert entries.read("tool", "kb__read") == {
        "key": "kb__read",
        "plugin": "kb",
        "description": "Reads better.",
        "category": "search",
        "default_on": True,
        "input_schema": schema,
        "policy": "Sparingly.",
    }


def test_a_removed_tool_is_retired_and_returns_with_its_switches() -> None:
    sync(plugin_info("kb__read", "kb__write"))
    belts.import_(OLIVE, {"agents": [{"key": "ada", "tools_config": {"kb__write": True}}]})

    assert sync(plugin_info("kb__read")).retired == ("kb__write",)
    assert surfaces.ask("ada").because == {}

    sync(plugin_info("kb__read", "kb__write"))
    assert list(surfaces.ask("ada").because) == ["kb__write"]


def test_a_tool_with_a_taken_name_is_reported_and_the_rest_is_stored() -> None:
    sync(plugin_info("kb__read"))
    other = plugin_info("kb__read", "other", "CLOCK", name="other", namespace="", source="other.py:Other")
    models.Tool.objects.create(key="clock")

    done = sync(other)

    assert problem_messages(done) == [
        "tools.kb__read: 'kb__read' is taken by the tool 'kb__read' of the plugin 'kb': "
        "the plugin 'other' (other.py:Other) does not get it.",
        "tools.CLOCK: 'CLOCK' is taken by the tool 'clock' of operators: "
        "the plugin 'other' (other.py:Other) does not get it.",
    ]
    assert done.created == ("plugin other", "tool other")


def test_a_plugin_with_a_taken_namespace_is_refused_and_the_rest_is_stored() -> None:
    models.Plugin.objects.create(name="wiki", namespace="kb")

    done = sync(READ_WRITE, plugin_info("mail__send", name="mail", namespace="mail"))

    assert done.created == ("plugin mail", "tool mail__send")
    assert [problem.path for problem in done.problems] == ["plugins.kb.namespace"]
    assert "'wiki'" in problem_messages(done)[0]
    assert "kb.py:Kb" in problem_messages(done)[0]


def test_an_operators_toolkit_is_never_taken_over() -> None:
    models.Toolkit.objects.create(key="desk", policy="Ours.")

    done = sync(READ_WRITE)

    assert models.Toolkit.objects.get().policy == "Ours."
    assert "taken by the toolkit 'desk' of operators" in problem_messages(done)[0]


def test_an_unknown_member_is_reported_and_left_out_of_the_toolkit() -> None:
    done = sync(READ_WRITE)

    assert [member.tool.key for member in models.Member.objects.all()] == ["kb__read", "kb__write"]
    assert "There is no tool 'clock'" in problem_messages(done)[0]


def test_operators_can_only_flip_and_block_a_toolkit_in_code() -> None:
    sync(READ_WRITE)
    belts.import_(OLIVE, {"agents": [{"key": "ada"}]})

    switches.flip(OLIVE.replace(confirm=True), "ada", "desk", True)
    entries.change(OLIVE, "toolkit", "desk", {"blocked": True})
    assert sync(READ_WRITE).changed == ()
    for changes in ({"members": ["kb__read"]}, {"policy": "Ours."}, {"plugin": None}, {"title": "Ours"}):
        with pytest.raises(errors.Invalid, match="code of the plugin 'kb'") as refused:
            entries.change(OLIVE, "toolkit", "desk", changes)
        assert [problem.path for problem in refused.value.problems] == [
            f"toolkits.desk.{next(iter(changes))}"
        ]
    with pytest.raises(errors.Invalid, match=r"toolkits\.desk\.policy"):
        belts.import_(OLIVE, {"toolkits": [{**entries.read("toolkit", "desk"), "policy": "Ours."}]})


def test_a_toolkit_removed_from_the_code_is_left_to_operators() -> None:
    sync(READ_WRITE)

    sync(dataclasses.replace(READ_WRITE, toolkits=()))

    entries.change(OLIVE, "toolkit", "desk", {"policy": "Ours."})
    assert models.Toolkit.objects.get().plugin == ""


def test_a_toolkit_restored_in_the_code_belongs_to_it_again() -> None:
    sync(READ_WRITE)
    sync(dataclasses.replace(READ_WRITE, toolkits=()))

    assert "'desk'" not in "".join(problem_messages(sync(READ_WRITE)))

    assert models.Toolkit.objects.get().plugin == "kb"


def test_a_toolkit_that_operators_recreated_stays_theirs() -> None:
    sync(READ_WRITE)
    sync(dataclasses.replace(READ_WRITE, toolkits=()))
    entries.remove(OLIVE, "toolkit", "desk")
    entries.create(OLIVE, "toolkit", {"key": "desk", "policy": "Ours."})

    assert "taken by the toolkit 'desk' of operators" in problem_messages(sync(READ_WRITE))[-1]


def test_a_check_reports_taken_names_and_writes_nothing() -> None:
    models.Plugin.objects.create(name="wiki", namespace="kb")
    models.Toolkit.objects.create(key="post")

    class Post(contract.CodeToolkit):
        key = "post"

    problems = plugins.check(
        [READ_WRITE, plugin_info("mail__send", name="mail", namespace="mail", toolkits=(Post(),))]
    )

    assert [problem.path for problem in problems] == ["plugins.kb.namespace", "toolkits.post"]
    assert not models.Plugin.objects.filter(name="mail").exists()
    assert not models.AuditEntry.objects.exists()


def test_an_export_with_toolkits_in_code_can_be_imported_again() -> None:
    sync(READ_WRITE)
    belt = belts.export()

    imported = belts.import_(OLIVE, belt)

    assert (imported.created, imported.changed) == (0, 0)


def test_a_toolkit_of_an_unknown_plugin_is_refused() -> None:
    with pytest.raises(errors.Invalid, match=r"toolkits\.desk\.plugin"):
        entries.put(OLIVE, "toolkit", {"key": "desk", "plugin": "ghost"})


def test_a_failed_plugin_stores_its_error_and_keeps_its_tools() -> None:
    sync(READ_WRITE)

    sync(dataclasses.replace(READ_WRITE, state="failed", error="no key"))
    sync(info.PluginInfo(name="kb", state="failed", error="no such module"))

    row = models.Plugin.objects.get()
    assert (row.status, row.error) == ("failed", "no such module")
    assert plugins.failures() == {"kb": "no such module"}
    assert not models.Tool.objects.filter(retired=True).exists()

    sync(READ_WRITE)
    row.refresh_from_db()
    assert (row.status, row.error) == ("ready", "")


def test_a_new_plugin_that_fails_to_load_is_not_stored() -> None:
    assert sync(info.PluginInfo(name="kb", state="failed", error="no such module")).created == ()
    assert not models.Plugin.objects.exists()


def test_a_failure_is_recorded_once_and_only_for_stored_plugins() -> None:
    sync(READ_WRITE)

    plugins.record_failure("kb", "no key")
    plugins.record_failure("kb", "no key at all")
    plugins.record_failure("ghost", "no key")

    assert models.AuditEntry.objects.filter(via="system").count() == 1
    assert plugins.failures() == {"kb": "no key at all"}


def test_enabling_a_failed_plugin_restores_its_tools_and_disabling_removes_them() -> None:
    sync(plugin_info(tool("kb__read", default_on=True)))
    belts.import_(OLIVE, {"agents": [{"key": "ada"}]})
    plugins.record_failure("kb", "no key")
    assert surfaces.ask("ada").because == {}

    plugins.enable(OLIVE, "kb")
    assert list(surfaces.ask("ada").because) == ["kb__read"]

    plugins.disable(OLIVE.replace(reason="an incident"), "kb")
    assert surfaces.ask("ada").because == {}

    plugins.enable(OLIVE, "kb", [plugin_info(tool("kb__read", default_on=True))])
    assert list(surfaces.ask("ada").because) == ["kb__read"]


def test_enabling_a_new_plugin_syncs_only_that_plugin() -> None:
    done = plugins.enable(OLIVE, "kb", [READ_WRITE, plugin_info("mail__send", name="mail", namespace="mail")])

    assert "plugin mail" not in done.created
    assert list(plugins.stored()) == ["kb"]


def test_enabling_an_invalid_or_unknown_plugin_is_refused() -> None:
    models.Plugin.objects.create(name="wiki", namespace="kb")

    with pytest.raises(errors.Invalid, match="'wiki'"):
        plugins.enable(OLIVE, "kb", [READ_WRITE])
    with pytest.raises(errors.NotFound, match="Did you mean wiki"):
        plugins.enable(OLIVE, "wikis")
