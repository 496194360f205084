"""Rows follow the running plugins, but keep the operators' settings."""

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


def live(*tools: str | contract.ToolDefinition, **fields: Any) -> info.PluginInfo:
    offered = tuple(tool(one) if isinstance(one, str) else one for one in tools)
    return info.PluginInfo(
        **{"name": "kb", "namespace": "kb", "source": "kb.py:Kb", "tools": offered, **fields}
    )


READ_WRITE = live("kb__read", "kb__write", toolkits=(Desk(),), title="Knowledge", category="memory")


def sync(*plugin: info.PluginInfo) -> plugins.Synced:
    return plugins.sync(OLIVE, plugin)


def told(done: plugins.Synced) -> list[str]:
    return [str(problem) for problem in done.problems]


def test_a_new_plugin_comes_with_its_tools_and_toolkits_in_one_batch() -> None:
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


def test_a_tool_that_appears_later_is_off_until_it_is_seen_unless_its_plugin_is_trusted() -> None:
    sync(live("kb__read"))

    assert sync(live("kb__read", "kb__write")).unseen == ("kb__write",)
    assert models.Tool.objects.get(key="kb__write").seen is False

    entries.change(OLIVE, "plugin", "kb", {"trusted": True})
    assert sync(live("kb__read", "kb__write", "kb__drop")).unseen == ()
    assert models.Tool.objects.get(key="kb__drop").seen is True
    assert models.Tool.objects.get(key="kb__write").seen is False


def test_what_code_says_of_a_tool_follows_it_and_what_operators_chose_stays() -> None:
    sync(live(tool("kb__read", category="memory", output_schema={"type": "object"})))
    entries.change(
        OLIVE, "tool", "kb__read", {"category": "search", "default_on": True, "policy": "Sparingly."}
    )

    wanted = {"type": "object", "properties": {"q": {"type": "string"}}}
    done = sync(live(tool("kb__read", category="web", description="Reads better.", input_schema=wanted)))

    assert done.changed == ("tool kb__read",)
    assert entries.read("tool", "kb__read") == {
        "key": "kb__read",
        "plugin": "kb",
        "description": "Reads better.",
        "category": "search",
        "default_on": True,
        "input_schema": wanted,
        "policy": "Sparingly.",
    }


def test_a_tool_that_is_gone_is_retired_with_its_switches_and_comes_back() -> None:
    sync(live("kb__read", "kb__write"))
    belts.import_(OLIVE, {"agents": [{"key": "ada", "tools_config": {"kb__write": True}}]})

    assert sync(live("kb__read")).retired == ("kb__write",)
    assert surfaces.ask("ada").because == {}

    sync(live("kb__read", "kb__write"))
    assert list(surfaces.ask("ada").because) == ["kb__write"]


def test_a_tool_whose_name_is_taken_is_reported_with_both_sources_and_the_rest_goes_on() -> None:
    sync(live("kb__read"))
    other = live("kb__read", "other", "CLOCK", name="other", namespace="", source="other.py:Other")
    models.Tool.objects.create(key="clock")

    done = sync(other)

    assert told(done) == [
        "tools.kb__read: 'kb__read' is taken by the tool 'kb__read' of the plugin 'kb': "
        "the plugin 'other' (other.py:Other) does not get it.",
        "tools.CLOCK: 'CLOCK' is taken by the tool 'clock' of operators: "
        "the plugin 'other' (other.py:Other) does not get it.",
    ]
    assert done.created == ("plugin other", "tool other")


def test_a_plugin_whose_namespace_is_taken_is_refused_and_the_others_go_on() -> None:
    models.Plugin.objects.create(name="wiki", namespace="kb")

    done = sync(READ_WRITE, live("mail__send", name="mail", namespace="mail"))

    assert done.created == ("plugin mail", "tool mail__send")
    assert [problem.path for problem in done.problems] == ["plugins.kb.namespace"]
    assert "'wiki'" in told(done)[0]
    assert "kb.py:Kb" in told(done)[0]


def test_a_toolkit_of_operators_is_never_taken_over() -> None:
    models.Toolkit.objects.create(key="desk", policy="Ours.")

    done = sync(READ_WRITE)

    assert models.Toolkit.objects.get().policy == "Ours."
    assert "taken by the toolkit 'desk' of operators" in told(done)[0]


def test_a_member_that_is_nowhere_is_named_and_the_toolkit_goes_without_it() -> None:
    done = sync(READ_WRITE)

    assert [member.tool.key for member in models.Member.objects.all()] == ["kb__read", "kb__write"]
    assert "There is no tool 'clock'" in told(done)[0]


def test_operators_flip_a_toolkit_in_code_and_block_it_and_change_nothing_else() -> None:
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


def test_a_toolkit_that_the_code_no_longer_has_is_left_to_operators() -> None:
    sync(READ_WRITE)

    sync(dataclasses.replace(READ_WRITE, toolkits=()))

    entries.change(OLIVE, "toolkit", "desk", {"policy": "Ours."})
    assert models.Toolkit.objects.get().plugin == ""


def test_a_toolkit_that_the_code_has_again_is_its_own_again() -> None:
    sync(READ_WRITE)
    sync(dataclasses.replace(READ_WRITE, toolkits=()))

    assert "'desk'" not in "".join(told(sync(READ_WRITE)))

    assert models.Toolkit.objects.get().plugin == "kb"


def test_a_toolkit_that_operators_created_anew_stays_theirs() -> None:
    sync(READ_WRITE)
    sync(dataclasses.replace(READ_WRITE, toolkits=()))
    entries.remove(OLIVE, "toolkit", "desk")
    entries.create(OLIVE, "toolkit", {"key": "desk", "policy": "Ours."})

    assert "taken by the toolkit 'desk' of operators" in told(sync(READ_WRITE))[-1]


def test_a_check_names_what_is_taken_and_writes_nothing() -> None:
    models.Plugin.objects.create(name="wiki", namespace="kb")
    models.Toolkit.objects.create(key="post")

    class Post(contract.CodeToolkit):
        key = "post"

    found = plugins.check([READ_WRITE, live("mail__send", name="mail", namespace="mail", toolkits=(Post(),))])

    assert [problem.path for problem in found] == ["plugins.kb.namespace", "toolkits.post"]
    assert not models.Plugin.objects.filter(name="mail").exists()
    assert not models.AuditEntry.objects.exists()


def test_an_exported_configuration_comes_in_again_with_its_toolkits_in_code() -> None:
    sync(READ_WRITE)
    belt = belts.export()

    done = belts.import_(OLIVE, belt)

    assert (done.created, done.changed) == (0, 0)


def test_a_toolkit_of_a_plugin_that_is_nowhere_is_refused() -> None:
    with pytest.raises(errors.Invalid, match=r"toolkits\.desk\.plugin"):
        entries.put(OLIVE, "toolkit", {"key": "desk", "plugin": "ghost"})


def test_a_plugin_that_failed_is_written_so_and_keeps_its_tools() -> None:
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


def test_a_plugin_that_could_not_be_loaded_and_is_not_stored_leaves_nothing() -> None:
    assert sync(info.PluginInfo(name="kb", state="failed", error="no such module")).created == ()
    assert not models.Plugin.objects.exists()


def test_found_broken_is_written_once_and_of_stored_plugins_alone() -> None:
    sync(READ_WRITE)

    plugins.record_failure("kb", "no key")
    plugins.record_failure("kb", "no key at all")
    plugins.record_failure("ghost", "no key")

    assert models.AuditEntry.objects.filter(via="system").count() == 1
    assert plugins.failures() == {"kb": "no key at all"}


def test_enabling_gives_another_chance_and_disabling_takes_all_tools_away() -> None:
    sync(live(tool("kb__read", default_on=True)))
    belts.import_(OLIVE, {"agents": [{"key": "ada"}]})
    plugins.record_failure("kb", "no key")
    assert surfaces.ask("ada").because == {}

    plugins.enable(OLIVE, "kb")
    assert list(surfaces.ask("ada").because) == ["kb__read"]

    plugins.disable(OLIVE.replace(reason="an incident"), "kb")
    assert surfaces.ask("ada").because == {}

    plugins.enable(OLIVE, "kb", [live(tool("kb__read", default_on=True))])
    assert list(surfaces.ask("ada").because) == ["kb__read"]


def test_enabling_a_new_plugin_syncs_it_and_no_other() -> None:
    done = plugins.enable(OLIVE, "kb", [READ_WRITE, live("mail__send", name="mail", namespace="mail")])

    assert "plugin mail" not in done.created
    assert list(plugins.stored()) == ["kb"]


def test_enabling_what_cannot_be_stored_or_found_is_refused() -> None:
    models.Plugin.objects.create(name="wiki", namespace="kb")

    with pytest.raises(errors.Invalid, match="'wiki'"):
        plugins.enable(OLIVE, "kb", [READ_WRITE])
    with pytest.raises(errors.NotFound, match="Did you mean wiki"):
        plugins.enable(OLIVE, "wikis")
