"""Tests of the lists that servers send: long ones, endless ones, and invalid ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import harness, listing, scripting
from tests.plugins.upstream.harness import ConnectionHarness, text
from toolbelt.core.imported import importing
from toolbelt.plugins.upstream import connection, live_connection
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow


@pytest.fixture
def script(tmp_path: Path) -> scripting.Script:
    return scripting.Script(tmp_path)


def test_all_pages_of_a_list_are_read(script: scripting.Script) -> None:
    script.lists(*(listing.tool(f"t{n}") for n in range(2_000)))

    answer = ConnectionHarness(script).run(lambda server: server.tools())

    assert len(answer.tools) == 2_000
    assert answer.is_complete


@pytest.mark.parametrize("limits", [{"tools": 1_500}, {"pages": 1}, {"bytes": 5_000}])
def test_a_list_above_a_limit_is_truncated_with_a_problem(
    script: scripting.Script, limits: dict[str, int]
) -> None:
    script.lists(*(listing.tool(f"t{n}") for n in range(2_000)))

    answer = ConnectionHarness(script, limits=bounds.Limits(**limits)).run(lambda server: server.tools())

    assert 0 < len(answer.tools) < 2_000
    assert not answer.is_complete
    assert "none was retired" in str(answer.problems[0])


def test_an_invalid_tool_does_not_affect_the_others(script: scripting.Script) -> None:
    invalid: list[Any] = [
        {"name": "bare"},
        listing.tool("hinted", annotations={"readOnlyHint": "perhaps"}),
        {"description": 3},
        "stray",
    ]
    script.lists(*(listing.tool(f"t{n}") for n in range(1_100)), *invalid)

    async def story(server: connection.Server) -> importing.ServerListing:
        assert text(await harness.call(server, "echo", {"n": 1})) == '{"n": 1}'
        return await server.tools()

    answer = ConnectionHarness(script).run(story)
    definitions, problems = importing.definitions(answer.tools, "ns", "the server 'x'")

    assert answer.is_complete
    assert [str(problem) for problem in answer.problems] == [
        "tools: The server's list contains 1 entry that is not a tool; it was ignored."
    ]
    assert len(definitions) == 1_102
    assert [str(problem) for problem in problems] == [
        "tools[1102]: It has no name. It was not imported.",
    ]


@pytest.mark.parametrize("listed", [{"t": 1}, "none", None])
def test_an_answer_that_is_not_a_list_raises_an_error(script: scripting.Script, listed: Any) -> None:
    script.answers(listed)

    with pytest.raises(live_connection.UnreachableError, match="did not return a list of tools"):
        ConnectionHarness(script).run(lambda server: server.tools())
