"""Tests that MCP clients get only the prompts and resources of upstream servers that an operator granted."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client
from tests.mcp.offering import PIXEL, POLICY, README, USER, add_server, not_found, refresh
from tests.mcp.offering import cleared as cleared
from tests.mcp.offering import client as client
from tests.mcp.offering import directory as directory
from tests.mcp.offering import script as script
from tests.plugins.upstream import providing, scripting
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.mcp import protocol
from toolbelt.plugins.upstream import last_check
from toolbelt.runtime import masking
from toolbelt.runtime.upstream import process_connections


def logged_requests(directory: Path) -> list[Any]:
    notes = directory / "asked"
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def recorded() -> list[tuple[str, str, str]]:
    rows = models.CallRecord.objects.order_by("id")
    return list(rows.values_list("tool", "plugin", "outcome"))


def uris(client: Client) -> list[str]:
    return [resource["uri"] for resource in client.ask("resources/list").result["resources"]]


def test_granted_prompts_and_resources_are_listed_as_by_their_server(client: Client, directory: Path):
    prompts = client.ask("prompts/list").result["prompts"]
    assert [(prompt["name"], prompt["description"]) for prompt in prompts] == [
        ("kb__summarize", "Sums something up.")
    ]
    assert [(argument["name"], argument.get("required")) for argument in prompts[0]["arguments"]] == [
        ("topic", True),
        ("length", False),
    ]
    assert uris(client) == [POLICY, PIXEL, README]
    readme = client.ask("resources/list").result["resources"][2]
    assert readme == {
        "uri": README,
        "name": "readme",
        "mimeType": "text/plain",
        "description": "What to read.",
    }
    (template,) = client.ask("resources/templates/list").result["resourceTemplates"]
    assert (template["uriTemplate"], template["mimeType"]) == (USER, "application/json")


def test_prompts_and_resources_are_announced_but_not_listed_as_tools(client: Client, directory: Path):
    method = "server/discover" if client.version == NEW else "initialize"
    result = client.ask(method, {"protocolVersion": OLD}).result["capabilities"]
    assert result["prompts"] == {"listChanged": True}
    assert result["resources"] == {"subscribe": True, "listChanged": True}
    assert result["completions"] == {}
    assert client.names() == ["kb__announce", "kb__touch"]
    assert client.call("kb__prompt_summarize").is_unknown


def test_a_prompt_is_returned_with_its_arguments_and_recorded(client: Client, directory: Path):
    result = client.ask("prompts/get", {"name": "kb__summarize", "arguments": {"topic": "bees"}}).result

    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Sum up bees, short."}},
    ]
    assert logged_requests(directory) == [["prompt", "bees", "short"]]
    assert recorded() == [("kb__prompt_summarize", "kb", "ok")]
    if client.version == NEW:
        assert result["resultType"] == "complete"


def test_resources_are_returned_as_by_the_server(client: Client, directory: Path):
    (text,) = client.ask("resources/read", {"uri": README}).result["contents"]
    (image,) = client.ask("resources/read", {"uri": PIXEL}).result["contents"]
    (user,) = client.ask("resources/read", {"uri": "db://users/7"}).result["contents"]

    assert (text["uri"], text["mimeType"], text["text"]) == (README, "text/plain", "Read me.")
    assert (image["uri"], base64.b64decode(image["blob"])) == (PIXEL, providing.PIXEL)
    assert json.loads(user["text"]) == {"id": "7"}
    assert [tool for tool, _, _ in recorded()] == [
        "kb__resource_readme",
        "kb__resource_pixel",
        "kb__template_user",
    ]


def test_arguments_are_completed_by_the_server(client: Client, directory: Path):
    ref = {"type": "ref/prompt", "name": "kb__summarize"}
    result = client.ask(
        "completion/complete", {"ref": ref, "argument": {"name": "topic", "value": "be"}}
    ).result
    assert result["completion"]["values"] == ["be!"]

    ref = {"type": "ref/resource", "uri": USER}
    result = client.ask(
        "completion/complete", {"ref": ref, "argument": {"name": "user_id", "value": "7"}}
    ).result
    assert result["completion"]["values"] == ["7!"]
    assert logged_requests(directory) == [["complete", "topic", "be"], ["complete", "user_id", "7"]]


def test_what_is_not_granted_is_not_found_without_contacting_the_server(client: Client, directory: Path):
    entries.change(SETUP, "tool", "kb__resource_pixel", {"blocked": True})
    switches.override(SETUP, "ada", "kb__prompt_summarize", False)

    assert client.ask("prompts/list").result["prompts"] == []
    assert uris(client) == [POLICY, README]
    for name in ("kb__summarize", "kb__nothing", "summarize"):
        assert client.ask("prompts/get", {"name": name}).status_and_code == not_found(client)
    for uri in (PIXEL, "note://nothing", "db://users/7/secrets"):
        answer = client.ask("resources/read", {"uri": uri})
        assert answer.status_and_code == not_found(client, uri)
        assert answer.error["message"] == "There is no such resource that you may read."
    ref = {"type": "ref/prompt", "name": "kb__summarize"}
    asking = {"ref": ref, "argument": {"name": "topic", "value": "be"}}
    assert client.ask("completion/complete", asking).status_and_code == not_found(client)
    assert logged_requests(directory) == []
    assert ("kb__resource_pixel", "kb", "tool-denied") in recorded()
    assert ("kb__nothing", "", "unknown-tool") in recorded()


def test_a_denied_resource_cannot_be_read_through_a_template(client: Client, script: scripting.Script):
    assert client.ask("resources/read", {"uri": "note://b"}).result["contents"] == []

    switches.override(SETUP, "ada", "kb__resource_a", False)

    assert client.ask("resources/read", {"uri": "note://a"}).status_and_code == not_found(client, "note://a")
    assert [params["uri"] for method, params in script.asked if method == "resources/read"] == ["note://b"]


@pytest.mark.parametrize(
    "uri", ["note://%61", "note://%2561", "NOTE://a", "note://A", "note://a/", "note://a?"]
)
def test_a_denied_resource_is_not_requested_in_another_spelling(
    client: Client, script: scripting.Script, uri: str
):
    entries.change(SETUP, "tool", "kb__resource_a", {"blocked": True})

    for method in ("resources/read", *(["resources/subscribe"] if client.version == OLD else [])):
        assert client.ask(method, {"uri": uri}).status_and_code == not_found(client, uri)
    assert [method for method, _ in script.asked if method in ("resources/read", "resources/subscribe")] == []


def test_an_unneeded_encoding_is_explained_whether_or_not_something_is_there(
    client: Client, script: scripting.Script
):
    messages = {
        client.ask("resources/read", {"uri": uri}).error["message"] for uri in ("note://%61", "x://%61")
    }
    assert messages == {
        "There is no such resource that you may read. This URI encodes characters that need no encoding: write"
        " letters, digits and -._~ as they are."
    }


def test_a_completion_neither_asks_about_a_denied_resource_nor_names_it(
    client: Client, script: scripting.Script
):
    answer = {"completion": {"values": ["a", "ab", "A"], "total": 3, "hasMore": False}}
    script.offers({"completion/complete": answer})
    switches.override(SETUP, "ada", "kb__resource_a", False)
    ref = {"type": "ref/resource", "uri": "note://{id}"}

    def complete(value: str, **more: Any) -> Any:
        return client.ask(
            "completion/complete", {"ref": ref, "argument": {"name": "id", "value": value}, **more}
        )

    assert complete("%61").status_and_code == not_found(client)
    assert [params for method, params in script.asked if method == "completion/complete"] == []
    allowed = complete("", context={"arguments": {"other": "a"}})
    assert allowed.result["completion"] == {"values": ["ab"], "hasMore": False}
    (params,) = [params for method, params in script.asked if method == "completion/complete"]
    assert "context" not in params


@pytest.mark.parametrize(("total", "shown"), [(2, {"total": 2}), (3, {})])
def test_a_completion_has_a_total_that_counts_only_what_is_shown(
    client: Client, script: scripting.Script, total: int, shown: Mapping[str, Any]
):
    script.offers({"completion/complete": {"completion": {"values": ["ab", "b"], "total": total}}})
    ref, argument = {"type": "ref/resource", "uri": "note://{id}"}, {"name": "id", "value": ""}
    completed = client.ask("completion/complete", {"ref": ref, "argument": argument}).result["completion"]
    assert completed == {"values": ["ab", "b"], "hasMore": False, **shown}


def test_a_resource_denied_while_its_read_waits_is_not_read(
    client: Client, script: scripting.Script, monkeypatch: pytest.MonkeyPatch
):
    make = last_check.LastCheck.make

    async def after_a_denial(check: last_check.LastCheck) -> None:
        await sync_to_async(switches.override)(SETUP, "ada", "kb__resource_a", False)
        await make(check)

    monkeypatch.setattr(last_check.LastCheck, "make", after_a_denial)

    assert client.ask("resources/read", {"uri": "note://a"}).status_and_code == not_found(client, "note://a")
    assert [method for method, _ in script.asked if method == "resources/read"] == []
    assert recorded()[-1] == ("kb__resource_a", "kb", "tool-denied")


def test_a_prompt_that_has_changed_is_not_returned(client: Client, script: scripting.Script):
    answers = {
        "prompts/list": {"prompts": [{"name": "sum", "description": "Other."}]},
        "prompts/get": {"messages": []},
    }
    process_connections.stop()
    script.offers(answers)

    assert client.ask("prompts/get", {"name": "kb__sum"}).error["code"] == protocol.INTERNAL_ERROR
    assert [method for method, _ in script.asked if method == "prompts/get"] == []


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        (-32002, protocol.RESOURCE_NOT_FOUND, protocol.INVALID_PARAMS),
        (-32602, protocol.RESOURCE_NOT_FOUND, protocol.INVALID_PARAMS),
        (-32050, protocol.INTERNAL_ERROR, protocol.INTERNAL_ERROR),
    ],
)
def test_a_server_error_becomes_an_error_of_the_request(
    client: Client, script: scripting.Script, code: int, old: int, new: int
):
    script.offers({"resources/read": {"error": {"code": code, "message": "There is nothing there."}}})

    error = client.ask("resources/read", {"uri": "note://a"}).error

    assert (error["code"], error["message"]) == (
        new if client.version == NEW else old,
        "There is nothing there.",
    )
    assert recorded()[-1] == ("kb__resource_a", "kb", "tool-failed")


def test_a_server_without_completion_returns_no_values(client: Client, script: scripting.Script):
    script.offers({"completion/complete": {"error": {"code": -32601, "message": "Method not found"}}})
    asking = {"ref": {"type": "ref/prompt", "name": "kb__sum"}, "argument": {"name": "a", "value": ""}}

    assert client.ask("completion/complete", asking).result["completion"] == {
        "values": [],
        "total": 0,
        "hasMore": False,
    }


def test_secrets_are_masked_and_reserved_metadata_is_removed(client: Client, script: scripting.Script):
    masking.add("hunter2hunter2")
    content = {"uri": "note://a", "text": "the token is hunter2hunter2", "_meta": {"ui": {"csp": 1}}}
    answer = {"contents": [content], "_meta": {"a": 1, "toolbelt/x": 2}}
    script.offers({"resources/read": answer})

    result = client.ask("resources/read", {"uri": "note://a"}).result

    assert "hunter2" not in json.dumps(result)
    assert result["contents"][0]["_meta"] == {"ui": {"csp": 1}}
    assert result["_meta"].get("a") == 1
    assert "toolbelt/x" not in result["_meta"]


def test_a_result_over_the_size_limit_is_refused(
    client: Client, script: scripting.Script, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("toolbelt.conf.CALL_RESULT_BYTES", 100)
    monkeypatch.setattr("toolbelt.conf.RESOURCE_BYTES", 1_000)
    script.offers({"resources/read": {"contents": [{"uri": "note://a", "text": "x" * 2_000}]}})

    error = client.ask("resources/read", {"uri": "note://a"}).error

    assert error["code"] == protocol.INTERNAL_ERROR
    assert "more than the 1000 that are allowed" in error["message"]


def test_invalid_parameters_are_refused_without_contacting_the_server(
    client: Client, script: scripting.Script
):
    prompt = {"type": "ref/prompt", "name": "kb__sum"}
    before = len(script.asked)
    for method, params in (
        ("prompts/get", {}),
        ("prompts/get", {"name": "kb__sum", "arguments": {"n": 3}}),
        ("prompts/get", {"name": "kb__sum", "arguments": []}),
        ("resources/read", {"uri": 3}),
        ("completion/complete", {"ref": prompt}),
        ("completion/complete", {"ref": {**prompt, "type": "x"}, "argument": {"name": "a", "value": ""}}),
        ("completion/complete", {"ref": prompt, "argument": {"name": "a", "value": 1}}),
    ):
        assert client.ask(method, params).error["code"] == protocol.INVALID_PARAMS, (method, params)
    assert len(script.asked) == before


def test_a_uri_of_two_servers_is_read_from_the_first_and_reported(client: Client, tmp_path: Path):
    for name in ("one", "two"):
        listed = {"uri": "note://a", "name": "a", "description": f"Of {name}."}
        offered = {"resources/list": {"resources": [listed]}}
        (tmp_path / name).mkdir()
        script = scripting.Script(tmp_path / name)
        text = {"contents": [{"uri": "note://a", "text": name}]}
        script.offers({**offered, "resources/read": text})
        add_server({**script.connection, "sharing": "shared"}, (f"{name}__resource_a",), name)

    assert uris(client) == [POLICY, "note://a"]
    assert client.ask("resources/list").result["resources"][1]["description"] == "Of one."
    assert client.ask("resources/read", {"uri": "note://a"}).result["contents"][0]["text"] == "one"
    problems = models.Plugin.objects.get(name="two").listing.problems
    assert "The server 'one' lists note://a, too" in json.dumps(problems)
    switches.flip(SETUP, "ada", "one_notes", False)
    assert client.ask("resources/read", {"uri": "note://a"}).result["contents"][0]["text"] == "two"


def test_a_long_resource_list_is_split_into_pages(client: Client, script: scripting.Script):
    many = [{"uri": f"x://{n:04}", "name": f"n{n:04}"} for n in range(700)]
    script.offers({"resources/list": {"resources": many}})
    refresh("kb")
    keys = [f"kb__resource_n{n:04}" for n in range(700)]
    belts.import_(SETUP, {"toolkits": [{"key": "kb_notes", "members": keys}]})

    first = client.ask("resources/list").result
    second = client.ask("resources/list", {"cursor": first["nextCursor"]}).result

    assert [resource["uri"] for resource in first["resources"][:2]] == [POLICY, "x://0000"]
    listed = [resource["uri"] for resource in (*first["resources"], *second["resources"])]
    assert listed == [POLICY, *(resource["uri"] for resource in many)]
    assert "nextCursor" not in second
