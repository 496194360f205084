"""Tests that a conversation survives a program that is killed at any point, on a server as in production."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.api.conftest import SETUP
from tests.front import processes
from tests.providers import anthropic_server, program, reading
from toolbelt.control.access import switches

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("point", program.POINTS)
def test_a_program_that_was_killed_goes_on_with_what_it_stored(point: str, ada: str, tmp_path: Path) -> None:
    with processes.served() as server, anthropic_server.Server() as provider:

        def run(text: str, point: str = "") -> int:
            args = [str(tmp_path / "kept.json"), server.url, ada, provider.address, text, point]
            command = [sys.executable, "-m", "tests.providers.program", *args]
            return subprocess.run(command, cwd=settings.BASE_DIR, env=os.environ, check=False).returncode

        assert run("hello") == 0
        switches.flip(SETUP, "ada", "reading", True)
        switches.override(SETUP, "ada", "clock", False)
        assert run("call kb__find then call kb__read", point) == -signal.SIGKILL
        # Operators go on, too.
        switches.override(SETUP, "ada", "kb__read", False)
        assert run("") == 0
        assert run("call kb__find") == 0

    assert [entry["status"] for entry in provider.log] == [200] * len(provider.log)
    assert len({entry["head"] for entry in provider.log}) == 1
    last = provider.log[-1]
    assert last["dropped"] == []
    texts = "\n".join(last["texts"])
    assert texts.count("No longer available: clock.") == 1
    assert texts.count("Look before you answer: kb__find.") == 1
    assert "kb__find" in reading.read(last).tools
    assert {"clock", "kb__read"}.isdisjoint(last["shown"])
    kept = json.loads((tmp_path / "kept.json").read_text())
    asked = [message["content"] for message in kept["messages"] if isinstance(message["content"], str)]
    assert asked == ["hello", "call kb__find then call kb__read", "call kb__find"]
