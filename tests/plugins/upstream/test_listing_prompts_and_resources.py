"""Tests that a connection lists what a server has beside tools, learns of changes, and uses a server that cannot list
those.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import providing, scripting
from tests.plugins.upstream.connecting import Using
from toolbelt.core import connections
from toolbelt.plugins.upstream import connection, importing
from toolbelt.plugins.upstream import limits as bounds


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


def listed(script: scripting.Script, **limits: Any) -> importing.Answer:
    return Using(script, limits=bounds.Limits(**limits)).run(lambda server: server.tools())


def test_a_real_server_s_prompts_resources_and_templates_are_listed(tmp_path: Path) -> None:
    reached = connections.of({"command": sys.executable, "args": [providing.__file__, str(tmp_path)]})
    assert reached is not None
    told: asyncio.Queue[importing.Answer] = asyncio.Queue()
    server = connection.Server(reached, environ={}, on_list=told.put_nowait)

    async def story() -> tuple[importing.Answer, importing.Answer]:
        try:
            async with asyncio.timeout(30):
                before = await server.tools()
                await told.get()
                await server.call("announce", {})
                after = await told.get()
                while len(after.non_tools["prompt"]) < 2 or len(after.non_tools["resource"]) < 3:
                    after = await told.get()
                return before, after
        finally:
            await server.close()

    before, after = asyncio.run(story())
    assert [one["name"] for one in before.non_tools["prompt"]] == ["summarize"]
    assert [one["uri"] for one in before.non_tools["resource"]] == ["note://readme", "note://pixel"]
    assert [one["uriTemplate"] for one in before.non_tools["template"]] == ["db://users/{user_id}"]
    assert before.cut == frozenset()
    assert {one["name"] for one in after.non_tools["prompt"]} == {"summarize", "fresh"}


def test_a_server_that_has_tools_alone_has_none_of_the_others(script: scripting.Script) -> None:
    answer = listed(script)

    assert answer.non_tools == {"prompt": (), "resource": (), "template": ()}
    assert answer.problems == ()


def test_of_a_server_of_the_first_era_notifications_lead_to_a_new_list(script: scripting.Script) -> None:
    script.offers({})
    using = Using(script)

    async def story(server: connection.Server) -> importing.Answer:
        await server.tools()
        await using.lists.get()
        script.offers({"prompts/list": {"prompts": [{"name": "new"}]}})
        await server.call("notify", {"method": "notifications/prompts/list_changed"})
        return await using.lists.get()

    assert using.run(story).non_tools["prompt"] == ({"name": "new"},)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "no answer within 0.3 s"),
        ({"error": {"code": -32603, "message": "my database is away"}}, "my database is away"),
        ({"prompts": "none"}, "no list of prompts"),
    ],
)
def test_a_list_that_is_not_had_costs_no_tools_and_retires_nothing(
    script: scripting.Script, answer: Any, said: str
) -> None:
    script.offers({"prompts/list": answer})

    found = listed(script, listing=0.3)

    assert found.tools
    assert "prompt" not in found.non_tools
    assert found.non_tools["resource"] == ()
    (problem,) = found.problems
    assert problem.path == "prompts"
    assert said in problem.message


def test_a_server_with_resources_need_not_have_templates(script: scripting.Script) -> None:
    refusal = {"error": {"code": -32601, "message": "Method not found"}}
    script.offers({"resources/templates/list": refusal})

    found = listed(script)

    assert found.non_tools["template"] == ()
    assert found.problems == ()


def test_more_than_can_be_taken_is_cut_and_what_is_no_entry_left_out(script: scripting.Script) -> None:
    resources = [{"uri": f"x://{n}", "name": str(n)} for n in range(5)]
    script.offers({"resources/list": {"resources": ["nonsense", *resources]}})

    found = listed(script, non_tools=3)

    assert len(found.non_tools["resource"]) == 3
    assert found.cut == {"resource"}
    assert [problem.message for problem in found.problems] == [
        "The server lists 1 entry that is no resource at all, and it was left out.",
        "The server lists more than can be taken: the first 3 resources were, and none was retired.",
    ]
