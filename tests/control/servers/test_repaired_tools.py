"""Tests that a tool whose schema was repaired shows that in its review, and that no earlier decision is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control import sample_server
from tests.plugins.upstream import listing
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.servers import upstream_servers
from toolbelt.core import definitions, schema, tool_versions
from toolbelt.core.imported import importing
from toolbelt.store import snapshots

pytestmark = pytest.mark.django_db

# Flawed, and yet a schema that was stored as it is before schemas were repaired.
ACCEPTED = {
    "type": "object",
    "properties": {"q": {"$ref": "#/$defs/Missing"}, "n": {"type": "string", "minLength": 1.0}},
}
REPAIRED = {"type": "object", "properties": {"q": {}, "n": {"type": "string", "minLength": 1}}}


def tool(input_schema: Any, name: str = "find") -> dict[str, Any]:
    return {**listing.tool(name, "Find a file."), "inputSchema": input_schema}


def store_unrepaired(approved: str = "{}") -> str:
    """Store the row of an approved tool as releases before this one did, and return the version that was approved."""
    sample_server.add()
    sample_server.record(tool(ACCEPTED))
    unrepaired = importing.definition(tool(ACCEPTED), "files")
    assert isinstance(unrepaired, importing.Definition)
    version = unrepaired.versions()[1]
    models.Tool.objects.filter(key="files__find").update(
        input_schema=ACCEPTED,
        repairs=None,
        seen=True,
        approved=approved.format(version),
        blocked=":" in approved,
    )
    return version


def test_a_review_shows_repairs_and_what_may_mean_something_else_is_a_finding() -> None:
    sample_server.add()

    sample_server.record(tool({"properties": {"a": {"type": "int"}}, "required": None}))

    change = sample_server.only_change()
    assert change.flags == (
        'inputSchema.properties.a.type: "int" is not a type of JSON Schema; it is read as "integer"',
    )
    assert change.repairs == ("inputSchema.required: null says nothing there, and was left out",)
    assert definitions.of(snapshots.catalog(), "files__find").input_schema == {
        "properties": {"a": {"type": "integer"}}
    }


def test_repairs_are_noted_with_the_listing() -> None:
    sample_server.add()

    recorded = sample_server.record(tool([]))

    assert recorded.problems == ()
    (note,) = upstream_servers.servers()[0].listing.problems  # type: ignore[union-attr]
    assert note.path == "tools.files__find"
    assert note.message == "Its schemas were repaired: inputSchema: [] is read as {}."


def test_other_repairs_of_the_same_result_are_no_change() -> None:
    sample_server.add()
    sample_server.record(tool({"properties": {"a": {"type": "int"}}}))
    sample_server.approve_all()

    held = sample_server.record(tool({"properties": {"a": {"type": "integer"}}})).held

    assert held == ()
    assert sample_server.stored_tool("files__find").repairs == ""
    assert sample_server.record(tool({"properties": {"a": {"type": "file"}}})).held == ("files__find",)


def test_an_approval_covers_the_repairs_that_were_shown() -> None:
    sample_server.add()
    sample_server.record(tool({"properties": {"a": {"type": "int"}}}))
    shown = sample_server.shown_digests()

    sample_server.record(tool({"properties": {"a": {"type": "integer"}}}))

    assert sample_server.shown_digests() != shown


def test_repairs_are_part_of_a_belt() -> None:
    sample_server.add()
    sample_server.record(tool(None))
    exported = belts.export()

    (entry,) = exported["tools"]
    assert entry["repairs"] == {"inputSchema": {"code": "missing", "found": "", "read": "nothing"}}
    assert [*exported["tools"]] == [entries.read("tool", "files__find")]


def test_a_tool_approved_before_schemas_were_repaired_stays_approved() -> None:
    version = store_unrepaired(approved="{}")
    assert not tool_versions.is_changed(sample_server.stored_tool("files__find"))

    recorded = sample_server.record(tool(ACCEPTED))

    now = sample_server.stored_tool("files__find")
    assert (recorded.held, upstream_servers.review("files").changes) == ((), ())
    assert schema.mapping(now.input_schema, {}) == REPAIRED
    assert now.approved == tool_versions.version(now) != version
    assert now.repairs


def test_a_tool_that_was_never_held_stays_available() -> None:
    store_unrepaired(approved="")

    assert sample_server.record(tool(ACCEPTED)).held == ()


def test_another_listing_than_the_approved_one_is_held_after_the_upgrade() -> None:
    store_unrepaired(approved="{}")

    assert sample_server.record(tool({**ACCEPTED, "required": ["q"]})).held == ("files__find",)


def test_a_tool_held_before_the_upgrade_returns_to_its_approved_version() -> None:
    version = store_unrepaired(approved="{}")
    sample_server.record({**tool(ACCEPTED), "description": "Find all."})
    assert sample_server.stored_tool("files__find").approved == version

    sample_server.record(tool(ACCEPTED))

    assert upstream_servers.review("files").changes == ()


def test_a_tool_rejected_before_the_upgrade_stays_rejected() -> None:
    store_unrepaired(approved="rejected:{}")

    sample_server.record(tool(ACCEPTED))

    now = sample_server.stored_tool("files__find")
    assert tool_versions.is_rejected(now)
    assert upstream_servers.review("files").changes == ()


def test_an_approval_in_advance_from_before_the_upgrade_is_valid() -> None:
    version = store_unrepaired()
    models.Tool.objects.all().delete()
    entries.change(sample_server.OPERATOR, "plugin", "files", {"preapproved": {"files__find": version}})

    sample_server.record(tool(ACCEPTED))

    assert sample_server.stored_tool("files__find").seen
    assert upstream_servers.review("files").changes == ()


def test_a_renamed_tool_is_recognized_by_its_texts_from_before_the_upgrade() -> None:
    version = store_unrepaired(approved="{}")

    sample_server.record(tool(ACCEPTED, name="search"))

    assert sample_server.stored_tool("files__search").approved == version
    assert not sample_server.stored_tool("files__search").seen
