"""Tests that pages mark prompts and resources, and do not count them as tools."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.web import dashboard, servers
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.testing import OPERATOR
from toolbelt.web.kit import tool_sections

pytestmark = pytest.mark.django_db

PROMPT = {"name": "sum", "description": "Sums up.", "arguments": [{"name": "topic", "required": True}]}
README = {"uri": "note://readme", "name": "readme", "mimeType": "text/plain"}
KEYS = ("files__read", "files__prompt_sum", "files__resource_readme")
# The icon and label of a prompt.
MARK = re.compile(r"<svg[^>]*>\s*<path[^>]*/>\s*</svg>\s*prompt\s*</span>")


@pytest.fixture
def offered(belt: None) -> None:
    """Store a server with a tool, a prompt and a resource that await review."""
    servers.add()
    servers.answer(servers.READ, non_tools={"prompt": (PROMPT,), "resource": (README,), "template": ()})


@pytest.fixture
def approved(offered: None) -> None:
    """Approve the tool, prompt and resource, and add them to a toolkit."""
    servers.approve()
    belts.import_(OPERATOR, {"toolkits": [{"key": "notes", "title": "Notes", "members": list(KEYS)}]})
    factories.agent("dee")


def kinds(rows: Any) -> dict[str, str]:
    """Return what each entry of a list states by key: the risk of a tool, or the kind of another entry."""
    return {row.tool.key: tool_sections.risk(row.tool) for row in rows}


def test_the_review_shows_each_entrys_kind_and_what_approval_covers(
    plugin_manager: Client, offered: None
) -> None:
    page = plugin_manager.get("/review/?plugin=files").context["page"]
    changes = {change.key: change for change in page.review.changes}

    assert kinds(page.review.changes) == {
        "files__read": "read-only",
        "files__prompt_sum": "prompt",
        "files__resource_readme": "resource",
    }
    assert changes["files__prompt_sum"].schema is None
    html = dashboard.text(plugin_manager.get("/review/?plugin=files"))
    assert MARK.search(html)
    assert "&quot;topic&quot;" in html
    assert "note://readme" in html


def test_plugin_pages_count_prompts_and_resources_separately(plugin_manager: Client, approved: None) -> None:
    page = plugin_manager.get("/plugins/files/").context["page"]
    shown = {tool.key: tool_sections.risk(tool) for tool, *_ in page.tools}
    assert shown == dict(zip(KEYS, ("read-only", "prompt", "resource"), strict=True))
    (line,) = [
        plugin for plugin in plugin_manager.get("/plugins/").context["page"].plugins if plugin.name == "files"
    ]
    assert (line.tools, line.others) == (1, "1 prompt, 1 resource")


def test_the_tool_list_counts_prompts_and_resources_separately(operator: Client, approved: None) -> None:
    total = operator.get("/").context["page"].summary.split(", ")[1].removesuffix(" in the catalog")
    assert operator.get("/tools/").context["page"].matches.startswith(f"{total}, 1 prompt, 1 resource, ~")


def test_access_shows_prompts_and_resources_but_counts_only_tools(operator: Client, approved: None) -> None:
    entries.change(OPERATOR, "agent", "dee", {"tools_config": {"notes": True}})
    page = operator.get("/agents/dee/", {"open": "toolkit-notes"}).context["page"]

    section = dashboard.sections(page)["toolkit-notes"]
    assert (section.active, section.total) == (1, 1)
    assert {row.key: row.risk for row in section.tools} == dict(
        zip(KEYS, ("read-only", "prompt", "resource"), strict=True)
    )
    assert all(row.state == "active" for row in section.tools)


def test_a_toolkits_page_marks_prompts_and_counts_only_tools(operator: Client, approved: None) -> None:
    html = dashboard.text(operator.get("/toolkits/notes/"))
    assert MARK.search(html)
    assert "1 of 1 tool on" in html
    (line,) = [
        toolkit for toolkit in operator.get("/toolkits/").context["page"].toolkits if toolkit.key == "notes"
    ]
    assert line.tools == "1"


def test_a_prompts_page_shows_its_kind_and_agents(operator: Client, approved: None) -> None:
    entries.change(OPERATOR, "agent", "dee", {"tools_config": {"notes": True}})
    response = operator.get("/tools/files__prompt_sum/")
    assert MARK.search(dashboard.text(response))
    assert "dee" in dashboard.text(response)
