"""The entry that lets an upstream server ask users is created and reviewed like a tool."""

from __future__ import annotations

import pytest

from tests.api.conftest import SETUP
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.servers import approvals, decisions, elicitation, upstream_servers
from toolbelt.core import catalog, errors
from toolbelt.plugins.upstream import importing
from toolbelt.store import snapshots

CONNECTION = {"url": "https://files.example/mcp"}
KEY = "files__elicitation"
LISTED = {"name": "elicitation", "description": "Ask.", "inputSchema": {"type": "object"}}


@pytest.fixture(autouse=True)
def server(transactional_db: None) -> None:
    upstream_servers.add(SETUP.actor, "files", CONNECTION, title="Files", trusted=True)


def stored() -> catalog.Catalog:
    return snapshots.catalog()


def entry() -> catalog.Tool | None:
    return catalog.elicitation(stored(), stored().plugins["files"])


def test_a_server_that_asks_waits_for_review_even_if_it_is_trusted():
    assert entry() is None
    elicitation.request_review("files")
    elicitation.request_review("files")
    (change,) = approvals.review("files").changes
    assert (change.key, change.kind, change.tool.kind) == (KEY, "new", "elicitation")
    assert not catalog.may_ask(stored(), stored().plugins["files"])
    decisions.approve(SETUP.actor, "files", {KEY: change.shown})
    assert catalog.may_ask(stored(), stored().plugins["files"])


def test_one_that_was_rejected_does_not_come_back():
    elicitation.request_review("files")
    (change,) = approvals.review("files").changes
    decisions.reject(SETUP.actor, "files", {KEY: change.shown})
    elicitation.request_review("files")
    assert not approvals.review("files").waiting
    assert not catalog.may_ask(stored(), stored().plugins["files"])


def test_an_operator_makes_it_beforehand():
    assert elicitation.ensure_entry(SETUP, "files") == KEY
    assert catalog.may_ask(stored(), stored().plugins["files"])
    assert elicitation.ensure_entry(SETUP, "files") == KEY
    entries.change(SETUP, "tool", KEY, {"retired": True})
    assert not catalog.may_ask(stored(), stored().plugins["files"])
    assert elicitation.ensure_entry(SETUP, "files") == KEY
    assert catalog.may_ask(stored(), stored().plugins["files"])
    with pytest.raises(errors.NotFound):
        elicitation.ensure_entry(SETUP, "nothing")


def test_a_server_that_was_removed_meanwhile_has_nothing_to_review():
    elicitation.request_review("nothing")
    assert not stored().tools


def test_a_tool_of_that_name_grants_nothing_and_the_entry_has_another_key():
    upstream_servers.record(SETUP.actor, "files", importing.Answer(tools=(LISTED,)))
    assert stored().tools[KEY].kind == "tool"
    assert entry() is None
    key = elicitation.ensure_entry(SETUP, "files")
    assert key == "files__elicitation_2"
    found = entry()
    assert found is not None
    assert found.key == key


def test_what_the_server_lists_neither_takes_the_entry_s_place_nor_retires_it():
    elicitation.ensure_entry(SETUP, "files")
    recorded = upstream_servers.record(SETUP.actor, "files", importing.Answer(tools=(LISTED,)))
    assert [problem.path for problem in recorded.problems] == [f"tools.{KEY}"]
    found = entry()
    assert found is not None
    assert not found.retired
    assert found.description != "Ask."


def test_it_is_granted_as_a_member_of_a_toolkit():
    elicitation.ensure_entry(SETUP, "files")
    belts.import_(
        SETUP,
        {
            "toolkits": [{"key": "asking", "members": [KEY]}],
            "agents": [{"key": "ada", "tools_config": {"asking": True}}],
        },
    )
    assert stored().toolkits["asking"].members[0].tool == KEY
