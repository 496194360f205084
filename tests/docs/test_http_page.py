"""Tests that the agent on the page about HTTP works with the current API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs import in_process, pages
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

PAGE = pages.ROOT / "docs/how-to/ask-over-http.md"
SETUP = writing.by("setup", via="command")


@pytest.mark.django_db
def test_the_agent_requests_surfaces_loads_a_toolkit_and_answers() -> None:
    belts.import_(
        SETUP,
        {
            "tools": [{"key": "clock"}, {"key": "note"}],
            "toolkits": [
                {"key": "time", "members": ["clock"], "policy": "Look at the {active_tools}."},
                {"key": "notes", "members": ["note"], "triggers": [{"name": "n", "any": ["note"]}]},
            ],
            "agents": [{"key": "ada", "tools_config": {"notes": True}, "allowed_toolkits": ["time"]}],
        },
    )
    [code] = pages.blocks(PAGE, "py")
    namespace: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), namespace)  # noqa: S102 (our own page)
    toolbelt = in_process.Toolbelt(tokens.issue(SETUP, agent="ada").text)
    requests: list[Any] = []

    def model(messages: list[Any], tools: list[Any], focus: Any) -> dict[str, Any]:
        requests.append((messages[0]["content"], {tool["name"] for tool in tools}, focus))
        if len(requests) % 2 == 0:
            return {"role": "assistant", "content": messages[-1]["content"], "calls": []}
        call = ("load_tools", {"toolkit": "time"})
        return {"role": "assistant", "content": "", "calls": [call]}

    assert '"status": "loaded"' in namespace["run"](toolbelt, model, "Take a note.", "s1")
    assert requests[0][2]["active_tools"] == ["note"]
    assert requests[1][2] is None
    assert ["clock" in tools for _, tools, _ in requests] == [False, True]
    assert "Look at the clock." in requests[1][0]
    assert '"status": "already_loaded"' in namespace["run"](toolbelt, model, "And now?", "s1")
    assert "clock" in requests[2][1]
