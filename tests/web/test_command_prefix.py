"""Tests that commands on pages start with the prefix in TOOLBELT_COMMAND, so that they can be pasted."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from tests.docs import pages
from tests.web import acting

HERE = "docker compose exec web python manage.py"


@pytest.fixture(autouse=True)
def run_here(settings) -> None:
    settings.TOOLBELT_COMMAND = HERE


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/", "demo"),
        ("/", "belt import FILE"),
        ("/plugins/", "mcp add time --command uvx mcp-server-time"),
        ("/plugins/add/", "mcp add files --command npx"),
        ("/help/", "help"),
    ],
)
def test_empty_pages_show_commands_with_the_configured_prefix(
    keeper: Client, path: str, command: str
) -> None:
    assert f"{HERE} {command}" in html.unescape(acting.text(keeper.get(path)))


def test_the_token_command_has_the_configured_prefix(operator: Client, belt: None) -> None:
    said = html.unescape(acting.text(operator.get("/agents/ada/connect/")))
    assert f"{HERE} token issue --agent ada --days 90" in said


def test_no_template_hardcodes_how_commands_are_run() -> None:
    saying = [
        str(file.relative_to(pages.ROOT))
        for file in sorted((pages.ROOT / "templates").rglob("*.html"))
        if "manage.py" in file.read_text(encoding="utf-8")
    ]
    assert saying == []
