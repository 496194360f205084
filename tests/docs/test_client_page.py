"""Tests that the program on the page about client-run tools works with the current API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs import in_process, pages
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

PAGE = pages.ROOT / "docs/how-to/run-tools-in-your-program.md"
SETUP = writing.by("setup", via="command")


@pytest.mark.django_db
def test_the_program_runs_its_own_tools_and_lets_toolbelt_run_the_others() -> None:
    belts.import_(
        SETUP,
        {
            "tools": [{"key": "clock"}, {"key": "note"}, {"key": "hidden"}],
            "toolkits": [{"key": "time", "members": ["clock"]}],
            "agents": [{"key": "ada", "tools": ["note", "clock"], "allowed_toolkits": ["time"]}],
        },
    )

    def broken() -> None:
        raise ValueError("no pen")

    namespace: dict[str, Any] = {"TOOLS": {"clock": lambda: "noon", "note": broken, "hidden": broken}}
    [code] = pages.blocks(PAGE, "py")
    exec(compile(code, str(PAGE), "exec"), namespace)  # noqa: S102 (our own page)
    toolbelt = in_process.Toolbelt(tokens.issue(SETUP, agent="ada").text)

    def run(name: str, arguments: Any) -> Any:
        return namespace["run_call"](toolbelt, {"session": "s1", "request_id": "r1"}, name, arguments)

    assert run("clock", {}) == "noon"
    assert run("note", {})["message"] == "no pen"
    assert run("hidden", {})["code"] == "unknown-tool"
    assert run("load_tools", {"toolkit": "time"})["content"]["status"] == "loaded"
    outcomes = models.CallRecord.objects.order_by("id").values_list("tool", "outcome")
    assert list(outcomes) == [
        ("clock", "ok"),
        ("note", "tool-failed"),
        ("hidden", "unknown-tool"),
        ("load_tools", "ok"),
    ]
