"""Tests that a renamed tool keeps its settings, and that no other tool can take them over."""

from __future__ import annotations

import pytest

from tests.control import sample_server
from tests.plugins.upstream import listing
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.servers import upstream_servers
from toolbelt.core import budgets
from toolbelt.runtime import snapshots as runtime_snapshots

pytestmark = pytest.mark.django_db


def test_a_renamed_tool_is_recognized_and_keeps_its_settings() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ, sample_server.WRITE)
    sample_server.approve_all()
    belts.import_(
        sample_server.OPERATOR,
        {
            "toolkits": [
                {
                    "key": "reading",
                    "members": [{"tool": "files__read", "options": {"depth": 1}}, "files__write"],
                    "tool_notes": {"files__read": "Read first."},
                    "triggers": [{"name": "r", "any": ["read"], "focus": ["files__read"]}],
                }
            ],
            "loadouts": [{"name": "house", "disabled": ["FILES__READ"], "discoverable": ["files*"]}],
            "agents": [
                {"key": "ada", "tools": ["files__read"]},
                {"key": "bob", "tools_config": {"files__read": False}},
            ],
            "sub_apps": [{"key": "chat", "tool_names": ["files__read"]}],
        },
    )

    sample_server.record({**sample_server.READ, "name": "read_file"}, sample_server.WRITE)

    change = sample_server.only_change()
    assert (change.kind, change.key, change.previous) == ("renamed", "files__read_file", "files__read")
    assert change.differences == ()
    assert set(change.users) == {"the toolkit reading", "the agent ada", "the agent bob", "the sub-app chat"}

    done = sample_server.approve_all()

    assert done.carried == (("files__read", "files__read_file"),)
    assert done.problems == ()
    reading = entries.read("toolkit", "reading")
    assert reading["members"] == [{"tool": "files__read_file", "options": {"depth": 1}}, "files__write"]
    assert reading["tool_notes"] == {"files__read_file": "Read first."}
    assert reading["triggers"][0]["focus"] == ["files__read_file"]
    assert entries.read("loadout", "house")["disabled"] == ["FILES__READ", "files__read_file"]
    assert entries.read("agent", "ada")["tools"] == ["files__read_file"]
    assert entries.read("agent", "bob")["tools_config"] == {"files__read": False, "files__read_file": False}
    assert entries.read("sub_app", "chat")["tool_names"] == ["files__read_file"]
    assert sample_server.only_change().kind == "gone"
    assert sample_server.only_change().users == ("the agent bob",)


def test_a_denial_survives_repeated_renaming() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ)
    sample_server.approve_all()
    belts.import_(
        sample_server.OPERATOR,
        {
            "loadouts": [{"name": "house", "plugins": ["files"], "disabled": ["files__read"]}],
            "agents": [
                {"key": "ada", "loadout": "house"},
                {"key": "bob", "loadout": "full", "tools_config": {"files__read": False}},
            ],
        },
    )
    sample_server.record({**sample_server.READ, "name": "read_file"})
    sample_server.approve_all()

    sample_server.record(sample_server.READ, {**sample_server.READ, "name": "read_file"})

    assert upstream_servers.review("files").changes == ()
    for agent in ("ada", "bob"):
        taken, _ = runtime_snapshots.take(agent, None, None, None)
        decided = budgets.resolve(taken)
        assert [decided.decision(key).state for key in ("files__read", "files__read_file")] == ["denied"] * 2


def test_a_trusted_servers_renamed_tool_awaits_review_instead_of_counting_as_new() -> None:
    sample_server.add(trusted=True)
    sample_server.record(sample_server.READ)
    entries.change(sample_server.OPERATOR, "tool", "files__read", {"blocked": True})

    done = sample_server.record({**sample_server.READ, "name": "read_file"}, sample_server.WRITE)

    assert done.created == ("files__read_file", "files__write")
    assert done.unseen == ("files__read_file",)
    assert sample_server.only_change().previous == "files__read"
    belts.import_(
        sample_server.OPERATOR,
        {
            "loadouts": [{"name": "house", "plugins": ["files"]}],
            "agents": [{"key": "ada", "loadout": "house"}],
        },
    )
    taken, _ = runtime_snapshots.take("ada", None, None, None)
    assert budgets.resolve(taken).decision("files__read_file").state == "unavailable"
    assert budgets.resolve(taken).decision("files__write").state == "active"

    sample_server.approve_all()
    assert sample_server.stored_tool("files__read_file").blocked


def test_a_trusted_servers_tool_renamed_after_its_removal_awaits_review() -> None:
    sample_server.add(trusted=True)
    sample_server.record(sample_server.READ)
    sample_server.record({**sample_server.READ, "description": "Read two files."})
    sample_server.record()

    assert sample_server.record({**sample_server.READ, "name": "read_file"}).unseen == ("files__read_file",)


def test_a_name_that_only_changes_case_keeps_its_tool_and_awaits_review() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ)
    sample_server.approve_all()

    done = sample_server.record({**sample_server.READ, "name": "Read"})

    assert (done.created, done.retired, done.problems) == ((), (), ())
    assert done.held == ("files__read",)
    assert sample_server.stored_tool("files__read").upstream_name == "Read"
    assert sample_server.only_change().kind == "changed"
    assert sample_server.only_change().flags == ("its server renamed it to “Read”",)

    sample_server.approve_all()
    assert sample_server.record({**sample_server.READ, "name": "Read"}).held == ()
    assert upstream_servers.review("files").changes == ()

    assert sample_server.record(sample_server.READ).held == ("files__read",)
    assert sample_server.stored_tool("files__read").upstream_name == ""


def test_restoring_the_approved_case_of_a_name_needs_no_review() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ)
    sample_server.approve_all()
    sample_server.record({**sample_server.READ, "name": "Read"})

    sample_server.record(sample_server.READ)

    assert sample_server.stored_tool("files__read").upstream_name == ""
    assert upstream_servers.review("files").changes == ()


def test_a_block_is_carried_over_to_the_new_name() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ)
    sample_server.approve_all()
    entries.change(sample_server.OPERATOR, "tool", "files__read", {"blocked": True})

    sample_server.record({**sample_server.READ, "name": "read_file"})
    sample_server.approve_all()

    assert sample_server.stored_tool("files__read_file").blocked


def test_settings_can_be_left_with_the_old_name() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ)
    sample_server.approve_all()
    belts.import_(sample_server.OPERATOR, {"agents": [{"key": "ada", "tools": ["files__read"]}]})
    sample_server.record({**sample_server.READ, "name": "read_file"})

    assert sample_server.approve_all(carry_over=False).carried == ()

    assert entries.read("agent", "ada")["tools"] == ["files__read"]


def test_an_existing_tool_keeps_its_key_when_another_tool_claims_it() -> None:
    sample_server.add()
    entry = {"key": "files__list", "plugin": "files", "upstream_name": "all", "description": "List."}
    belts.import_(sample_server.OPERATOR, {"tools": [entry]})

    done = sample_server.record(listing.tool("list", "Another."), listing.tool("all", "List."))

    assert sample_server.stored_tool("files__list").description == "List."
    assert done.created == ()
    assert sample_server.problem_messages(done) == [
        "tools.files__list: 'files__list' is what the server 'files' lists as 'all': it does not get 'list',"
        " which would have the same key."
    ]
