"""Tests that a renamed tool keeps its settings, and that no other tool can take them over."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control import sample_server
from tests.plugins.upstream import listing
from toolbelt.control.catalog import entries, renaming
from toolbelt.control.config import belts
from toolbelt.control.servers import upstream_servers
from toolbelt.core import errors
from toolbelt.core.request_key import RequestKey
from toolbelt.core.rules import budgets
from toolbelt.runtime.surfaces import snapshots as runtime_snapshots

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
        taken, _ = runtime_snapshots.take(RequestKey(agent))
        decided = budgets.resolve(taken)
        assert [decided.decision(key).state for key in ("files__read", "files__read_file")] == ["denied"] * 2


def test_temporary_grants_and_denials_end_under_the_new_name_when_they_would_under_the_old_one() -> None:
    early, late = {"at": "2100-01-01T00:00:00Z"}, {"at": "2101-01-01T00:00:00Z"}
    entry = {
        "key": "bob",
        "tools_config": {
            "read": True,
            "write": False,
            "move": True,
            "move_file": True,
            "copy": False,
            "copy_file": False,
        },
        "ends": {"read": early, "write": late, "move": late, "move_file": early, "copy": early},
    }
    names = {"read": "read_file", "write": "write_file", "move": "move_file", "copy": "copy_file"}

    renamed = renaming.renamed("agent", entry, names)

    assert renamed["ends"] == {
        "read_file": early,
        "write": late,
        "write_file": late,
        "move_file": early,
        "copy": early,
    }


def test_a_temporary_grant_does_not_keep_a_denial_from_the_new_name() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ, sample_server.WRITE)
    sample_server.approve_all()
    end = {"at": "2100-01-01T00:00:00Z"}
    bob = {
        "key": "bob",
        "tools_config": {"files__read": True, "files__write": False},
        "ends": {"files__read": end},
    }
    belts.import_(sample_server.OPERATOR, {"agents": [bob]})
    record_renamed()

    assert sample_server.approve_all().problems == ()

    entry = entries.read("agent", "bob")
    assert entry["tools_config"] == {
        "files__read_file": True,
        "files__write": False,
        "files__write_file": False,
    }
    assert entry["ends"] == {"files__read_file": end}


def test_a_denial_by_an_archived_agent_is_carried_over() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ)
    sample_server.approve_all()
    bob = {"key": "bob", "archived": True, "tools_config": {"files__read": False}}
    belts.import_(sample_server.OPERATOR, {"agents": [bob]})
    sample_server.record({**sample_server.READ, "name": "read_file"})

    assert sample_server.approve_all().problems == ()

    assert entries.read("agent", "bob")["tools_config"] == {"files__read": False, "files__read_file": False}


def test_no_renamed_tool_is_approved_if_a_denial_cannot_be_carried_over() -> None:
    sample_server.add()
    extra = listing.tool("list", "List the files.")
    sample_server.record(sample_server.READ, sample_server.WRITE, extra)
    sample_server.approve_all()
    bob = {
        "key": "bob",
        "tools": ["files__read"],
        "tools_config": {"files__write": False},
        "budget": {"max_tools": 1, "on_exceed": "refuse"},
    }
    belts.import_(sample_server.OPERATOR, {"agents": [bob]})
    record_renamed(extra)
    # Takes the place of files__read in the budget, so that files__read_file does not fit into it.
    confirmed = sample_server.OPERATOR.replace(confirm=True)
    entries.change(confirmed, "agent", "bob", {"tools": ["files__read", "files__list"]})

    with pytest.raises(
        errors.Refused, match=r"agents\.bob denies files__write, .*The budget of bob is 1 tool;"
    ):
        sample_server.approve_all()

    assert set(sample_server.shown_digests()) == {"files__read_file", "files__write_file"}


def record_renamed(*others: dict[str, Any]) -> None:
    """Record the list of the server after it has renamed its tools."""
    sample_server.record(
        {**sample_server.READ, "name": "read_file"}, {**sample_server.WRITE, "name": "write_file"}, *others
    )


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
    taken, _ = runtime_snapshots.take(RequestKey("ada"))
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
    assert done.problems == ()
    (created,) = done.created
    assert created.startswith("files__list_")
    assert sample_server.stored_tool(created).upstream_name == "list"
