"""Tests that no change breaks a conversation of Vercel's AI SDK, with the program of the documentation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import documented
import kit
import pytest

from tests.providers import chat_server

HEADING = "Conversations of Vercel's AI SDK"
PAGE = documented.PAGES / "give-a-surface-to-a-provider.md"
PROGRAM = """
import {{ createOpenAICompatible }} from "@ai-sdk/openai-compatible";
import {{ answer }} from "./conversation.mjs";
const model = createOpenAICompatible({{ name: "fake", baseURL: {address} }}).chatModel({model});
const talk = {talk};
await answer(model, talk, {message});
process.stdout.write("\\n" + JSON.stringify(talk));
process.exit();
"""


@pytest.fixture
def say() -> Callable[..., dict[str, Any]]:
    """Return a function that has a message answered by a new process, and returns the conversation."""
    directory = Path(os.environ.get("NODE_DIRECTORY") or Path(sys.prefix) / "node")
    code = documented._code(HEADING, "js", page=PAGE)
    (directory / "conversation.mjs").write_text(code, encoding="utf-8")

    def say(server: chat_server.Server, model: str, talk: dict[str, Any], message: str) -> dict[str, Any]:
        given = {"address": f"{server.address}/v1", "model": model, "talk": talk, "message": message}
        program = PROGRAM.format(**{name: json.dumps(value) for name, value in given.items()})
        (directory / "converse.mjs").write_text(program, encoding="utf-8")
        completed = subprocess.run(
            ["node", "converse.mjs"], cwd=directory, capture_output=True, text=True, timeout=60
        )
        assert completed.returncode == 0, completed.stderr
        result: dict[str, Any] = json.loads(completed.stdout.rpartition("\n")[2])
        return result

    return say


@pytest.mark.parametrize("model", ["gpt-5.6", "qwen3-coder"])
def test_no_change_breaks_a_conversation(model: str, say: Callable[..., dict[str, Any]]) -> None:
    talk: dict[str, Any] = {"session": kit.session(), "token": None, "prefix": None, "messages": []}
    with chat_server.Server() as server:
        talk = say(server, model, talk, "Please add.")
        assert "Call one of these tools in your next step" in json.dumps(talk["messages"])
        with kit.switched("arithmetic", False):
            talk = say(server, model, talk, 'insist desk__add {"a": 2, "b": 3}')
            said = json.dumps(talk["messages"])
            assert said.count("No longer available: desk__add") == 1
            assert "desk__add is no longer available in this conversation" in said
        note = json.dumps({"tool": "desk__add_note", "arguments": {"text": "Milk."}})
        talk = say(server, model, talk, f'call load_tools {{"toolkit": "desk_notes"}} then call_tool {note}')
        said = json.dumps(talk["messages"])
        assert "Available from now on: desk__add" in said
        assert "Noted: Milk." in said
    assert [entry["message"] for entry in server.log if entry["status"] != 200] == []
    assert len(server.log) >= 5
    assert len({entry["head"] for entry in server.log}) == 1
