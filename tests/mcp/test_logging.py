"""Log messages of real upstream servers on their way to clients, and which of them a client gets."""

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
from toolbelt.runtime import (
    elicitation,
    masking,
    plugins,
    prepared_answers,
    upstream_listing,
)
from toolbelt.store import snapshots

SECRET = "hunter2-hunter2"


@pytest.fixture
def script(transactional_db: None, server_directory: Path) -> Iterator[scripting.Script]:
    """Yield a server whose tools are ada's."""
    belt = {"agents": [{"key": "ada", "tools": ["files__log"]}]}
    with offering.scripted(server_directory, belt) as script:
        yield script


def of_era(version: str) -> Client:
    token = tokens.issue(SETUP, agent="ada").text
    about = Client(endpoint=Endpoint(prepared_answers.answers()), token=token, version=version)
    if version == NEW:
        return about
    begun = about.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {}})
    session = begun.headers["mcp-session-id"]
    return Client(
        endpoint=Endpoint(prepared_answers.answers()), token=token, version=version, session=session
    )


def said(level: str, data: Any, **more: Any) -> dict[str, Any]:
    return {"level": level, "data": data, **more}


def heard(client: Client, *messages: Any, level: str = "") -> list[Any]:
    """Return what of these messages arrives, for a request that asks for this level."""
    params: dict[str, Any] = {"name": "files__log", "arguments": {"messages": list(messages)}}
    if level:
        params["_meta"] = {protocol.LOG_LEVEL: level}
    answer = client.ask("tools/call", params)
    if answer.headers["content-type"] != "text/event-stream":
        return []
    *told, last = answer.messages()
    assert last["result"]["content"][0]["text"] == "logged"
    return [one["params"] for one in told if one["method"] == "notifications/message"]


LEVELS = [said("debug", 1), said("info", {"n": 2}, logger="core"), said("error", "three\u202e")]


def test_a_client_that_sets_no_level_hears_what_is_more_than_details(script: scripting.Script):
    assert heard(of_era(OLD), *LEVELS) == [
        {"level": "info", "logger": "files.core", "data": {"n": 2}},
        {"level": "error", "logger": "files", "data": "three"},
    ]


def test_the_level_that_a_client_sets_counts_in_every_process(script: scripting.Script):
    client = of_era(OLD)
    assert client.ask("logging/setLevel", {"level": "error"}).result == {}
    other = Client(
        endpoint=Endpoint(prepared_answers.answers()), token=client.token, version=OLD, session=client.session
    )
    assert [one["level"] for one in heard(other, *LEVELS)] == ["error"]
    client.ask("logging/setLevel", {"level": "debug"})
    assert [one["level"] for one in heard(other, *LEVELS)] == ["debug", "info", "error"]


def test_a_level_that_there_is_not_is_refused(script: scripting.Script):
    assert of_era(OLD).ask("logging/setLevel", {"level": "loud"}).error["code"] == protocol.INVALID_PARAMS


def test_from_the_second_era_on_a_client_hears_what_its_request_asks_for(script: scripting.Script):
    client = of_era(NEW)
    assert heard(client, *LEVELS) == []
    assert [one["level"] for one in heard(client, *LEVELS, level="info")] == ["info", "error"]


def test_secrets_are_taken_out_of_messages_and_long_ones_are_cut(script: scripting.Script):
    masking.add(SECRET)
    told = heard(
        of_era(OLD),
        said("info", {"a": [f"is {SECRET}"]}),
        said("info", ["x" * 3 * elicitation.MAX_LOG_BYTES]),
    )
    assert told[0]["data"] == {"a": ["is [withheld]"]}
    assert len(told[1]["data"]) == elicitation.MAX_LOG_BYTES


def test_a_server_that_never_stops_is_heard_up_to_a_limit(
    script: scripting.Script, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(elicitation, "MAX_LOGGED", 3)
    assert len(heard(of_era(OLD), *[said("info", number) for number in range(10)])) == 3


@pytest.mark.parametrize("is_modern", [False, True])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_messages_pass_between_the_eras(transactional_db: None, is_modern: bool, version: str):
    masking.forget()
    with questioning.served(is_modern=is_modern) as url:
        configured.add(SETUP.actor, "desk", {"url": url}, trusted=True)
        upstream_listing.refresh(["desk"], lambda name, answer: configured.record(SETUP.actor, name, answer))
        belts.import_(SETUP, {"agents": [{"key": "ada", "tools": ["desk__think"]}]})
        params = {"name": "desk__think", "_meta": {protocol.LOG_LEVEL: "info"}}
        (told, last) = of_era(version).ask("tools/call", params).messages()
        plugins.stop()
        snapshots.forget()
    assert told["params"] == {"level": "info", "logger": "desk.mind", "data": "thinking"}
    assert last["result"]["content"][0]["text"] == "thought"
