"""Tests that an export of decisions has every decision and nothing else, and that applying it keeps what it leaves
out.
"""

from __future__ import annotations

import json
from typing import Any

import hypothesis
import pytest
import yaml
from django.db import transaction
from hypothesis import strategies as st

from tests.control import sample_server
from tests.core import strategies
from tests.plugins.upstream import listing
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.control.config import belt_decisions, belt_texts, belts
from toolbelt.control.servers import decisions, plugins, upstream_servers
from toolbelt.core import belts as core_belts
from toolbelt.core import facts
from toolbelt.plugins import contract, info
from toolbelt.store import entries as rows
from toolbelt.store import snapshots

pytestmark = pytest.mark.django_db
OPERATOR = sample_server.OPERATOR
# Every text that a source states contains it.
STATED = "stated by its source"
SERVERS = ("files", "mail", "wiki")
NAMES = ("read", "write", "send", "find")


def tool(name: str, version: int = 1) -> dict[str, Any]:
    described = listing.tool(name, f"{name} {version}, {STATED}", {"path": {"type": "string"}})
    return {**described, "title": f"{name}, {STATED}", "annotations": {"readOnlyHint": name == "read"}}


class Desk(contract.CodeToolkit):
    key = "desk"
    title = STATED
    members = ("kb__look",)
    policy_when_off = STATED


CODE = info.PluginInfo(
    name="kb",
    namespace="kb",
    title=STATED,
    source="kb.py:Kb",
    tools=tuple(
        contract.ToolDefinition(name=f"kb__{name}", description=STATED) for name in ("look", "keep", "drop")
    ),
    toolkits=(Desk(),),
)


def apply(document: Any) -> belts.Imported:
    return belts.import_(OPERATOR.replace(confirm=True), document)


def unchanged(document: Any) -> bool:
    preview = belts.preview(OPERATOR, document)
    return not (preview.differences or preview.ordered or preview.ignored)


def empty() -> None:
    for model in ("GateRule", "SubApp", "Agent", "Toolkit", "Loadout", "Tool", "Plugin", "Category"):
        getattr(models, model).objects.all().delete()


def test_a_tool_of_a_server_is_exported_by_its_approval() -> None:
    sample_server.add()
    sample_server.record(tool("read"), tool("write"))
    shown = sample_server.shown_digests()
    decisions.approve(OPERATOR, {"files__read": shown["files__read"]}, plugin="files")

    exported = belt_decisions.export()

    approved = sample_server.stored_tool("files__read").approved
    assert exported["tools"] == [{"key": "files__read", "plugin": "files", "approved": approved}]
    assert unchanged(exported)
    assert sample_server.stored_tool("files__write").seen is False


def test_what_a_gate_rule_names_is_exported_with_it() -> None:
    plugins.sync(OPERATOR, [CODE])
    rule = {"key": "careful", "tools": ["kb__look"], "plugins": ["kb"], "when": {"q": {"minLength": 9}}}
    entries.put(OPERATOR, "gate_rule", rule)

    exported = belt_decisions.export()

    assert [tool["key"] for tool in exported["tools"]] == ["kb__look"]
    assert [plugin["name"] for plugin in exported["plugins"]] == ["kb"]
    empty()
    apply(exported)
    assert snapshots.catalog().gate_rules["careful"].plugins == ("kb",)


def test_each_decision_is_a_line() -> None:
    sample_server.add()
    sample_server.record(tool("read"), tool("write"))
    sample_server.approve_all()
    entries.put(OPERATOR, "toolkit", {"key": "reading", "members": ["files__read"], "policy": "One.\nTwo."})
    lines = belt_texts.write_decisions(belt_decisions.export(), "yaml").splitlines()

    entries.change(OPERATOR, "tool", "files__write", {"blocked": True})
    entries.change(OPERATOR, "toolkit", "reading", {"policy": "One.\nThree."})
    after = belt_texts.write_decisions(belt_decisions.export(), "yaml").splitlines()

    assert [line for line in after if line not in lines] == [
        "- {key: files__write, plugin: files, blocked: true, approved: "
        f"'{sample_server.stored_tool('files__write').approved}'}}",
        "    Three.",
    ]
    assert len(after) == len(lines)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_the_text_is_read_as_what_was_written(form: belt_texts.Form) -> None:
    text = " leading\n\n\ttab: #\ntrailing \n"
    entries.put(OPERATOR, "agent", {"key": "ada", "role": text, "description": "- 'a': {b}"})
    exported = belt_decisions.export()
    assert belt_texts.read(belt_texts.write_decisions(exported, form), strictly=True) == exported


def test_a_tool_that_awaits_review_is_not_approved_by_an_entry_without_its_review() -> None:
    sample_server.add()
    sample_server.record(tool("read"))
    apply({"tools": [{"key": "files__read", "plugin": "files", "policy": "Read first."}]})

    now = sample_server.stored_tool("files__read")
    assert (now.seen, now.policy, now.description) == (False, "Read first.", tool("read")["description"])


def test_a_tool_is_unavailable_until_its_server_lists_the_approved_version() -> None:
    sample_server.add()
    sample_server.record(tool("read"))
    sample_server.approve_all()
    exported = belt_decisions.export()
    empty()
    apply(exported)
    assert sample_server.stored_tool("files__read").retired

    assert sample_server.record(tool("read", 2)).held == ("files__read",)
    [change] = upstream_servers.review("files").changes
    assert (change.key, belt_decisions.export()) == ("files__read", exported)

    sample_server.record(tool("read"))
    now = sample_server.stored_tool("files__read")
    assert (now.retired, now.seen, now.approved_version) == (False, True, "")
    assert upstream_servers.review("files").changes == ()


def test_a_rejected_tool_stays_rejected_in_an_empty_database() -> None:
    sample_server.add(trusted=True)
    sample_server.record(tool("write"))
    entries.change(OPERATOR, "plugin", "files", {"trusted": None})
    sample_server.record(tool("write", 2))
    decisions.reject(OPERATOR, sample_server.shown_digests(), plugin="files")
    exported = belt_decisions.export()
    empty()
    apply(exported)
    sample_server.record(tool("write", 2))

    now = sample_server.stored_tool("files__write")
    assert (now.blocked, now.approved.startswith("rejected:")) == (True, True)
    assert upstream_servers.review("files").changes == ()


def test_a_toolkit_in_code_is_named_if_another_follows_it() -> None:
    plugins.sync(OPERATOR, [CODE])
    assert belt_decisions.export() == {}

    entries.put(OPERATOR, "toolkit", {"key": "own"})
    assert belt_decisions.export()["toolkits"] == [{"key": "desk", "plugin": "kb"}, {"key": "own"}]
    assert unchanged(belt_decisions.export())


def test_a_toolkit_in_code_can_be_blocked_by_a_belt() -> None:
    plugins.sync(OPERATOR, [CODE])
    before = entries.read("toolkit", "desk")
    apply({"toolkits": [{"key": "desk", "plugin": "kb", "blocked": True}]})
    assert entries.read("toolkit", "desk") == {**before, "blocked": True}


def test_a_tool_that_an_operator_wrote_is_exported_whole() -> None:
    written = {"key": "own", "plugin": "client", "title": "Own", "description": "Written by an operator."}
    apply({"plugins": [{"name": "client"}], "tools": [written]})
    assert belt_decisions.export()["tools"] == [
        {"key": "own", "title": "Own", "description": "Written by an operator.", "plugin": "client"}
    ]


def listings() -> st.SearchStrategy[dict[str, int]]:
    """Return the versions of the tools that a server lists, by name."""
    return st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2), min_size=1)


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.sampled_from(["Look first.", "Look.\nThen act."]),
        "blocked": st.booleans(),
        "default_on": st.booleans(),
        "category": st.just("web"),
    },
)


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Any]:
    """Return what a few servers list twice, what operators decide meanwhile, and what uses the tools."""
    servers = {
        name: {
            "trusted": draw(st.booleans()),
            "listings": draw(st.lists(listings(), min_size=1, max_size=2)),
            "reviews": draw(
                st.lists(
                    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["approve", "reject"])),
                    min_size=2,
                    max_size=2,
                )
            ),
        }
        for name in draw(st.lists(st.sampled_from(SERVERS), unique=True, min_size=1))
    }
    settings = {name: draw(SETTINGS) for name in ("read", "send", "look", "drop")}
    return {
        "servers": servers,
        "settings": settings,
        "has_code": draw(st.booleans()),
        "syncs_first": draw(st.booleans()),
        "code": draw(
            st.fixed_dictionaries({}, optional={"trusted": st.just(True), "active": st.just(False)})
        ),
        "blocks_desk": draw(st.booleans()),
        "members": draw(st.lists(st.sampled_from(NAMES), unique=True)),
        "tools_config": draw(
            st.dictionaries(st.sampled_from([*NAMES, "look", "own", "desk"]), st.booleans())
        ),
    }


def listed(name: str, versions: dict[str, int]) -> None:
    sample_server.record(*(tool(each, version) for each, version in versions.items()), name=name)


def review(name: str, verdicts: dict[str, str]) -> None:
    for act in ("approve", "reject"):
        shown = {
            key: shown_hash
            for key, shown_hash in sample_server.shown_digests(name).items()
            if verdicts.get(key.partition("__")[2]) == act
        }
        if shown:
            getattr(decisions, act)(OPERATOR, shown, plugin=name)


def keys_of(name: str) -> list[str]:
    return [key for key in snapshots.catalog().tools if key.partition("__")[2] == name]


def happen(history: dict[str, Any]) -> None:
    if history["has_code"] and history["syncs_first"]:
        plugins.sync(OPERATOR, [CODE])
    for name, server in history["servers"].items():
        sample_server.add(name, trusted=server["trusted"])
        for versions, verdicts in zip(server["listings"], server["reviews"], strict=False):
            listed(name, versions)
            review(name, verdicts)
    for name, settings in history["settings"].items():
        for key in keys_of(name):
            entries.change(OPERATOR, "tool", key, settings)
    members = [key for name in history["members"] for key in keys_of(name)]
    entries.put(OPERATOR, "toolkit", {"key": "own", "title": "Own", "members": members})
    if history["has_code"]:
        plugins.sync(OPERATOR, [CODE])
        entries.change(OPERATOR, "plugin", "kb", history["code"])
        entries.change(OPERATOR, "toolkit", "desk", {"blocked": history["blocks_desk"] or None})
    config = {
        key: on
        for name, on in history["tools_config"].items()
        for key in (keys_of(name) or [name] if name in snapshots.catalog().toolkits else keys_of(name))
    }
    agent = {"key": "ada", "tools": members[:1], "tools_config": config}
    entries.put(OPERATOR.replace(confirm=True), "agent", agent)


def list_again(history: dict[str, Any]) -> None:
    for name, server in history["servers"].items():
        listed(name, server["listings"][-1])
    if history["has_code"]:
        plugins.sync(OPERATOR, [CODE])


@pytest.mark.slow
@hypothesis.given(history=histories())
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
def test_decisions_change_nothing_where_they_come_from_and_are_the_same_elsewhere(
    history: dict[str, Any],
) -> None:
    with transaction.atomic():
        happen(history)
        exported = belt_decisions.export()
        whole = belts.export()
        assert unchanged(yaml.safe_load(belt_texts.write_decisions(exported, "yaml")))
        assert STATED not in json.dumps(exported)
        for section, kind in belts.SECTIONS.items():
            for entry in exported.get(section, ()):
                assert not facts.observed(kind, entry)

        empty()
        apply(exported)
        assert belt_decisions.export() == exported
        list_again(history)
        assert belt_decisions.export() == exported
        assert names_available(belts.export()) <= names_available(whole)
        transaction.set_rollback(True)


def names_available(document: dict[str, Any]) -> set[str]:
    """Return the tools that no review holds, blocks or retires."""
    tools = core_belts.load(document, lenient=True).catalog.tools
    return {
        key for key in tools if tools[key].seen and not tools[key].blocked and not tools[key].approved_version
    }


@pytest.mark.slow
@hypothesis.given(document=strategies.documents())
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
def test_decisions_of_any_belt_change_nothing_where_they_come_from(document: dict[str, Any]) -> None:
    with transaction.atomic():
        for kind, about in core_belts.KINDS.items():
            for entry in document.get(about.section, ()):
                rows.write(kind, {"name": entry} if kind == "category" else entry)
        assert unchanged(belt_decisions.export())
        transaction.set_rollback(True)
