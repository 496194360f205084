"""Tests that commands on pages start with the prefix in TOOLBELT_COMMAND, so that they can be pasted."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from tests.docs import pages
from tests.web import dashboard

COMMAND = "docker compose exec web python manage.py"


@pytest.fixture(autouse=True)
def command_prefix(settings) -> None:
    settings.TOOLBELT_COMMAND = COMMAND


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
    plugin_manager: Client, path: str, command: str
) -> None:
    assert f"{COMMAND} {command}" in html.unescape(dashboard.text(plugin_manager.get(path)))


def test_the_token_command_has_the_configured_prefix(operator: Client, belt: None) -> None:
    html_text = html.unescape(dashboard.text(operator.get("/agents/ada/connect/")))
    assert f"{COMMAND} token issue --agent ada --days 90" in html_text


def test_no_template_hardcodes_how_commands_are_run() -> None:
    templates = [
        str(file.relative_to(pages.ROOT))
        for file in sorted((pages.ROOT / "templates").rglob("*.html"))
        if "manage.py" in file.read_text(encoding="utf-8")
    ]
    assert templates == []
