"""Tests that the programs on the page about frameworks equal those in the dashboard."""

from __future__ import annotations

from tests.docs import pages
from toolbelt.web import connect

PAGE = pages.ROOT / "docs/how-to/use-with-frameworks.md"


def test_the_page_shows_the_same_programs_as_the_dashboard() -> None:
    offered = [
        connect.framework(name, "https://toolbelt.example", "assistant") for name in connect.FRAMEWORKS
    ]
    # The page also shows how a program keeps a conversation.
    assert [block for block in pages.blocks(PAGE, "py") if block in offered] == offered
