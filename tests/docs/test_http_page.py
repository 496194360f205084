"""The agent on the page about HTTP works against the current API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.docs import pages
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

PAGE = pages.ROOT / "docs/how-to/ask-over-http.md"
SETUP = writing.by("setup", via="command")


class Toolbelt:
    """Speaks as httpx does, to the application in this process."""

    def __init__(self, token: str) -> None:
        self._client = Client(headers={"Authorization": f"Bearer {token}"})

    def post(self, address: str, *, json: Any) -> Any:
        answer: Any = self._client.post(f"/api/v1/agents/ada/{address}", json, "application/json")
        answer.raise_for_status = lambda: answer
        assert answer.status_code == 200
        return answer


@pytest.mark.django_db
def test_the_agent_of_the_page_asks_loads_and_answers() -> None:
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
    known: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), known)  # noqa: S102 (our own page)
    toolbelt = Toolbelt(tokens.issue(SETUP, agent="ada").text)
    seen: list[Any] = []

    def model(messages: list[Any], tools: list[Any], focus: Any) -> dict[str, Any]:
        seen.append((messages[0]["content"], {tool["name"] for tool in tools}, focus))
        if len(seen) % 2 == 0:
            return {"role": "assistant", "content": messages[-1]["content"], "calls": []}
        wanted = ("load_tools", {"toolkit": "time"})
        return {"role": "assistant", "content": "", "calls": [wanted]}

    assert '"status": "loaded"' in known["run"](toolbelt, model, "Take a note.", "s1")
    assert seen[0][2]["active_tools"] == ["note"]
    assert seen[1][2] is None
    assert ["clock" in tools for _, tools, _ in seen] == [False, True]
    assert "Look at the clock." in seen[1][0]
    assert '"status": "already_loaded"' in known["run"](toolbelt, model, "And now?", "s1")
    assert "clock" in seen[2][1]
