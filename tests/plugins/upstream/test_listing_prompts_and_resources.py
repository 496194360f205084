"""Tests that a connection lists prompts, resources and templates, follows their changes, and works without them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import listing, providing, scripting
from tests.plugins.upstream.harness import ConnectionHarness, call
from toolbelt.core import connections
from toolbelt.core.imported import importing
from toolbelt.plugins.upstream import connection
from toolbelt.plugins.upstream import limits as bounds


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


def list_server(script: scripting.Script, **limits: Any) -> importing.ServerListing:
    return ConnectionHarness(script, limits=bounds.Limits(**limits)).run(lambda server: server.tools())


def test_prompts_resources_and_templates_of_a_real_server_are_listed(tmp_path: Path) -> None:
    settings = connections.of({"command": sys.executable, "args": [providing.__file__, str(tmp_path)]})
    assert settings is not None
    lists: asyncio.Queue[importing.ServerListing] = asyncio.Queue()
    server = connection.Server(settings, environ={}, on_list=lists.put_nowait)

    async def story() -> tuple[importing.ServerListing, importing.ServerListing]:
        try:
            async with asyncio.timeout(30):
                before = await server.tools()
                await lists.get()
                await call(server, "announce", {})
                after = await lists.get()
                while len(after.non_tools["prompt"]) < 2 or len(after.non_tools["resource"]) < 3:
                    after = await lists.get()
                return before, after
        finally:
            await server.close()

    before, after = asyncio.run(story())
    assert [entry["name"] for entry in before.non_tools["prompt"]] == ["summarize"]
    assert [entry["uri"] for entry in before.non_tools["resource"]] == ["note://readme", "note://pixel"]
    assert [entry["uriTemplate"] for entry in before.non_tools["template"]] == ["db://users/{user_id}"]
    assert before.truncated_kinds == frozenset()
    assert {entry["name"] for entry in after.non_tools["prompt"]} == {"summarize", "fresh"}


def test_a_server_with_only_tools_has_no_prompts_resources_or_templates(script: scripting.Script) -> None:
    answer = list_server(script)

    assert answer.non_tools == {"prompt": (), "resource": (), "template": ()}
    assert answer.problems == ()


def test_a_notification_of_a_first_era_server_leads_to_a_new_list(script: scripting.Script) -> None:
    script.offers({})
    harness = ConnectionHarness(script)

    async def story(server: connection.Server) -> importing.ServerListing:
        await server.tools()
        await harness.lists.get()
        script.offers({"prompts/list": {"prompts": [{"name": "new"}]}})
        await call(server, "notify", {"method": "notifications/prompts/list_changed"})
        return await harness.lists.get()

    assert harness.run(story).non_tools["prompt"] == ({"name": "new"},)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "no answer within 0.3 s"),
        ({"error": {"code": -32603, "message": "my database is away"}}, "my database is away"),
        ({"prompts": "none"}, "did not return a list of prompts"),
    ],
)
def test_a_failed_list_of_prompts_affects_no_tools_and_retires_nothing(
    script: scripting.Script, answer: Any, message: str
) -> None:
    script.offers({"prompts/list": answer})

    result = list_server(script, listing=0.3)

    assert result.tools
    assert "prompt" not in result.non_tools
    assert result.non_tools["resource"] == ()
    (problem,) = result.problems
    assert problem.path == "prompts"
    assert message in problem.message


def test_a_server_with_resources_does_not_have_to_support_templates(script: scripting.Script) -> None:
    refusal = {"error": {"code": -32601, "message": "Method not found"}}
    script.offers({"resources/templates/list": refusal})

    answer = list_server(script)

    assert answer.non_tools["template"] == ()
    assert answer.problems == ()


def test_lists_are_truncated_at_the_limit_and_invalid_entries_left_out(script: scripting.Script) -> None:
    resources = [{"uri": f"x://{n}", "name": str(n)} for n in range(5)]
    script.offers({"resources/list": {"resources": ["nonsense", *resources]}})

    answer = list_server(script, non_tools=3)

    assert len(answer.non_tools["resource"]) == 3
    assert answer.truncated_kinds == {"resource"}
    assert [problem.message for problem in answer.problems] == [
        "The server's list contains 1 entry that is not a resource; it was ignored.",
        "The server lists too many resources: only the first 3 were imported, and none was retired.",
    ]


@pytest.mark.parametrize(
    ("cursor", "problem"),
    [
        ("again", "does not end, because a page names an earlier one as the next"),
        ("", "does not end, because a page names an earlier one as the next"),
        (2, "continues at a cursor that is no text"),
        (False, ""),
        (None, ""),
    ],
)
def test_what_ends_a_list_too_early_is_named_and_retires_nothing(
    script: scripting.Script, cursor: Any, problem: str
) -> None:
    script.offers({"resources/list": {"resources": [{"uri": "x://1", "name": "1"}], "nextCursor": cursor}})

    answer = list_server(script)

    assert [problem for one in answer.problems if problem not in one.message] == []
    assert (len(answer.problems), len(answer.truncated_kinds)) == ((1, 1) if problem else (0, 0))
    assert answer.non_tools["resource"]


def test_a_tool_that_is_nested_too_deeply_costs_no_other(script: scripting.Script) -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    script.lists(listing.tool("echo"), {"name": "deep", "inputSchema": deep})

    assert [tool["name"] for tool in list_server(script).tools] == ["echo", "deep"]
