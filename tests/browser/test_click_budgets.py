"""Tests that the most frequent tasks of an operator take no more clicks from the Overview than they should."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.browser import clicks, dashboard
from tests.browser.conftest import OpensPage
from tests.web import asking, servers
from toolbelt import models
from toolbelt.control.agents import call_approvals
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


def test_changing_or_explaining_the_access_of_an_agent_takes_at_most_three_clicks(
    open_page: OpensPage,
) -> None:
    task = clicks.Task(open_page())
    page = task.page
    task.open_agent("Assistant")
    dashboard.switch(page, "tickets").click()
    expect(dashboard.notice(page)).to_contain_text("tickets is off for Assistant assistant.")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False
    assert task.clicks == 2

    task = clicks.Task(page)
    task.open_agent("Assistant")
    task.filter("git_status")
    dashboard.tool_row(page, "local_git", "git__git_status").locator(".acts-opener").click()
    # The effects arrive later, and may move the button while it is clicked.
    dashboard.open_menu(page).locator(".acts-effects").wait_for()
    dashboard.open_menu(page).get_by_role("button", name="On for 2 hours").click()
    expect(dashboard.notice(page)).to_contain_text("git__git_status is on for Assistant assistant until")
    assert "git__git_status" in snapshots.find("assistant", None).agent.ends
    assert task.clicks == 3

    # Why is a toolkit not on, and why is a tool not on?
    task = clicks.Task(page)
    task.open_agent("Assistant")
    dashboard.section(page, "devops").locator(".section-head .why-link").click()
    expect(page.locator("#why")).to_contain_text("In toolkit devops, which the agent may load.")
    expect(page.locator("#why").get_by_role("button").last).to_have_text("Turn toolkit devops on")
    assert task.clicks == 2

    task = clicks.Task(page)
    task.open_agent("Assistant")
    task.filter("issue_write")
    dashboard.tool_row(page, "issues", "github__issue_write").locator(".why-link").click()
    expect(page.locator("#why")).to_contain_text("Nothing grants it.")
    assert task.clicks == 2


def test_comparing_agents_and_changing_many_at_once_take_at_most_four_clicks(open_page: OpensPage) -> None:
    task = clicks.Task(open_page())
    page = task.page
    task.open_agent("Assistant")
    page.get_by_role("link", name="Compare Assistant with another agent").click()
    task.link("Explorer (explorer)").click()
    expect(page.get_by_role("heading", name="Tools that differ")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("rowheader", name="On only for Explorer")).to_be_in_viewport(ratio=1)
    assert task.clicks == 3

    task = clicks.Task(page)
    dashboard.navigation(page).get_by_role("link", name="Toolkits").click()
    task.filter("team chat")
    page.get_by_role("link", name="Turn off Team chat for all agents").click()
    confirmation = page.get_by_role("dialog", name="Turn off Team chat team_chat for 12 agents?")
    # It lists the agents that lose tools, also on request, and no others.
    expect(confirmation.locator("tbody th")).to_have_count(11)
    confirmation.get_by_role("button", name="Turn off: ").click()
    expect(dashboard.notice(page)).to_contain_text("11 changes for 11 agents: off.")
    assert not any(
        snapshots.find(agent, None).agent.switches["team_chat"] for agent in ("assistant", "kiosk", "omni")
    )
    assert task.clicks == 3

    task = clicks.Task(page)
    dashboard.navigation(page).get_by_role("link", name="Tools").click()
    task.filter("notion__API-get-users")
    expect(page.locator("#matches")).to_contain_text("1 tool")
    page.get_by_label("Select notion__API-get-users").check()
    page.get_by_role("button", name="New toolkit from selected tools").click()
    page.get_by_role("textbox", name="Key", exact=True).fill("statuses")
    page.get_by_role("button", name="Create toolkit").click()
    page.wait_for_url("**/toolkits/statuses/**")
    assert [member.tool for member in snapshots.catalog().toolkits["statuses"].members] == [
        "notion__API-get-users"
    ]
    assert task.clicks == 4


def test_a_waiting_call_is_approved_with_one_click_from_its_link_and_two_from_the_overview(
    open_page: OpensPage,
) -> None:
    linked, listed = (
        asking.ask({"amount": amount}, agent="support-desk", tool="think") for amount in (600, 700)
    )
    task = clicks.Task(open_page())
    page = task.page
    page.goto(f"/review/approvals/{linked.key}/")
    page.get_by_role("button", name="Approve once").click()
    expect(dashboard.notice(page)).to_contain_text("is approved.")
    assert task.clicks == 1

    task = clicks.Task(page)
    page.get_by_role("main").get_by_role("link", name="Decide").click()
    page.get_by_role("button", name="Approve once").click()
    expect(dashboard.notice(page)).to_contain_text("is approved.")
    assert task.clicks == 2
    assert [call_approvals.find(each.key).state for each in (linked, listed)] == ["approved", "approved"]


def test_connecting_claude_code_takes_three_clicks_and_five_with_a_new_agent(open_page: OpensPage) -> None:
    task = clicks.Task(open_page())
    page = task.page
    task.open_agent("Assistant")
    page.get_by_role("link", name="Connect", exact=True).click()
    page.get_by_role("button", name="Issue token and show command").click()
    command = page.locator("#way-claude-code")
    expect(command).to_contain_text("claude mcp add --transport http toolbelt")
    expect(command).to_contain_text("Bearer tb_")
    assert task.clicks == 3

    task = clicks.Task(page)
    dashboard.navigation(page).get_by_role("link", name="Agents").click()
    page.get_by_role("link", name="New agent").click()
    page.get_by_label("Key", exact=True).fill("newcomer")
    page.get_by_label("Start from").select_option("loadout:minimal")
    page.get_by_role("button", name="Create agent").click()
    page.get_by_role("button", name="Issue token and show command").click()
    expect(command).to_contain_text("/mcp/newcomer")
    # Choosing an option is a click that the browser draws outside of the page.
    assert task.clicks + 1 <= 5


def test_approving_a_changed_tool_and_finding_who_changed_what_take_two_clicks(open_page: OpensPage) -> None:
    models.Tool.objects.update(seen=True, approved_version=None)
    servers.add("vault")
    servers.answer(servers.READ, servers.WRITE, name="vault")
    servers.approve("vault")
    servers.answer(servers.READ, servers.WRITE_NOW, name="vault")
    task = clicks.Task(open_page())
    page = task.page
    dashboard.navigation(page).get_by_role("link", name="Review").click()
    page.get_by_role("button", name="Approve vault__write").click()
    expect(dashboard.notice(page)).to_contain_text("vault__write approved.")
    assert task.clicks == 2

    # The key for approving needs no other key before it.
    servers.answer(servers.READ, servers.WRITE, name="vault")
    task = clicks.Task(page)
    dashboard.navigation(page).get_by_role("link", name="Review").click()
    page.get_by_role("heading", name="Review", exact=True).wait_for()
    page.keyboard.press("a")
    expect(dashboard.notice(page)).to_contain_text("vault__write approved.")
    assert task.clicks == 2

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
    task = clicks.Task(page)
    dashboard.navigation(page).get_by_role("link", name="Audit log").click()
    page.get_by_role("radio", name="Yesterday").check(force=True)
    expect(page.locator("#log")).to_contain_text("sam turned on Issues issues for Assistant assistant")
    expect(page.locator("#log")).not_to_contain_text("notion_docs")
    assert task.clicks == 2
