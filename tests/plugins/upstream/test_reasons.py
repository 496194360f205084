"""Tests of the sentences that explain why a server cannot be reached."""

from __future__ import annotations

import mcp
import mcp_types
import pydantic
import pytest

from toolbelt.core import connections
from toolbelt.plugins.upstream import reasons


@pytest.mark.parametrize(
    ("command", "advice"), [("fake-mcp", "give its full path"), ("/opt/fake-mcp", "correct the path")]
)
def test_a_missing_program_is_explained_by_how_it_was_given(command: str, advice: str) -> None:
    reason = reasons.describe(FileNotFoundError(), connections.Connection(command=command))

    assert advice in reason
    assert ("full path" in reason) == (not command.startswith("/"))


def test_when_a_server_said_to_try_again_is_in_the_reason() -> None:
    settings = connections.Connection(url="https://tools.test/mcp")
    reason = reasons.describe(None, settings, http_status=503, retry_after="120\u202e" + "0" * 100)

    assert reason.startswith("The server answered HTTP 503 (Retry-After: 120000")
    assert len(reason) < 120


def test_an_answer_that_the_client_refuses_is_explained_by_its_fields() -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        mcp_types.InitializeResult.model_validate({"protocolVersion": 1, "capabilities": {"tools": True}})

    reason = reasons.describe(refused.value, connections.Connection(command="fake-mcp"))

    assert reason.startswith("The server's answer is not valid in MCP (protocolVersion, capabilities.tools")
    assert "input" not in reason


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ("\ufeff{}", "JSON"),
        ("event: message", "JSON"),
        ("[{}]", "an MCP message"),
        ('{"id": 2}', "an MCP message"),
    ],
)
def test_an_answer_that_cannot_be_read_is_explained_without_the_words_of_a_library(
    answer: str, what: str
) -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        mcp_types.jsonrpc_message_adapter.validate_json(answer)
    error = mcp.MCPError(mcp_types.PARSE_ERROR, f"Failed to parse JSON response: {refused.value}")

    reason = reasons.describe(error, connections.Connection(url="https://tools.test/mcp"))

    assert reason == reasons.UNREADABLE.format(what)
    assert reasons.message(mcp.MCPError(mcp_types.PARSE_ERROR, "Its own words")) == "Its own words"
