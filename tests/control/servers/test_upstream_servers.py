"""Tools of upstream servers are imported, and off until they are reviewed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control import offering
from tests.plugins.upstream import listing
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.control.servers import upstream_servers
from toolbelt.core import errors, tool_versions
from toolbelt.store import listings, snapshots

pytestmark = pytest.mark.django_db


def test_a_server_gets_its_name_as_its_namespace_made_to_fit() -> None:
    offering.add("My.files__2")

    assert upstream_servers.find("My.files__2").namespace == "My_files_2"


def test_a_server_of_a_taken_name_is_refused() -> None:
    offering.add()

    with pytest.raises(errors.Refused, match="'files' already exists"):
        offering.add()


def test_what_is_wrong_with_a_connection_is_said_with_its_path() -> None:
    with pytest.raises(errors.Invalid, match=r"plugins\.files\.upstream\.url: A URL begins with https"):
        upstream_servers.add(offering.OPERATOR.actor, "files", {"url": "files.example"})


def test_new_tools_are_off_until_an_operator_has_seen_them() -> None:
    offering.add()

    done = offering.listed(offering.READ, offering.WRITE)

    assert done.created == done.unseen == ("files__read", "files__write")
    assert not offering.stored("files__read").seen
    assert [change.kind for change in upstream_servers.review("files").changes] == ["new", "new"]

    offering.approve_all()

    assert offering.stored("files__read").seen
    assert offering.stored("files__read").approved == tool_versions.version(offering.stored("files__read"))
    assert upstream_servers.review("files").changes == ()


def test_the_new_tools_of_a_trusted_server_count_and_are_held_to_what_they_say() -> None:
    offering.add(trusted=True)

    assert offering.listed(offering.READ).unseen == ()
    assert offering.stored("files__read").approved == tool_versions.version(offering.stored("files__read"))

    assert offering.listed({**offering.READ, "description": "Read all files."}).held == ("files__read",)


def test_the_same_list_again_changes_nothing() -> None:
    offering.add()
    offering.listed(offering.READ, offering.WRITE)
    offering.approve_all()
    before = belts.export()

    done = offering.listed(offering.WRITE, offering.READ)

    assert (done.created, done.changed, done.retired) == ((), (), ())
    assert belts.export() == before


def test_a_tool_that_is_gone_is_retired_and_comes_back_approved() -> None:
    offering.add()
    offering.listed(offering.READ, offering.WRITE)
    offering.approve_all()

    assert offering.listed(offering.READ).retired == ("files__write",)
    assert offering.stored("files__write").retired
    assert offering.only().kind == "gone"

    offering.listed(offering.READ, offering.WRITE)
    assert not offering.stored("files__write").retired
    assert upstream_servers.review("files").changes == ()


def test_of_a_list_that_was_cut_nothing_is_retired() -> None:
    offering.add()
    offering.listed(offering.READ, offering.WRITE)

    assert offering.listed(offering.READ, is_complete=False).retired == ()


def test_a_name_that_another_has_costs_the_server_that_tool_and_both_are_named() -> None:
    belts.import_(offering.OPERATOR, {"tools": [{"key": "read"}], "toolkits": [{"key": "Write"}]})
    offering.add(namespace="")

    done = offering.listed(offering.READ, offering.WRITE, listing.tool("list"))

    assert done.created == ("list",)
    assert offering.told(done) == [
        "tools.read: 'read' is taken by the tool 'read' of operators: the server 'files' does not get it.",
        "tools.write: 'write' is taken by the toolkit 'Write' of operators: the server 'files' does not get it.",
    ]


def test_another_tool_in_the_place_of_an_approved_one_is_held() -> None:
    offering.add()
    offering.listed(listing.tool("a b", "One."))
    offering.approve_all()

    offering.listed(listing.tool("a b", "One."), listing.tool("a_b", "Another."))

    assert offering.only().kind == "changed"


def test_what_could_not_be_taken_stays_to_be_read() -> None:
    offering.add()

    offering.listed(
        offering.READ,
        {"name": "odd", "inputSchema": {"type": "array"}},
        server="Files 2",
        protocol="2026-07-28",
    )

    found = listings.find("files")
    assert found is not None
    assert (found.server, found.protocol, found.tools, found.error) == ("Files 2", "2026-07-28", 2, "")
    assert [problem.path for problem in found.problems] == ["tools.odd"]


def test_a_server_that_could_not_be_asked_has_failed_and_keeps_its_tools() -> None:
    offering.add()
    offering.listed(offering.READ)
    offering.approve_all()

    done = offering.listed(error="No route to host.", stderr="dead")

    (server,) = upstream_servers.servers()
    assert done.error == server.error == "No route to host."
    assert snapshots.catalog().plugins["files"].status == "failed"
    assert not offering.stored("files__read").retired
    assert server.listing is not None
    assert (server.listing.error, server.listing.stderr, server.listing.tools) == (
        "No route to host.",
        "dead",
        1,
    )

    offering.listed(offering.READ)

    assert snapshots.catalog().plugins["files"].status == "ready"
    assert upstream_servers.servers()[0].error == ""


def test_servers_are_listed_with_what_waits_in_each() -> None:
    offering.add()
    offering.add("more")
    offering.listed(offering.READ, offering.WRITE)
    offering.approve_all()
    offering.listed({**offering.READ, "description": "Read more."}, listing.tool("list"))

    files, more = upstream_servers.servers()

    assert dict(files.waiting) == {"changed": 1, "new": 1, "gone": 1}
    assert (files.tools, files.connection.shown) == (2, "https://files.example/mcp")
    assert (more.waiting, more.listing) == ({}, None)


def test_what_a_server_lists_is_audited_as_one_act() -> None:
    offering.add()
    offering.listed(offering.READ, offering.WRITE)

    created = queries.changes(action="tool.create")

    assert {entry.subject_key for entry in created.entries} == {"files__read", "files__write"}
    assert len({entry.batch for entry in created.entries}) == 1
    assert created.entries[0].actor == "olive"


def test_two_thousand_tools_take_no_more_statements_than_a_few(django_assert_max_num_queries: Any) -> None:
    offering.add()
    tools = [listing.tool(f"tool_{n}", f"Does the {n}th thing.") for n in range(2_000)]

    with django_assert_max_num_queries(110):
        done = offering.listed(*tools)

    assert len(done.created) == 2_000
    assert offering.stored("files__tool_7").tokens > 10
    with django_assert_max_num_queries(110):
        assert len(offering.approve_all().keys) == 2_000
