"""A renamed tool keeps its settings, and no other tool can take them over."""

from __future__ import annotations

import pytest

from tests.control import offering
from tests.plugins.upstream import listing
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.servers import upstream_servers
from toolbelt.core import budgets
from toolbelt.runtime import snapshots as runtime_snapshots

pytestmark = pytest.mark.django_db


def test_a_tool_under_another_name_is_recognised_and_gets_what_it_had() -> None:
    offering.add()
    offering.listed(offering.READ, offering.WRITE)
    offering.approve_all()
    belts.import_(
        offering.OPERATOR,
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

    offering.listed({**offering.READ, "name": "read_file"}, offering.WRITE)

    change = offering.only()
    assert (change.kind, change.key, change.previous) == ("renamed", "files__read_file", "files__read")
    assert change.differences == ()
    assert set(change.users) == {"the toolkit reading", "the agent ada", "the agent bob", "the sub-app chat"}

    done = offering.approve_all()

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
    assert offering.only().kind == "gone"
    assert offering.only().users == ("the agent bob",)


def test_a_denial_outlasts_a_name_that_comes_and_goes() -> None:
    offering.add()
    offering.listed(offering.READ)
    offering.approve_all()
    belts.import_(
        offering.OPERATOR,
        {
            "loadouts": [{"name": "house", "plugins": ["files"], "disabled": ["files__read"]}],
            "agents": [
                {"key": "ada", "loadout": "house"},
                {"key": "bob", "loadout": "full", "tools_config": {"files__read": False}},
            ],
        },
    )
    offering.listed({**offering.READ, "name": "read_file"})
    offering.approve_all()

    offering.listed(offering.READ, {**offering.READ, "name": "read_file"})

    assert upstream_servers.review("files").changes == ()
    for agent in ("ada", "bob"):
        taken, _ = runtime_snapshots.take(agent, None, None, None)
        decided = budgets.resolve(taken)
        assert [decided.decision(key).state for key in ("files__read", "files__read_file")] == ["denied"] * 2


def test_a_trusted_server_does_not_pass_off_a_tool_that_is_gone_as_a_new_one() -> None:
    offering.add(trusted=True)
    offering.listed(offering.READ)
    entries.change(offering.OPERATOR, "tool", "files__read", {"blocked": True})

    done = offering.listed({**offering.READ, "name": "read_file"}, offering.WRITE)

    assert done.created == ("files__read_file", "files__write")
    assert done.unseen == ("files__read_file",)
    assert offering.only().previous == "files__read"
    belts.import_(
        offering.OPERATOR,
        {
            "loadouts": [{"name": "house", "plugins": ["files"]}],
            "agents": [{"key": "ada", "loadout": "house"}],
        },
    )
    taken, _ = runtime_snapshots.take("ada", None, None, None)
    assert budgets.resolve(taken).decision("files__read_file").state == "unavailable"
    assert budgets.resolve(taken).decision("files__write").state == "active"

    offering.approve_all()
    assert offering.stored("files__read_file").blocked


def test_a_trusted_server_does_not_do_so_in_two_steps_either() -> None:
    offering.add(trusted=True)
    offering.listed(offering.READ)
    offering.listed({**offering.READ, "description": "Read two files."})
    offering.listed()

    assert offering.listed({**offering.READ, "name": "read_file"}).unseen == ("files__read_file",)


def test_a_name_that_changes_in_case_alone_keeps_its_tool_and_is_looked_at() -> None:
    offering.add()
    offering.listed(offering.READ)
    offering.approve_all()

    done = offering.listed({**offering.READ, "name": "Read"})

    assert (done.created, done.retired, done.problems) == ((), (), ())
    assert done.held == ("files__read",)
    assert offering.stored("files__read").upstream_name == "Read"
    assert offering.only().kind == "changed"
    assert offering.only().flags == ("its server renamed it to “Read”",)

    offering.approve_all()
    assert offering.listed({**offering.READ, "name": "Read"}).held == ()
    assert upstream_servers.review("files").changes == ()

    assert offering.listed(offering.READ).held == ("files__read",)
    assert offering.stored("files__read").upstream_name == ""


def test_a_name_that_is_again_in_the_case_it_was_approved_in_is_there_again() -> None:
    offering.add()
    offering.listed(offering.READ)
    offering.approve_all()
    offering.listed({**offering.READ, "name": "Read"})

    offering.listed(offering.READ)

    assert offering.stored("files__read").upstream_name == ""
    assert upstream_servers.review("files").changes == ()


def test_a_block_goes_over_to_the_new_name() -> None:
    offering.add()
    offering.listed(offering.READ)
    offering.approve_all()
    entries.change(offering.OPERATOR, "tool", "files__read", {"blocked": True})

    offering.listed({**offering.READ, "name": "read_file"})
    offering.approve_all()

    assert offering.stored("files__read_file").blocked


def test_what_a_tool_had_can_be_left_with_its_old_name() -> None:
    offering.add()
    offering.listed(offering.READ)
    offering.approve_all()
    belts.import_(offering.OPERATOR, {"agents": [{"key": "ada", "tools": ["files__read"]}]})
    offering.listed({**offering.READ, "name": "read_file"})

    assert offering.approve_all(carry_over=False).carried == ()

    assert entries.read("agent", "ada")["tools"] == ["files__read"]


def test_a_tool_that_is_there_keeps_its_key_whatever_another_one_is_called() -> None:
    offering.add()
    entry = {"key": "files__list", "plugin": "files", "upstream_name": "all", "description": "List."}
    belts.import_(offering.OPERATOR, {"tools": [entry]})

    done = offering.listed(listing.tool("list", "Another."), listing.tool("all", "List."))

    assert offering.stored("files__list").description == "List."
    assert done.created == ()
    assert offering.told(done) == [
        "tools.files__list: 'files__list' is what the server 'files' lists as 'all': it does not get 'list',"
        " which would have the same key."
    ]
