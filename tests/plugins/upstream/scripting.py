"""A test's access to a scripted server: its directory, what it lists, and what it received."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.plugins.upstream import listing, scripted

ODD = (
    "hang",
    "die",
    "fail",
    "refuse",
    "environment",
    "progress",
    "announce",
    "ask",
    "log",
    "picture",
    "structure",
    "result",
    "work",
    "flood",
    "chatter",
    "notify",
    "who",
)


class Script:
    """A scripted server in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.lists(
            listing.tool("echo", "Says it again."), *(listing.tool(name, f"Does {name}.") for name in ODD)
        )

    def lists(self, *tools: dict[str, Any]) -> None:
        """Make the server list these tools from now on."""
        (self._directory / "tools.json").write_text(json.dumps(tools))

    def instructs(self, text: str) -> None:
        """Make the server state these instructions from its next start."""
        (self._directory / "instructions").write_text(text)

    def answers(self, listed: Any) -> None:
        """Make the server answer requests for its tools with this instead of a list."""
        (self._directory / "tools.json").write_text(json.dumps(listed))

    def offers(self, answers: dict[str, Any]) -> None:
        """Add prompts and resources, and set the answers to other methods: a result, an error, or None for silence.

        ``capabilities`` replace those of prompts and resources.
        """
        lists = {"prompts/list": "prompts", "resources/list": "resources"}
        lists["resources/templates/list"] = "resourceTemplates"
        empty: dict[str, Any] = {method: {section: []} for method, section in lists.items()}
        (self._directory / "others.json").write_text(json.dumps(empty | answers))

    @property
    def asked(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the requests for methods other than those of tools: method and parameters, in order."""
        marks = self._directory / "asked"
        lines = marks.read_text().splitlines() if marks.exists() else []
        return [(method, params) for method, params in map(json.loads, lines)]

    def results_in(self, result: Any) -> None:
        """Set the answer of the tool ``result``."""
        (self._directory / "result.json").write_text(json.dumps(result))

    def is_made(self, how: str, so: bool = True) -> None:
        """Make the server broken or silent from its next start; undo that with ``so=False``."""
        mark = self._directory / how
        mark.touch() if so else mark.unlink()

    @property
    def connection(self) -> dict[str, Any]:
        """Return the connection to the server, as in a belt."""
        assert scripted.__file__ is not None
        return {"command": sys.executable, "args": [scripted.__file__, str(self._directory)]}

    @property
    def starts(self) -> int:
        """Return how often the server was started."""
        marks = self._directory / "starts"
        return len(marks.read_text()) if marks.exists() else 0

    @property
    def calls(self) -> int:
        """Return how often its tools were called."""
        marks = self._directory / "calls"
        return len(marks.read_text()) if marks.exists() else 0

    def is_killed(self) -> None:
        """Kill its processes."""
        for mark in self._directory.glob("process-*"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(mark.name.removeprefix("process-")), signal.SIGKILL)

    def delay(self, seconds: float) -> None:
        """Delay the answer to ``initialize`` by this time."""
        (self._directory / "delay").write_text(str(seconds))

    @property
    def capabilities(self) -> dict[str, Any]:
        """Return the client capabilities that it received last."""
        capabilities_: dict[str, Any] = json.loads((self._directory / "capabilities.json").read_text())
        return capabilities_

    @property
    def second_answer(self) -> Any:
        """Return the answer to the question that the server asked during another call, or None before that."""
        mark = self._directory / "second"
        return json.loads(mark.read_text()) if mark.exists() and mark.read_text() else None

    def has_heard_of_a_cancellation(self) -> bool:
        """Return whether the server has received a cancellation."""
        return (self._directory / "cancelled").exists()

    def has_begun_to_hang(self) -> bool:
        """Return whether the tool that never answers has been called."""
        return (self._directory / "hanging").exists()
