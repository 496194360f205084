"""Tests that tools of upstream servers are imported, and are off until they are reviewed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control import sample_server
from tests.plugins.upstream import listing
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.control.servers import approvals, upstream_servers
from toolbelt.core import catalog, errors, tool_versions
from toolbelt.store import listings, snapshots

pytestmark = pytest.mark.django_db


def test_a_servers_namespace_is_derived_from_its_name() -> None:
    sample_server.add("My.files__2")

    assert approvals.find("My.files__2", "upstream").namespace == "My_files_2"


def test_a_server_with_a_taken_name_is_refused() -> None:
    sample_server.add()

    with pytest.raises(errors.Refused, match="'files' already exists"):
        sample_server.add()


def test_replacing_a_connection_changes_nothing_else() -> None:
    sample_server.add(title="Files", category="filesystem", namespace="fs")
    before = entries.read("plugin", "files")

    upstream_servers.replace_connection(
        sample_server.OPERATOR, "files", {"command": "uvx", "args": ["mcp-files"]}
    )

    after = entries.read("plugin", "files")
    assert after == {**before, "upstream": {"command": "uvx", "args": ["mcp-files"]}}


def test_an_invalid_connection_is_reported_with_its_path() -> None:
    with pytest.raises(errors.Invalid, match=r"plugins\.files\.upstream\.url: A URL begins with https"):
        upstream_servers.add(sample_server.OPERATOR, "files", {"url": "files.example"})


def test_new_tools_await_review() -> None:
    sample_server.add()

    done = sample_server.record(sample_server.READ, sample_server.WRITE)

    assert done.created == done.unseen == ("files__read", "files__write")
    assert not sample_server.stored_tool("files__read").seen
    assert [change.kind for change in upstream_servers.review("files").changes] == ["new", "new"]

    sample_server.approve_all()

    assert sample_server.stored_tool("files__read").seen
    assert sample_server.stored_tool("files__read").approved == tool_versions.version(
        sample_server.stored_tool("files__read")
    )
    assert upstream_servers.review("files").changes == ()


def test_a_trusted_servers_new_tools_are_approved_and_its_changes_held() -> None:
    sample_server.add(trusted=True)

    assert sample_server.record(sample_server.READ).unseen == ()
    assert sample_server.stored_tool("files__read").approved == tool_versions.version(
        sample_server.stored_tool("files__read")
    )

    assert sample_server.record({**sample_server.READ, "description": "Read all files."}).held == (
        "files__read",
    )


def test_recording_the_same_list_again_changes_nothing() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ, sample_server.WRITE)
    sample_server.approve_all()
    before = belts.export()

    done = sample_server.record(sample_server.WRITE, sample_server.READ)

    assert (done.created, done.changed, done.retired) == ((), (), ())
    assert belts.export() == before


def test_a_removed_tool_is_retired_and_returns_approved() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ, sample_server.WRITE)
    sample_server.approve_all()

    assert sample_server.record(sample_server.READ).retired == ("files__write",)
    assert sample_server.stored_tool("files__write").retired
    assert sample_server.only_change().kind == "gone"

    sample_server.record(sample_server.READ, sample_server.WRITE)
    assert not sample_server.stored_tool("files__write").retired
    assert upstream_servers.review("files").changes == ()


def test_a_truncated_list_retires_nothing() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ, sample_server.WRITE)

    assert sample_server.record(sample_server.READ, is_complete=False).retired == ()


def test_a_tool_with_a_taken_name_is_left_out_and_reported() -> None:
    belts.import_(sample_server.OPERATOR, {"tools": [{"key": "read"}], "toolkits": [{"key": "Write"}]})
    sample_server.add(namespace="")

    done = sample_server.record(sample_server.READ, sample_server.WRITE, listing.tool("list"))

    assert done.created == ("list",)
    assert sample_server.problem_messages(done) == [
        "tools.read: 'read' is taken by the tool 'read' of operators: the server 'files' does not get it.",
        "tools.write: 'write' is taken by the toolkit 'Write' of operators: the server 'files' does not get it.",
    ]


@pytest.mark.parametrize("names", [("a b", "a_b"), ("a_b", "a b"), ("Read", "read")])
def test_an_approved_tool_keeps_its_key_when_a_similar_name_appears(names: tuple[str, str]) -> None:
    sample_server.add()
    first, second = listing.tool(names[0], "One."), listing.tool(names[1], "Another.")
    sample_server.record(first)
    sample_server.approve_all()
    (key,) = snapshots.catalog().tools

    for listed in ((first, second), (second, first)):
        assert sample_server.record(*listed).problems == ()
        assert sample_server.stored_tool(key).description == "One."
        change = sample_server.only_change()
        assert (change.kind, change.tool.description) == ("new", "Another.")
        namespace = snapshots.catalog().plugins["files"].namespace
        assert catalog.name_at_server(change.tool, namespace) == names[1]


def test_problems_of_a_listing_are_stored() -> None:
    sample_server.add()

    sample_server.record(
        sample_server.READ,
        {"name": "odd", "inputSchema": {"default": float("nan")}},
        server="Files 2",
        protocol="2026-07-28",
    )

    stored_listing = listings.find("files")
    assert stored_listing is not None
    assert (stored_listing.server, stored_listing.protocol, stored_listing.tools, stored_listing.error) == (
        "Files 2",
        "2026-07-28",
        2,
        "",
    )
    assert [problem.path for problem in stored_listing.problems] == ["tools.odd"]


def test_an_unreachable_server_is_marked_failed_and_keeps_its_tools() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ)
    sample_server.approve_all()

    done = sample_server.record(error="No route to host.", stderr="dead")

    (server,) = upstream_servers.servers()
    assert done.error == server.error == "No route to host."
    assert snapshots.catalog().plugins["files"].status == "failed"
    assert not sample_server.stored_tool("files__read").retired
    assert server.listing is not None
    assert (server.listing.error, server.listing.stderr, server.listing.tools) == (
        "No route to host.",
        "dead",
        1,
    )

    sample_server.record(sample_server.READ)

    assert snapshots.catalog().plugins["files"].status == "ready"
    assert upstream_servers.servers()[0].error == ""


def test_servers_are_listed_with_their_changes_awaiting_review() -> None:
    sample_server.add()
    sample_server.add("more")
    sample_server.record(sample_server.READ, sample_server.WRITE)
    sample_server.approve_all()
    sample_server.record({**sample_server.READ, "description": "Read more."}, listing.tool("list"))

    files, more = upstream_servers.servers()

    assert dict(files.to_review) == {"changed": 1, "new": 1}
    assert (files.tools, files.connection.shown) == (2, "https://files.example/mcp")
    assert (more.to_review, more.listing) == ({}, None)


def test_a_listing_is_audited_as_one_batch() -> None:
    sample_server.add()
    sample_server.record(sample_server.READ, sample_server.WRITE)

    created = queries.changes(action="tool.appear")

    assert {entry.subject_key for entry in created.entries} == {"files__read", "files__write"}
    assert len({entry.batch for entry in created.entries}) == 1
    observed = created.entries[0]
    assert (observed.actor, observed.actor_kind, observed.asked_by) == ("files", "server", "olive")


def test_recording_a_thousand_tools_takes_few_queries(django_assert_max_num_queries: Any) -> None:
    sample_server.add()
    tools = [listing.tool(f"tool_{n}", f"Does the {n}th thing.") for n in range(1_000)]

    with django_assert_max_num_queries(85):
        done = sample_server.record(*tools)

    assert len(done.created) == 1_000
    assert sample_server.stored_tool("files__tool_7").tokens > 10
    with django_assert_max_num_queries(85):
        assert len(sample_server.approve_all().keys) == 1_000
