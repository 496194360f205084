"""The commonest jobs of an operator, each within its number of clicks from the Overview."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.browser import clicks, operating
from tests.browser.conftest import OpensPage
from tests.web import servers
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


def test_a_toolkit_is_off_for_one_agent_after_two_clicks(open_page: OpensPage) -> None:
    job = clicks.Job(open_page())
    job.open_agent("assistant")
    operating.switch(job.page, "tickets").click()
    expect(operating.notice(job.page)).to_contain_text("tickets is off for assistant.")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False
    assert job.presses == 2


def test_a_toolkit_is_off_for_all_agents_after_three_clicks(open_page: OpensPage) -> None:
    job = clicks.Job(open_page())
    operating.menu(job.page).get_by_role("link", name="Toolkits").click()
    job.filter("team chat")
    job.page.get_by_role("link", name="Turn off Team chat for all agents").click()
    question = job.page.get_by_role("dialog", name="Turn off team_chat for 12 agents?")
    # Who loses tools stands in the question, and no one else.
    expect(question.locator("tbody th")).to_have_text(
        ["assistant", "release-captain", "support-desk", "omni"]
    )
    question.get_by_role("button", name="Turn off: ").click()
    expect(operating.notice(job.page)).to_contain_text("11 changes for 11 agents: off.")
    assert not any(
        snapshots.find(agent, None).agent.switches["team_chat"] for agent in ("assistant", "kiosk", "omni")
    )
    assert job.presses == 3


def test_two_agents_are_compared_after_three_clicks_with_the_tools_that_differ_first(
    open_page: OpensPage,
) -> None:
    job = clicks.Job(open_page())
    job.open_agent("assistant")
    job.page.get_by_role("link", name="Compare assistant with another agent").click()
    job.link("explorer").click()
    expect(job.page.get_by_role("heading", name="Tools that differ")).to_be_in_viewport(ratio=1)
    expect(job.page.get_by_role("rowheader", name="On only for explorer")).to_be_in_viewport(ratio=1)
    assert job.presses == 3


def changed_tool() -> None:
    """Let a server change an approved tool, whose texts are harmless; all else is approved."""
    models.Tool.objects.update(seen=True, approved_version=None)
    servers.add("vault")
    servers.answer(servers.READ, servers.WRITE, name="vault")
    servers.approve("vault")
    servers.answer(servers.READ, servers.WRITE_NOW, name="vault")


def test_a_changed_tool_is_approved_after_two_clicks(open_page: OpensPage) -> None:
    changed_tool()
    job = clicks.Job(open_page())
    operating.menu(job.page).get_by_role("link", name="Review").click()
    job.page.get_by_role("button", name="Approve vault__write").click()
    expect(operating.notice(job.page)).to_contain_text("vault__write approved.")
    assert job.presses == 2


def test_the_first_changed_tool_is_approved_with_one_click_and_one_key(open_page: OpensPage) -> None:
    changed_tool()
    job = clicks.Job(open_page())
    operating.menu(job.page).get_by_role("link", name="Review").click()
    job.page.get_by_role("heading", name="Review", exact=True).wait_for()
    job.page.keyboard.press("a")
    expect(operating.notice(job.page)).to_contain_text("vault__write approved.")
    assert job.presses == 2


def test_claude_code_is_connected_after_three_clicks(open_page: OpensPage) -> None:
    job = clicks.Job(open_page())
    job.open_agent("assistant")
    job.page.get_by_role("link", name="Connect", exact=True).click()
    job.page.get_by_role("button", name="Create token and show command").click()
    command = job.page.locator("#way-claude-code")
    expect(command).to_contain_text("claude mcp add --transport http toolbelt")
    expect(command).to_contain_text("Bearer tb_")
    assert job.presses == 3


def test_a_new_agent_is_connected_after_five_clicks(open_page: OpensPage) -> None:
    job = clicks.Job(open_page())
    operating.menu(job.page).get_by_role("link", name="Agents").click()
    job.page.get_by_role("link", name="New agent").click()
    job.page.get_by_label("Key", exact=True).fill("newcomer")
    job.page.get_by_label("Start from").select_option("loadout:minimal")
    job.page.get_by_role("button", name="Create agent").click()
    job.page.get_by_role("button", name="Create token and show command").click()
    expect(job.page.locator("#way-claude-code")).to_contain_text("/mcp/newcomer")
    # Choosing from the list is a click that the browser draws outside the page.
    assert job.presses + 1 <= 5


def test_who_changed_a_thing_yesterday_is_known_after_two_clicks(open_page: OpensPage) -> None:
    for key, days in (("issues", 1), ("notion_docs", 3)):
        models.AuditEntry.objects.create(
            at=timezone.now() - dt.timedelta(days=days),
            actor="sam",
            via="api",
            action="switch.set",
            subject_kind="agent",
            subject_key="assistant",
            key=key,
            after=True,
        )
    job = clicks.Job(open_page())
    operating.menu(job.page).get_by_role("link", name="Audit log").click()
    job.page.get_by_role("radio", name="Yesterday").check(force=True)
    expect(job.page.locator("#log")).to_contain_text("sam turned on Issues issues for assistant")
    expect(job.page.locator("#log")).not_to_contain_text("notion_docs")
    assert job.presses == 2


def test_why_a_toolkit_or_a_tool_is_off_is_answered_after_two_clicks(open_page: OpensPage) -> None:
    job = clicks.Job(open_page())
    job.open_agent("assistant")
    operating.section(job.page, "devops").locator(".section-head .why-link").click()
    expect(job.page.locator("#why")).to_contain_text("In toolkit devops, which the agent may load.")
    expect(job.page.locator("#why").get_by_role("button").last).to_have_text("Turn toolkit devops on")
    assert job.presses == 2

    job = clicks.Job(open_page())
    job.open_agent("assistant")
    job.filter("issue_write")
    operating.row(job.page, "issues", "github__issue_write").locator(".why-link").click()
    expect(job.page.locator("#why")).to_contain_text("Nothing grants it.")
    assert job.presses == 2


def test_a_tool_is_on_for_two_hours_after_three_clicks(open_page: OpensPage) -> None:
    job = clicks.Job(open_page())
    job.open_agent("assistant")
    job.filter("git_status")
    operating.row(job.page, "local_git", "git__git_status").locator(".acts-opener").click()
    # What arrives later may move the button while it is pressed.
    job.page.locator(".acts-body:popover-open .acts-effects").wait_for()
    job.page.locator(".acts-body:popover-open").get_by_role("button", name="On for 2 hours").click()
    expect(operating.notice(job.page)).to_contain_text("git__git_status is on for assistant until")
    assert "git__git_status" in snapshots.find("assistant", None).agent.ends
    assert job.presses == 3


def test_a_toolkit_is_made_from_a_search_with_four_clicks(open_page: OpensPage) -> None:
    job = clicks.Job(open_page())
    operating.menu(job.page).get_by_role("link", name="Tools").click()
    job.filter("API-get-users")
    expect(job.page.locator("#matches")).to_contain_text("1 tool")
    job.page.get_by_label("Select notion__API-get-users").check()
    job.page.get_by_role("button", name="New toolkit from selected tools").click()
    job.page.get_by_role("textbox", name="Key", exact=True).fill("statuses")
    job.page.get_by_role("button", name="Create toolkit").click()
    job.page.wait_for_url("**/toolkits/statuses/**")
    assert [member.tool for member in snapshots.catalog().toolkits["statuses"].members] == [
        "notion__API-get-users"
    ]
    assert job.presses == 4
