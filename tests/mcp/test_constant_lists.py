"""Tests that a ``constant`` list never changes in a conversation, and that results tell its model of changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.utils import timezone

from tests import factories
from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client, Endpoint, run
from toolbelt import models
from toolbelt.control import impacts
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries, purging
from toolbelt.control.reports import told_conversations
from toolbelt.runtime.records import conversation_records, record_writer
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.store import conversations, first_lists

SURE = dataclasses.replace(SETUP, confirm=True)


@pytest.fixture(autouse=True)
def constant(endpoint: Endpoint) -> None:
    """Let ada's clients have constant lists, and grant her the tool ``kb__find``."""
    switches.flip(SETUP, "ada", "reading", True)
    agents.edit(SETUP, "ada", changes={"mcp_loading": "constant"})


def connected(client: Client) -> Client:
    """Return the client with the session of its handshake."""
    if client.version == NEW:
        return client
    session = client.ask("initialize", {"protocolVersion": OLD}).headers["mcp-session-id"]
    return dataclasses.replace(client, session=session)


def elsewhere(client: Client) -> Client:
    """Return the client in front of another process."""
    return dataclasses.replace(client, endpoint=Endpoint(prepared_answers.answers()))


def notice(answer: Any) -> str:
    texts = [block["text"] for block in answer.result["content"] if block["type"] == "text"]
    return next((text for text in texts if text.startswith("Since your last call")), "")


def test_a_session_keeps_the_list_it_began_with_in_every_process(old: Client):
    begun = connected(old)
    before = begun.ask("tools/list").body
    assert b"kb__find" in before
    switches.flip(SETUP, "ada", "reading", False)
    switches.flip(SURE, "ada", "dropping", True)
    assert begun.ask("tools/list").body == before
    assert elsewhere(begun).ask("tools/list").body == before
    assert connected(old).names() == ["call_tool", "clock", "kb__drop", "search_tools"]


def test_without_a_session_the_list_has_the_two_tools_that_reach_all_others(old: Client, new: Client):
    for client in (old, new):
        assert client.names() == ["call_tool", "search_tools"]
    agents.edit(SETUP, "ada", changes={"allowed_toolkits": []})
    assert new.names() == ["call_tool", "search_tools"]


def test_an_agent_finds_only_the_lists_of_its_own_sessions(old: Client, reader: str):
    session = connected(old).session
    switches.flip(SETUP, "bob", "reading", False)
    agents.edit(SETUP, "bob", changes={"mcp_loading": "constant"})
    bob = Client(endpoint=old.endpoint, token=reader, path="/mcp/bob", session=session)
    assert "kb__find" not in bob.names()


def test_a_change_is_never_announced(client: Client):
    begun = connected(client)

    async def main() -> list[Any]:
        async with begun.endpoint.serving(), begun.endpoint.open(begun.listening()) as stream:
            await stream.started()
            if client.version == NEW:
                acknowledged = (await stream.message())["params"]["notifications"]
                assert acknowledged == {}
            streams = begun.endpoint.application.mcp.streams
            return [
                (await streams.compare_lists("ada"), stream_.pending)
                for streams_of in streams._by_agent.values()
                for stream_ in streams_of
            ]

    switches.flip(SETUP, "ada", "reading", False)
    ((_, pending),) = run(main)
    assert not pending.tools
    method = "initialize" if client.version == OLD else "server/discover"
    assert client.ask(method, {"protocolVersion": OLD}).result["capabilities"]["tools"] == {}


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_the_next_result_names_what_changed_once(old: Client, is_elsewhere: bool):
    begun = connected(old)
    assert notice(begun.call("clock", {})) == ""
    switches.flip(SURE, "ada", "dropping", True)
    switches.flip(SETUP, "ada", "reading", False)
    begun = elsewhere(begun) if is_elsewhere else begun
    said = notice(begun.call("clock", {}))
    assert "you may also call: kb__drop" in said
    assert "no longer available: kb__find, kb__read" in said
    assert "toolbelt://policy" in said
    assert "Drop." not in said
    assert notice(begun.call("clock", {})) == ""


def test_a_client_without_a_session_is_told_too(new: Client):
    new.names()
    switches.flip(SURE, "ada", "dropping", True)
    answer = new.call("call_tool", {"tool": "clock"})
    assert "you may also call: kb__drop" in notice(answer)


def test_what_was_granted_later_is_found_and_called_through_call_tool(client: Client):
    begun = connected(client)
    agents.edit(SETUP, "ada", changes={"allowed_toolkits": []})
    switches.flip(SETUP, "ada", "reading", False)
    assert not begun.call("search_tools", {"query": "tell the time"}).result["isError"]
    refusal = begun.call("call_tool", {"tool": "clock"}).result["_meta"]["toolbelt/refusal"]["code"]
    # It is admitted: no plugin serves it here.
    assert refusal == "tool-unavailable"


def test_a_removed_tool_is_refused_in_words_that_fit_the_list(old: Client, new: Client):
    begun = connected(old)
    switches.flip(SETUP, "ada", "reading", False)
    for call in (("kb__find", {"query": "x"}), ("call_tool", {"tool": "kb__find", "arguments": {}})):
        result = begun.call(*call).result
        assert result["_meta"]["toolbelt/refusal"]["code"] == "tool-withdrawn"
    assert begun.call("hidden", {}).is_unknown
    assert new.call("kb__find", {}).is_unknown


def test_an_edited_definition_is_named_but_not_listed(old: Client):
    begun = connected(old)
    before = begun.ask("tools/list").body
    entries.change(SETUP, "tool", "clock", {"description": "Tell the time in UTC."})
    assert "other definitions: clock" in notice(begun.call("clock", {}))
    assert begun.ask("tools/list").body == before


def test_an_address_chooses_for_its_own_client(old: Client):
    agents.edit(SETUP, "ada", changes={"mcp_loading": None})
    assert connected(old).names() == ["clock", "kb__find", "kb__read"]
    request = old.request("tools/list")
    constant = old.endpoint.send(dataclasses.replace(request, query="loading=constant"))
    assert [tool["name"] for tool in constant.result["tools"]] == ["call_tool", "search_tools"]
    for query in ("loading=often", "loading=list&loading=constant", "loading="):
        refused = old.endpoint.send(dataclasses.replace(request, query=query))
        assert refused.status == 400
        assert "dispatch, list, constant" in refused.error["message"]
    assert old.endpoint.send(dataclasses.replace(request, query="downloading=x")).status == 200


def test_a_list_with_which_no_session_began_for_long_is_forgotten(old: Client):
    begun = connected(old)
    models.FirstList.objects.update(at=timezone.now() - first_lists.MAX_AGE * 2)
    switches.flip(SETUP, "ada", "reading", False)
    connected(old)
    assert models.FirstList.objects.count() == 1
    assert "kb__find" not in elsewhere(begun).names()


def test_such_a_client_continues_in_words_and_does_not_rewrite(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    records: list[Any] = []

    def enqueue(record: Any) -> bool:
        records.append(record)
        return True

    conversation_records._noted.clear()
    monkeypatch.setattr(record_writer, "has_room", lambda: True)
    monkeypatch.setattr(record_writer, "enqueue", enqueue)
    begun = connected(dataclasses.replace(client, path=f"{client.path}/s/desk"))
    begun.call("clock", {})
    conversations.add_all(record for record in records if isinstance(record, conversations.Told))
    factories.call("clock", session="desk")
    assert impacts.of_agents(["ada"]) == (0, 1, 0, 0)
    switches.flip(SURE, "ada", "dropping", True)
    begun.call("clock", {})
    conversations.add_all(record for record in records if isinstance(record, conversations.Told))
    (one,) = told_conversations.of("ada")
    assert (one.stored.session, one.stored.line, one.stored.way) == ("desk", "mcp/constant", "words")
    later, first = (entry.told for entry in one.entries)
    assert later.changes == {"added": ["kb__drop"]}
    assert (first.changes, first.parent, later.parent) == ({}, "", first.chain)
    assert first.tokens > 0
    assert impacts.of_agents(["ada"]) == (0, 1, 0, 0)
    assert purging.plan("tool", "kb__find").conversations.restarted == 0
