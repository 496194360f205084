"""Tests that the entry that lets an upstream server ask users is created and reviewed like a tool."""

from __future__ import annotations

import pytest

from tests.api.conftest import SETUP
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.servers import approvals, decisions, elicitation, upstream_servers
from toolbelt.core import catalog, errors
from toolbelt.core.imported import importing
from toolbelt.store import snapshots

CONNECTION = {"url": "https://files.example/mcp"}
KEY = "files__elicitation"
LISTED = {"name": "elicitation", "description": "Ask.", "inputSchema": {"type": "object"}}


@pytest.fixture(autouse=True)
def server(transactional_db: None) -> None:
    upstream_servers.add(SETUP, "files", CONNECTION, title="Files", trusted=True)


def stored() -> catalog.Catalog:
    return snapshots.catalog()


def entry() -> catalog.Tool | None:
    return catalog.elicitation(stored(), stored().plugins["files"])


def test_asking_users_awaits_review_even_for_a_trusted_server():
    assert entry() is None
    elicitation.request_review("files")
    elicitation.request_review("files")
    (change,) = approvals.review("files").changes
    assert (change.key, change.kind, change.tool.kind) == (KEY, "new", "elicitation")
    assert not catalog.may_ask(stored(), stored().plugins["files"])
    decisions.approve(SETUP, {KEY: change.version_hash}, plugin="files")
    assert catalog.may_ask(stored(), stored().plugins["files"])


def test_a_rejected_elicitation_does_not_await_review_again():
    elicitation.request_review("files")
    (change,) = approvals.review("files").changes
    decisions.reject(SETUP, {KEY: change.version_hash}, plugin="files")
    elicitation.request_review("files")
    assert not approvals.review("files").to_review
    assert not catalog.may_ask(stored(), stored().plugins["files"])


def test_an_operator_can_create_the_entry_in_advance():
    assert elicitation.ensure_entry(SETUP, "files") == KEY
    assert catalog.may_ask(stored(), stored().plugins["files"])
    assert elicitation.ensure_entry(SETUP, "files") == KEY
    entries.change(SETUP, "tool", KEY, {"retired": True})
    assert not catalog.may_ask(stored(), stored().plugins["files"])
    assert elicitation.ensure_entry(SETUP, "files") == KEY
    assert catalog.may_ask(stored(), stored().plugins["files"])
    with pytest.raises(errors.NotFound):
        elicitation.ensure_entry(SETUP, "nothing")


def test_requesting_review_for_an_unknown_server_does_nothing():
    elicitation.request_review("nothing")
    assert not stored().tools


def test_a_tool_named_elicitation_grants_nothing_and_the_entry_gets_another_key():
    upstream_servers.record(SETUP, "files", importing.ServerListing(tools=(LISTED,)))
    assert stored().tools[KEY].kind == "tool"
    assert entry() is None
    key = elicitation.ensure_entry(SETUP, "files")
    assert key == "files__elicitation_2"
    created = entry()
    assert created is not None
    assert created.key == key


def test_a_listed_tool_neither_replaces_nor_retires_the_entry():
    elicitation.ensure_entry(SETUP, "files")
    recorded = upstream_servers.record(SETUP, "files", importing.ServerListing(tools=(LISTED,)))
    assert recorded.problems == ()
    (key,) = recorded.created
    assert (stored().tools[key].kind, stored().tools[key].upstream_name) == ("tool", "elicitation")
    created = entry()
    assert created is not None
    assert not created.retired
    assert created.description != "Ask."


def test_the_entry_can_be_a_member_of_a_toolkit():
    elicitation.ensure_entry(SETUP, "files")
    belts.import_(
        SETUP,
        {
            "toolkits": [{"key": "asking", "members": [KEY]}],
            "agents": [{"key": "ada", "tools_config": {"asking": True}}],
        },
    )
    assert stored().toolkits["asking"].members[0].tool == KEY
