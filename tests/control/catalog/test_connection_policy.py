"""A command can only be set on the command line, and web connections only use reserved variables."""

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
RUN = {"command": "mcp-server-git", "args": ["-v"]}
ASKED = {"url": "https://files.example/mcp"}


@pytest.mark.parametrize("write", WEB, ids=lambda write: write.actor.via)
def test_a_command_does_not_come_in_by_the_web(write: writing.Write) -> None:
    with pytest.raises(errors.Refused, match=r"runs code on the server.*TOOLBELT_STDIO_BY_WEB"):
        upstream_servers.add(write.actor, "git", RUN)
    with pytest.raises(errors.Refused, match="runs code on the server"):
        entries.put(write, "plugin", {"name": "git", "upstream": RUN})
    with pytest.raises(errors.Refused, match="runs code on the server"):
        belts.import_(write, {"plugins": [{"name": "git", "upstream": RUN}]})


@pytest.mark.parametrize(
    "changed", [{"command": "sh"}, {"args": ["-c", "x"]}, {"env": {"A": "b"}}, {"cwd": "/"}]
)
def test_no_part_of_a_command_is_changed_by_the_web(changed: dict[str, Any]) -> None:
    upstream_servers.add(SHELL.actor, "git", RUN)

    with pytest.raises(errors.Refused, match="runs code on the server"):
        upstream_servers.reconnect(WEB[0].actor, "git", {**RUN, **changed})


def test_what_is_not_the_command_is_changed_by_any_door() -> None:
    upstream_servers.add(SHELL.actor, "git", {**RUN, "env": {"A": "${A}"}})

    upstream_servers.reconnect(WEB[0].actor, "git", {**RUN, "env": {"A": "${A}"}, "timeout": 5})
    entries.change(WEB[0], "plugin", "git", {"active": False})

    assert entries.read("plugin", "git")["upstream"]["timeout"] == 5


def test_a_command_does_not_come_back_by_undoing_in_the_web() -> None:
    upstream_servers.add(SHELL.actor, "git", RUN)
    upstream_servers.reconnect(SHELL.actor, "git", ASKED)
    newest = queries.changes(action="plugin.change").entries[0]

    with pytest.raises(errors.Refused, match="runs code on the server"):
        undo.undo(WEB[0], newest.id)
    undo.undo(SHELL, newest.id)

    assert entries.read("plugin", "git")["upstream"] == RUN


def test_an_installation_may_let_the_web_do_it(settings: Any) -> None:
    settings.TOOLBELT_STDIO_BY_WEB = True

    upstream_servers.add(WEB[0].actor, "git", RUN)


@pytest.mark.parametrize("write", WEB, ids=lambda write: write.actor.via)
def test_an_address_comes_in_by_any_door_and_by_default_no_variable(write: writing.Write) -> None:
    upstream_servers.add(write.actor, "files", {**ASKED, "headers": {"Accept": "text/event-stream"}})
    for reached in (
        {**ASKED, "headers": {"Authorization": "Bearer ${MCP_FILES}"}},
        {"url": "https://files.example/${MCP_FILES}"},
    ):
        with pytest.raises(errors.Refused, match=r"sent the variable MCP_FILES.*TOOLBELT_WEB_VARIABLES"):
            upstream_servers.add(write.actor, "more", reached)
        upstream_servers.add(SHELL.actor, f"more-{len(reached)}", reached)


def test_a_server_whose_connection_is_refused_by_a_later_rule_can_still_be_switched_off() -> None:
    upstream_servers.add(SHELL.actor, "files", {**ASKED, "headers": {"X-Team": "search"}})
    stored = {**ASKED, "headers": {"X-Team": "search and find"}}
    models.Plugin.objects.filter(name="files").update(upstream=stored)

    entries.change(WEB[0], "plugin", "files", {"active": False})
    assert entries.read("plugin", "files")["active"] is False

    with pytest.raises(errors.Invalid, match="This may be a secret"):
        upstream_servers.reconnect(SHELL.actor, "files", {**stored, "timeout": 5})


def test_variables_are_set_aside_by_how_they_begin(settings: Any) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ["MCP_*"]
    upstream_servers.add(
        WEB[0].actor, "files", {**ASKED, "headers": {"Authorization": "Bearer ${MCP_FILES}"}}
    )


def test_a_variable_that_was_not_set_aside_is_sent_nowhere_by_the_web(settings: Any) -> None:
    given = {**ASKED, "headers": {"Authorization": "Bearer ${AWS_KEY}"}}

    with pytest.raises(errors.Refused, match=r"sent the variable AWS_KEY.*TOOLBELT_WEB_VARIABLES"):
        upstream_servers.add(WEB[0].actor, "files", given)

    upstream_servers.add(SHELL.actor, "files", given)
    with pytest.raises(errors.Refused, match="sent the variable AWS_KEY"):
        upstream_servers.reconnect(WEB[0].actor, "files", {**given, "url": "https://elsewhere.example/"})

    settings.TOOLBELT_WEB_VARIABLES = ["AWS_KEY"]
    upstream_servers.reconnect(WEB[0].actor, "files", {**given, "url": "https://files.example/v2"})
