"""Tests of tools that are rejected when their server first lists them, as decided before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control import sample_server
from toolbelt.control import undo
from toolbelt.control.catalog import entries
from toolbelt.control.servers import upstream_servers
from toolbelt.core import errors, tool_versions
from toolbelt.core.imported import importing
from toolbelt.store import audit, snapshots

pytestmark = pytest.mark.django_db


def listed(*names: str) -> upstream_servers.RecordedTools:
    return sample_server.record(*({**sample_server.READ, "name": name} for name in names))


def server(**lists: Any) -> None:
    sample_server.add()
    entries.change(sample_server.OPERATOR, "plugin", "files", lists)


def rejected() -> list[str]:
    tools = snapshots.catalog().tools.values()
    return [tool.upstream_name or tool.key.removeprefix("files__") for tool in tools if tool.blocked]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({"reject_tools": ["drop_all"]}, ["drop_all"]),
        ({"reject_tools": ["drop*"]}, ["drop_all", "drop_one"]),
        ({"reject_tools": ["*_all"]}, ["drop_all", "read_all"]),
        ({"reject_tools": ["*"]}, ["drop_all", "drop_one", "read_all"]),
        ({"reject_tools": ["Drop_All", "drop", "dro?_all", ".*"]}, []),
        ({"reject_all_but": ["read_all"]}, ["drop_all", "drop_one"]),
        ({"reject_all_but": ["*_all"], "reject_tools": ["drop_*"]}, ["drop_all", "drop_one"]),
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_what_the_lists_leave_out_arrives_rejected(
    lists: dict[str, list[str]], expected: list[str], trusted: bool
) -> None:
    server(**lists)
    entries.change(sample_server.OPERATOR, "plugin", "files", {"trusted": trusted or None})

    recorded = listed("drop_all", "drop_one", "read_all")

    assert rejected() == expected
    assert [key.removeprefix("files__") for key in recorded.rejected] == expected
    tools = snapshots.catalog().tools
    assert all(tool_versions.is_rejected(tools[key]) for key in recorded.rejected)
    in_review = [change.key for change in upstream_servers.review("files").to_review]
    assert in_review == ([] if trusted else sorted({*tools} - {*recorded.rejected}))


def test_a_tool_that_is_listed_later_is_rejected_then() -> None:
    server(reject_all_but=["read_all"])
    listed("read_all")

    assert listed("read_all", "drop_all").rejected == ("files__drop_all",)


def test_a_later_decision_of_an_operator_counts_more() -> None:
    server(reject_tools=["drop_all"])
    listed("drop_all")
    entries.change(sample_server.OPERATOR, "tool", "files__drop_all", {"blocked": None})
    sample_server.approve_all()

    assert listed("drop_all").rejected == ()
    assert rejected() == []


def test_a_version_that_was_approved_in_advance_is_not_rejected() -> None:
    [definition], _ = importing.definitions([{**sample_server.READ, "name": "drop_all"}], "files", "x")
    server(reject_tools=["*"], preapproved={definition.key: definition.version()})

    assert listed("drop_all", "read_all").rejected == ("files__read_all",)


def test_a_rejection_in_advance_is_no_ones_refresh_and_can_be_undone() -> None:
    server(reject_tools=["drop_all"])
    listed("drop_all")

    entry = audit.page(subject_kind="tool", subject_key="files__drop_all", size=1).entries[0]
    assert (entry.action, entry.actor, entry.via) == ("tool.reject", "toolbelt", "system")
    undo.undo(sample_server.OPERATOR, entry.id)
    assert rejected() == []


def test_prompts_are_no_tools() -> None:
    server(reject_tools=["*"])

    assert sample_server.record(non_tools={"prompt": [{"name": "greet"}]}).rejected == ()


def test_only_a_server_lists_tools_to_reject() -> None:
    entry: dict[str, Any] = {"name": "shop", "reject_tools": ["a"]}
    with pytest.raises(errors.Invalid, match="Only the tools that an upstream server lists"):
        entries.create(sample_server.OPERATOR, "plugin", entry)
