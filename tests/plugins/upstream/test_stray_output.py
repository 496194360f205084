"""Tests of what programs write to their output that is not MCP, or not as MCP requires."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from tests.plugins.upstream import harness
from toolbelt.core import connections
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import connection

pytestmark = pytest.mark.slow

# Its argument is what ends its messages, or is written before the first one; a call's argument is what is written, with
# ANSWER for its answer.
PROGRAM = r"""
import json, sys, time
around = sys.argv[1].encode().decode("unicode_escape")
end = around if around.isspace() else "\n"
first = True
def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), None
    if method == "initialize":
        info = {"name": "odd", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    answer |= {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
    text = json.dumps(answer) + end
    if first and not around.isspace():
        text = around + text
    first = False
    if method == "tools/call":
        text = message["params"]["arguments"].get("write", "ANSWER").replace("ANSWER", text)
    write(text)
"""
# Much longer than any answer here, and shorter than a call may wait.
SOON = 10.0


def run(around: str, *writes: str, timeout: int = 30) -> list[str]:
    """Return the results, or the errors, of calls whose answers are written so."""
    args = ["-c", PROGRAM, around]
    settings = connections.of({"command": sys.executable, "args": args, "timeout": timeout})
    assert settings is not None

    async def main() -> list[str]:
        server = connection.Server(settings, environ={})
        try:
            return [await called(server, write) for write in writes]
        finally:
            await server.close()

    return asyncio.run(main())


async def called(server: connection.Server, write: str) -> str:
    try:
        return harness.text(await harness.call(server, "work", {"write": write}))
    except (contract.ToolError, TimeoutError) as error:
        return str(error)


@pytest.mark.parametrize("end", ["\\r", "\\n", "\\r\\n"])
def test_messages_are_read_whatever_ends_their_lines(end: str) -> None:
    begun = time.monotonic()
    assert run(end, "ANSWER", "ANSWERANSWER", "ANSWER") == ["done"] * 3
    assert time.monotonic() - begun < SOON


def test_an_answer_behind_a_log_on_its_line_is_an_error_at_once_and_no_result() -> None:
    begun = time.monotonic()
    glued, after = run("", "INFO done ANSWER", "ANSWER")
    assert "something else in front of its answer" in glued
    assert after == "done"
    assert time.monotonic() - begun < SOON


def test_a_first_line_with_a_prompt_does_not_delay_the_handshake() -> None:
    begun = time.monotonic()
    assert run("Ready> ", "ANSWER") == ["done"]
    assert time.monotonic() - begun < SOON / 2


def test_a_log_of_the_answer_that_follows_changes_nothing() -> None:
    assert run("", "DEBUG sending ANSWERANSWER") == ["done"]


def test_a_call_without_an_answer_reports_what_was_written_instead() -> None:
    [error] = run("", "Traceback (most recent call last):\n  x = 1\nValueError: boom\n", timeout=1)
    assert error == "ValueError: boom"


def test_a_call_without_an_answer_reports_nothing_that_was_written_before() -> None:
    assert run("", "ANSWERold news\n", "", timeout=2) == ["done", ""]
