"""Does a command come in by a shell alone, and no variable go out by the web that was not set aside?"""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt import models
from toolbelt.control import actors, belts, entries, queries, undo, upstreams
from toolbelt.core import errors

pytestmark = pytest.mark.django_db

SHELL = actors.Actor(name="olive", via="command")
WEB = [actors.Actor(name="olive", via=via) for via in ("screen", "admin", "api", "mcp")]
RUN = {"command": "mcp-server-git", "args": ["-v"]}
ASKED = {"url": "https://files.example/mcp"}


@pytest.mark.parametrize("actor", WEB, ids=lambda actor: actor.via)
def test_a_command_does_not_come_in_by_the_web(actor: actors.Actor) -> None:
    with pytest.raises(errors.Refused, match=r"code that runs on the server.*TOOLBELT_STDIO_BY_WEB"):
        upstreams.add(actor, "git", RUN)
    with pytest.raises(errors.Refused, match="code that runs on the server"):
        entries.put(actor, "plugin", {"name": "git", "upstream": RUN})
    with pytest.raises(errors.Refused, match="code that runs on the server"):
        belts.import_(actor, {"plugins": [{"name": "git", "upstream": RUN}]})


@pytest.mark.parametrize(
    "changed", [{"command": "sh"}, {"args": ["-c", "x"]}, {"env": {"A": "b"}}, {"cwd": "/"}]
)
def test_no_part_of_a_command_is_changed_by_the_web(changed: dict[str, Any]) -> None:
    upstreams.add(SHELL, "git", RUN)

    with pytest.raises(errors.Refused, match="code that runs on the server"):
        upstreams.reconnect(WEB[0], "git", {**RUN, **changed})


def test_what_is_not_the_command_is_changed_by_any_door() -> None:
    upstreams.add(SHELL, "git", {**RUN, "env": {"A": "${A}"}})

    upstreams.reconnect(WEB[0], "git", {**RUN, "env": {"A": "${A}"}, "timeout": 5})
    entries.change(WEB[0], "plugin", "git", {"active": False})

    assert entries.read("plugin", "git")["upstream"]["timeout"] == 5


def test_a_command_does_not_come_back_by_undoing_in_the_web() -> None:
    upstreams.add(SHELL, "git", RUN)
    upstreams.reconnect(SHELL, "git", ASKED)
    newest = queries.changes(action="plugin.change").entries[0]

    with pytest.raises(errors.Refused, match="code that runs on the server"):
        undo.undo(WEB[0], newest.id)
    undo.undo(SHELL, newest.id)

    assert entries.read("plugin", "git")["upstream"] == RUN


def test_an_installation_may_let_the_web_do_it(settings: Any) -> None:
    settings.TOOLBELT_STDIO_BY_WEB = True

    upstreams.add(WEB[0], "git", RUN)


@pytest.mark.parametrize("actor", WEB, ids=lambda actor: actor.via)
def test_an_address_comes_in_by_any_door_and_by_default_no_variable(actor: actors.Actor) -> None:
    upstreams.add(actor, "files", {**ASKED, "headers": {"Accept": "text/event-stream"}})
    for reached in (
        {**ASKED, "headers": {"Authorization": "Bearer ${MCP_FILES}"}},
        {"url": "https://files.example/${MCP_FILES}"},
    ):
        with pytest.raises(errors.Refused, match=r"sent the variable MCP_FILES.*TOOLBELT_WEB_VARIABLES"):
            upstreams.add(actor, "more", reached)
        upstreams.add(SHELL, f"more-{len(reached)}", reached)


def test_a_server_whose_connection_is_refused_by_a_later_rule_can_still_be_switched_off() -> None:
    upstreams.add(SHELL, "files", {**ASKED, "headers": {"X-Team": "search"}})
    stored = {**ASKED, "headers": {"X-Team": "search and find"}}
    models.Plugin.objects.filter(name="files").update(upstream=stored)

    entries.change(WEB[0], "plugin", "files", {"active": False})
    assert entries.read("plugin", "files")["active"] is False

    with pytest.raises(errors.Invalid, match="This may be a secret"):
        upstreams.reconnect(SHELL, "files", {**stored, "timeout": 5})


def test_variables_are_set_aside_by_how_they_begin(settings: Any) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ["MCP_*"]
    upstreams.add(WEB[0], "files", {**ASKED, "headers": {"Authorization": "Bearer ${MCP_FILES}"}})


def test_a_variable_that_was_not_set_aside_is_sent_nowhere_by_the_web(settings: Any) -> None:
    given = {**ASKED, "headers": {"Authorization": "Bearer ${AWS_KEY}"}}

    with pytest.raises(errors.Refused, match=r"sent the variable AWS_KEY.*TOOLBELT_WEB_VARIABLES"):
        upstreams.add(WEB[0], "files", given)

    upstreams.add(SHELL, "files", given)
    with pytest.raises(errors.Refused, match="sent the variable AWS_KEY"):
        upstreams.reconnect(WEB[0], "files", {**given, "url": "https://elsewhere.example/"})

    settings.TOOLBELT_WEB_VARIABLES = ["AWS_KEY"]
    upstreams.reconnect(WEB[0], "files", {**given, "url": "https://files.example/v2"})
