"""Tests that commands can only be set on the command line, and that the web only uses reserved variables."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.control.servers import upstream_servers
from toolbelt.core import errors

pytestmark = pytest.mark.django_db

SHELL = writing.by("olive", via="command")
WEB = [writing.by("olive", via=via) for via in ("screen", "admin", "api", "mcp")]
LOCAL = {"command": "mcp-server-git", "args": ["-v"]}
REMOTE = {"url": "https://files.example/mcp"}


@pytest.mark.parametrize("write", WEB, ids=lambda write: write.actor.via)
def test_a_command_cannot_be_added_through_the_web(write: writing.Write) -> None:
    with pytest.raises(errors.Refused, match=r"runs code on the server.*TOOLBELT_STDIO_BY_WEB"):
        upstream_servers.add(write, "git", LOCAL)
    with pytest.raises(errors.Refused, match="runs code on the server"):
        entries.put(write, "plugin", {"name": "git", "upstream": LOCAL})
    with pytest.raises(errors.Refused, match="runs code on the server"):
        belts.import_(write, {"plugins": [{"name": "git", "upstream": LOCAL}]})


def test_the_refusal_names_the_command_that_adds_or_changes_the_server() -> None:
    with pytest.raises(errors.Refused, match=r"set it there, with `.* mcp add git`"):
        upstream_servers.add(WEB[0], "git", LOCAL)
    upstream_servers.add(SHELL, "git", LOCAL)
    with pytest.raises(errors.Refused, match=r"set it there, with `.* mcp add git --replace`"):
        upstream_servers.replace_connection(WEB[0], "git", {"command": "sh"})


@pytest.mark.parametrize(
    "changed", [{"command": "sh"}, {"args": ["-c", "x"]}, {"env": {"A": "b"}}, {"cwd": "/"}]
)
def test_no_part_of_a_command_can_be_changed_through_the_web(changed: dict[str, Any]) -> None:
    upstream_servers.add(SHELL, "git", LOCAL)

    with pytest.raises(errors.Refused, match="runs code on the server"):
        entries.change(WEB[0], "plugin", "git", {"upstream": {**LOCAL, **changed}})


def test_settings_other_than_the_command_can_be_changed_through_the_web() -> None:
    upstream_servers.add(SHELL, "git", {**LOCAL, "env": {"A": "${A}"}})

    entries.change(WEB[0], "plugin", "git", {"upstream": {**LOCAL, "env": {"A": "${A}"}, "timeout": 5}})
    entries.change(WEB[0], "plugin", "git", {"active": False})

    assert entries.read("plugin", "git")["upstream"]["timeout"] == 5


def test_undoing_through_the_web_cannot_restore_a_command() -> None:
    upstream_servers.add(SHELL, "git", LOCAL)
    entries.change(SHELL, "plugin", "git", {"upstream": REMOTE})
    newest = queries.changes(action="plugin.change").entries[0]

    with pytest.raises(errors.Refused, match="runs code on the server"):
        undo.undo(WEB[0], newest.id)
    undo.undo(SHELL, newest.id)

    assert entries.read("plugin", "git")["upstream"] == LOCAL


def test_a_setting_allows_commands_through_the_web(settings: Any) -> None:
    settings.TOOLBELT_STDIO_BY_WEB = True

    upstream_servers.add(WEB[0], "git", LOCAL)


@pytest.mark.parametrize("write", WEB, ids=lambda write: write.actor.via)
def test_a_url_is_accepted_through_the_web_but_by_default_no_variable(write: writing.Write) -> None:
    upstream_servers.add(write, "files", {**REMOTE, "headers": {"Accept": "text/event-stream"}})
    for connection in (
        {**REMOTE, "headers": {"Authorization": "Bearer ${MCP_FILES}"}},
        {"url": "https://files.example/${MCP_FILES}"},
        {**REMOTE, "client_id": "us", "client_secret": "${MCP_FILES}"},
    ):
        with pytest.raises(errors.Refused, match=r"sent the variable MCP_FILES.*TOOLBELT_WEB_VARIABLES"):
            upstream_servers.add(write, "more", connection)
        upstream_servers.add(SHELL, f"more-{len(str(connection))}", connection)


def test_a_server_with_a_connection_that_newer_rules_refuse_can_be_turned_off() -> None:
    upstream_servers.add(SHELL, "files", {**REMOTE, "headers": {"X-Team": "search"}})
    stored = {**REMOTE, "headers": {"X-Team": "search and find"}}
    models.Plugin.objects.filter(name="files").update(upstream=stored)

    entries.change(WEB[0], "plugin", "files", {"active": False})
    assert entries.read("plugin", "files")["active"] is False

    with pytest.raises(errors.Invalid, match="This may be a secret"):
        entries.change(SHELL, "plugin", "files", {"upstream": {**stored, "timeout": 5}})


def test_web_variables_are_reserved_by_prefix(settings: Any) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ["MCP_*"]
    upstream_servers.add(WEB[0], "files", {**REMOTE, "headers": {"Authorization": "Bearer ${MCP_FILES}"}})


def test_a_variable_that_is_not_reserved_cannot_be_used_through_the_web(settings: Any) -> None:
    connection = {**REMOTE, "headers": {"Authorization": "Bearer ${AWS_KEY}"}}

    with pytest.raises(errors.Refused, match=r"sent the variable AWS_KEY.*TOOLBELT_WEB_VARIABLES"):
        upstream_servers.add(WEB[0], "files", connection)

    upstream_servers.add(SHELL, "files", connection)
    with pytest.raises(errors.Refused, match="sent the variable AWS_KEY"):
        entries.change(
            WEB[0], "plugin", "files", {"upstream": {**connection, "url": "https://elsewhere.example/"}}
        )

    settings.TOOLBELT_WEB_VARIABLES = ["AWS_KEY"]
    entries.change(WEB[0], "plugin", "files", {"upstream": {**connection, "url": "https://files.example/v2"}})
