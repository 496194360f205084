"""A test's access to a scripted server: its directory, and what it lists."""

from __future__ import annotations

import json
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
        """Let it list these from now on."""
        (self._directory / "tools.json").write_text(json.dumps(tools))

    def answers(self, listed: Any) -> None:
        """Let it answer this where its list of tools belongs."""
        (self._directory / "tools.json").write_text(json.dumps(listed))

    def offers(self, answers: dict[str, Any]) -> None:
        """Let it have prompts and resources, and answer other methods so: a result, an error, or never (None)."""
        lists = {"prompts/list": "prompts", "resources/list": "resources"}
        lists["resources/templates/list"] = "resourceTemplates"
        empty: dict[str, Any] = {method: {section: []} for method, section in lists.items()}
        (self._directory / "others.json").write_text(json.dumps(empty | answers))

    @property
    def asked(self) -> list[tuple[str, dict[str, Any]]]:
        """Return what other methods than those of tools were asked: the method and the parameters, in order."""
        marks = self._directory / "asked"
        lines = marks.read_text().splitlines() if marks.exists() else []
        return [(method, params) for method, params in map(json.loads, lines)]

    def results_in(self, result: Any) -> None:
        """Let its tool ``result`` answer this."""
        (self._directory / "result.json").write_text(json.dumps(result))

    def is_made(self, how: str, so: bool = True) -> None:
        """Let it be broken or silent when it is started next."""
        mark = self._directory / how
        mark.touch() if so else mark.unlink()

    @property
    def connection(self) -> dict[str, Any]:
        """Return how it is reached, as a belt has it."""
        assert scripted.__file__ is not None
        return {"command": sys.executable, "args": [scripted.__file__, str(self._directory)]}

    @property
    def starts(self) -> int:
        """Count how often it was started."""
        marks = self._directory / "starts"
        return len(marks.read_text()) if marks.exists() else 0

    @property
    def calls(self) -> int:
        """Count how often one of its tools was called."""
        marks = self._directory / "calls"
        return len(marks.read_text()) if marks.exists() else 0

    def delay(self, seconds: float) -> None:
        """Let it take so long to answer ``initialize``."""
        (self._directory / "delay").write_text(str(seconds))

    @property
    def capabilities(self) -> dict[str, Any]:
        """Return what was announced to it last."""
        found: dict[str, Any] = json.loads((self._directory / "capabilities.json").read_text())
        return found

    @property
    def second_answer(self) -> Any:
        """Return the answer to the question that it asked during another call; None if there is none yet."""
        mark = self._directory / "second"
        return json.loads(mark.read_text()) if mark.exists() and mark.read_text() else None

    def has_heard_of_a_cancellation(self) -> bool:
        """Return whether a request was taken back."""
        return (self._directory / "cancelled").exists()

    def has_begun_to_hang(self) -> bool:
        """Return whether the tool that never answers was called."""
        return (self._directory / "hanging").exists()
