"""Tests which log messages of upstream servers are forwarded to clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp import offering
from tests.mcp.conftest import NEW, OLD, Client, Endpoint
from tests.plugins.upstream import questioning, scripting
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import upstream_servers as configured
from toolbelt.mcp import protocol
from toolbelt.runtime import masking, plugins
from toolbelt.runtime.calls import elicitation
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.runtime.upstream import server_lists
from toolbelt.store import snapshots

SECRET = "hunter2-hunter2"


@pytest.fixture
def script(transactional_db: None, server_directory: Path) -> Iterator[scripting.Script]:
    """Yield a server whose tools are granted to ada."""
    belt = {"agents": [{"key": "ada", "tools": ["files__log"]}]}
    with offering.scripted(server_directory, belt) as script:
        yield script


def client_of_era(version: str) -> Client:
    token = tokens.issue(SETUP, agent="ada").text
    about = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=version)
    if version == NEW:
        return about
    handshake = about.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {}})
    session = handshake.headers["mcp-session-id"]
    return Client(
        endpoint=Endpoint(prepared_answers.answers()), token=token, version=version, session=session
    )


def log_message(level: str, data: Any, **more: Any) -> dict[str, Any]:
    return {"level": level, "data": data, **more}


def received(client: Client, *messages: Any, level: str = "") -> list[Any]:
    """Return which of these messages arrive for a request with this level."""
    params: dict[str, Any] = {"name": "files__log", "arguments": {"messages": list(messages)}}
    if level:
        params["_meta"] = {protocol.LOG_LEVEL: level}
    answer = client.ask("tools/call", params)
    if answer.headers["content-type"] != "text/event-stream":
        return []
    *notifications, last = answer.messages()
    assert last["result"]["content"][0]["text"] == "logged"
    return [message["params"] for message in notifications if message["method"] == "notifications/message"]


LEVELS = [
    log_message("debug", 1),
    log_message("info", {"n": 2}, logger="core"),
    log_message("error", "three\u202e"),
]


def test_the_default_level_excludes_debug_messages(script: scripting.Script):
    assert received(client_of_era(OLD), *LEVELS) == [
        {"level": "info", "logger": "files.core", "data": {"n": 2}},
        {"level": "error", "logger": "files", "data": "three"},
    ]


def test_the_level_set_by_a_client_applies_in_every_process(script: scripting.Script):
    client = client_of_era(OLD)
    assert client.ask("logging/setLevel", {"level": "error"}).result == {}
    other = Client(
        endpoint=Endpoint(prepared_answers.answers()), token=client.token, version=OLD, session=client.session
    )
    assert [message["level"] for message in received(other, *LEVELS)] == ["error"]
    client.ask("logging/setLevel", {"level": "debug"})
    assert [message["level"] for message in received(other, *LEVELS)] == ["debug", "info", "error"]


def test_an_unknown_level_is_refused(script: scripting.Script):
    assert (
        client_of_era(OLD).ask("logging/setLevel", {"level": "loud"}).error["code"] == protocol.INVALID_PARAMS
    )


def test_the_second_era_receives_only_the_level_of_its_request(script: scripting.Script):
    client = client_of_era(NEW)
    assert received(client, *LEVELS) == []
    assert [message["level"] for message in received(client, *LEVELS, level="info")] == ["info", "error"]


def test_secrets_in_messages_are_withheld_and_long_messages_truncated(script: scripting.Script):
    masking.add(SECRET)
    notifications = received(
        client_of_era(OLD),
        log_message("info", {"a": [f"is {SECRET}"]}),
        log_message("info", ["x" * 3 * elicitation.MAX_LOG_BYTES]),
    )
    assert notifications[0]["data"] == {"a": ["is [withheld]"]}
    assert len(notifications[1]["data"]) == elicitation.MAX_LOG_BYTES


def test_messages_beyond_the_limit_are_dropped(script: scripting.Script, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(elicitation, "MAX_LOGGED", 3)
    assert len(received(client_of_era(OLD), *[log_message("info", number) for number in range(10)])) == 3


@pytest.mark.parametrize("is_modern", [False, True])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_messages_are_forwarded_between_eras(transactional_db: None, is_modern: bool, version: str):
    masking.forget()
    with questioning.served(is_modern=is_modern) as url:
        configured.add(SETUP, "desk", {"url": url}, trusted=True)
        server_lists.refresh(["desk"], lambda name, answer: configured.record(SETUP, name, answer))
        belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["desk__think"]}]})
        params = {"name": "desk__think", "_meta": {protocol.LOG_LEVEL: "info"}}
        (notifications, last) = client_of_era(version).ask("tools/call", params).messages()
        plugins.stop()
        snapshots.forget()
    assert notifications["params"] == {"level": "info", "logger": "desk.mind", "data": "thinking"}
    assert last["result"]["content"][0]["text"] == "thought"
